package figlda

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/perflow"
	"github.com/hoplag/hoplag/lda/control"
)

// ldaRight looks for reports that are presented as good and are wrong.
var ldaRight = experiment.Experiment{
	Name: "ours-lda-right", Title: "Right, or refused",
	Claim:  "With the defaults, a report without an error is outside its interval no more often than the interval says.",
	Weight: 1000, Quick: 1, Measure: measureRight,
}

// sure is the confidence of the intervals that are judged.
const sure = 0.999

// A trouble is what befalls a session beside loss.
type trouble int

const (
	noTrouble  trouble = iota
	burstLoss          // losses in runs of 50 packets on average
	crossing           // a few packets are overtaken by the markers
	duplicates         // one packet in a thousand comes twice
	identical          // one packet in a hundred is a copy of the one before
	restarts           // of the sender, with any session, or of the receiver
	steps              // of either clock, of which the point is told
	lostParts          // one control packet in a hundred that is no marker
	troubles
)

// String names the trouble in tables.
func (t trouble) String() string {
	return [...]string{"none", "bursts", "crossing", "duplicates", "identical", "restarts", "steps", "lost parts"}[t]
}

// A tail is a law of delays of mean about 1.
type tail struct {
	name string
	draw func(r *rand.Rand) float64
}

var tails = []tail{
	{"constant", func(*rand.Rand) float64 { return 1 }},
	{"exponential", (*rand.Rand).ExpFloat64},
	{"Weibull 0.6", func(r *rand.Rand) float64 { return math.Pow(r.ExpFloat64(), 1/0.6) / 1.5 }},
	{"Pareto 3", func(r *rand.Rand) float64 { return math.Pow(1-r.Float64(), -1.0/3) / 1.5 }},
	{"lognormal σ=2", func(r *rand.Rand) float64 { return math.Exp(2*r.NormFloat64() - 2) }},
	{"one in 10⁴ 1,000 times slower", func(r *rand.Rand) float64 {
		if r.IntN(10_000) == 0 {
			return 1000 * r.ExpFloat64()
		}
		return r.ExpFloat64()
	}},
}

var (
	rightLosses  = []float64{0, 0.001, 0.01, 0.05, 0.1, 0.3}
	rightDelays  = []float64{1e3, 1e5, 1e7, 1e9, 1e10} // ns
	rightOffsets = []int64{0, 5e6, -6 * 86_400e9, 365 * 86_400e9}
)

// A setting is what one session goes through.
type setting struct {
	tail    tail
	loss    float64
	delay   float64
	offset  int64
	packets int
	trouble trouble
}

// settingOf draws a setting. Most sessions are of the fewest packets.
func settingOf(r *rand.Rand, full bool) setting {
	s := setting{
		tail: tails[r.IntN(len(tails))], loss: rightLosses[r.IntN(len(rightLosses))],
		delay: rightDelays[r.IntN(len(rightDelays))], offset: rightOffsets[r.IntN(len(rightOffsets))],
		packets: 10_000, trouble: trouble(r.IntN(int(troubles))),
	}
	switch k := r.IntN(2000); {
	case k == 0 && full:
		s.packets = 10_000_000
	case k < 5 && full:
		s.packets = 1_000_000
	case k < 50:
		s.packets = 100_000
	}
	return s
}

// judged counts reports.
type judged struct {
	intervals, refused, outside, beyond int
	below, above                        []float64 // how far the ends are from the mean, in mean delays, where clocks agree
}

func (j *judged) add(o *judged) {
	j.intervals += o.intervals
	j.refused += o.refused
	j.outside += o.outside
	j.beyond += o.beyond
	j.below = append(j.below, o.below...)
	j.above = append(j.above, o.above...)
}

// kinds are what a session counts for in the table.
func (s setting) kinds() []string {
	return []string{s.tail.name, "loss " + percent(s.loss), "trouble: " + s.trouble.String(), fmt.Sprintf("%d packets", s.packets), "all"}
}

func measureRight(run *experiment.Run) {
	random := run.Rand("sessions")
	by := map[string]*judged{"all": {}}
	for range run.Times(run.Pick(60, 100_000)) {
		s := settingOf(random, !run.Quick)
		found := s.session(random)
		for _, kind := range s.kinds() {
			if by[kind] == nil {
				by[kind] = new(judged)
			}
			by[kind].add(found)
		}
	}
	t := run.Table("right", fmt.Sprintf("Reports judged by intervals of %v %%", 100*sure),
		"of", "intervals", "refused", "outside", "per 1,000 good", "low end (median)", "high end (median)", "central limit outside")
	row := func(kind int, s setting) {
		if j := by[s.kinds()[kind]]; j != nil {
			t.Row(s.kinds()[kind], j.intervals, percent(float64(j.refused)/float64(j.intervals)), j.outside,
				fmt.Sprintf("%.3f", 1000*float64(j.outside)/float64(j.good())), percent(-perflow.Quantile(j.below, 0.5)),
				percent(perflow.Quantile(j.above, 0.5)), j.beyond)
		}
	}
	for _, tail := range tails {
		row(0, setting{tail: tail})
	}
	for _, loss := range rightLosses {
		row(1, setting{loss: loss})
	}
	for trouble := range troubles {
		row(2, setting{trouble: trouble})
	}
	for n := 10_000; n <= 10_000_000; n *= 10 {
		row(3, setting{packets: n})
	}
	row(4, setting{})
	total := by["all"]
	run.Keeps("good reports outside their 99.9 % interval", "at most 1 in 1,000",
		fmt.Sprintf("%d of %d", total.outside, total.good()), 1000*total.outside <= total.good()).Headline = true
	run.Note("The high end reaches for packets 1,000 times slower than the mean of which the sample may have none. Without that reach the " +
		"central limit interval is narrow on both sides, and outside as often as the last column says.")
	run.Config("confidence", sure, "losses", rightLosses, "delays", rightDelays, "offsets", rightOffsets)
}

func (j *judged) good() int { return max(1, j.intervals-j.refused) }

// reportKey is what a report is on.
type reportKey struct{ session, interval uint64 }

// truth is what passed: the sum of the delays of packets that arrived, their
// number, and the offset of the clocks at the end.
type truth struct {
	sum, n int64
	offset int64
}

// judge compares a report with the truth. Delays are of the scale.
func (j *judged) judge(r *control.Report, all map[reportKey]*truth, scale float64) {
	j.intervals += int(r.Interval - r.First + 1)
	if r.Err != nil {
		j.refused += int(r.Interval - r.First + 1)
		return
	}
	is := all[reportKey{r.Session, r.Interval}]
	if is == nil || is.n == 0 {
		j.outside++
		return
	}
	mean := float64(is.offset) + float64(is.sum)/float64(is.n)
	i := r.Result.MeanInterval(sure)
	if !i.Contains(mean) {
		j.outside++
	}
	if is.offset == 0 {
		j.below = append(j.below, (r.Result.Mean-i.Low)/scale)
		j.above = append(j.above, (i.High-r.Result.Mean)/scale)
	}
	if !r.Result.CentralLimitInterval(sure).Contains(mean) {
		j.beyond++
	}
}
