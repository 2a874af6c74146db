package figlda

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/perflow"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/lda/control"
)

// ldaRight looks for wrong reports that are presented as good.
var ldaRight = experiment.Experiment{
	Name: "ours-lda-right", Title: "Right, or refused",
	Claim:  "With the defaults, a report without an error is outside its interval no more often than the interval says.",
	Weight: 1000, Quick: 1, Measure: measureRight,
}

// sure is the confidence of the intervals that are judged.
const sure = 0.999

// A trouble is what happens to a session besides loss.
type trouble int

const (
	noTrouble  trouble = iota
	burstLoss          // losses in runs of 50 packets on average
	crossing           // a few packets are overtaken by the markers
	duplicates         // one packet in a thousand comes twice
	identical          // one packet in a hundred is a copy of the one before
	restarts           // of the sender, with any session, or of the receiver
	steps              // of either clock, reported to the point
	lostParts          // one control packet in a hundred that is not a marker
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

// settingOf draws a setting. Most sessions have the fewest packets.
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

// kinds returns what a session counts for in the table.
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

// reportKey identifies the interval of a report.
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

// A path is a session in progress.
type path struct {
	setting
	random   *rand.Rand
	tuner    lda.Tuner
	sender   *control.Sender
	receiver *control.Receiver
	session  uint64
	interval uint64 // of the session
	now      int64
	burst    bool // losses go on
	before   hashing.Packet
	late     []passed // packets that the next marker overtakes
	truths   map[reportKey]*truth
	reports  []control.Report
	found    judged
}

type passed struct {
	id hashing.Packet
	at int64
}

const (
	sessionIntervals = 10
	troubled         = 4 // the interval that something happens in
)

// session runs intervals and judges every report.
func (s setting) session(random *rand.Rand) *judged {
	p := &path{setting: s, random: random, tuner: lda.Tuner{Config: lda.DefaultConfig}, session: 1 << 40,
		now: int64(random.Uint64N(1 << 60)), truths: map[reportKey]*truth{}}
	p.sender = experiment.Try(control.NewSender(p.tuner, p.session, 1472))
	p.receiver = experiment.Try(control.NewReceiver(p.tuner))
	for k := range sessionIntervals {
		p.run(k)
	}
	p.reports = p.receiver.Flush(p.reports)
	p.judge()
	return &p.found
}

func (p *path) receive(data []byte) {
	p.reports, _ = p.receiver.Receive(data, p.reports)
	p.judge()
}

func (p *path) judge() {
	for i := range p.reports {
		r := &p.reports[i]
		p.found.judge(r, p.truths, p.delay)
		if data := p.receiver.AppendFeedback(nil, r); data != nil && p.random.IntN(4) > 0 {
			_ = p.sender.Feedback(data) // of a session before, after a restart
		}
	}
	p.reports = p.reports[:0]
}

// run passes an interval.
func (p *path) run(k int) {
	is := &truth{offset: p.offset}
	p.truths[reportKey{p.session, p.interval}] = is
	p.receive(experiment.Try(p.sender.Start(nil)))
	for _, packet := range p.late {
		p.receiver.Update(packet.id, packet.at)
	}
	p.late = p.late[:0]
	for i := range p.packets {
		if k == troubled && i == p.packets/2 {
			is = p.happen()
		}
		p.pass(is, i)
	}
	p.receive(experiment.Try(p.sender.End(nil)))
	for data := range p.sender.Parts() {
		if p.trouble == lostParts && p.random.IntN(100) == 0 {
			continue
		}
		p.receive(bytes.Clone(data))
	}
	p.interval++
}

// pass passes a packet.
func (p *path) pass(is *truth, i int) {
	id := hashing.Packet(p.random.Uint64())
	if p.trouble == identical && p.random.IntN(100) == 0 {
		id = p.before
	}
	p.before = id
	p.now += 1000
	p.sender.Update(id, p.now)
	if p.lost() {
		return
	}
	delay := int64(p.delay * p.tail.draw(p.random))
	arrival := passed{id, p.now + delay + p.offset}
	is.sum += delay
	is.n++
	if p.trouble == crossing && i >= p.packets-3 {
		p.late = append(p.late, arrival)
		return
	}
	p.receiver.Update(id, arrival.at)
	if p.trouble == duplicates && p.random.IntN(1000) == 0 {
		p.receiver.Update(id, arrival.at+1000)
	}
}

func (p *path) lost() bool {
	if p.trouble != burstLoss {
		return p.random.Float64() < p.loss
	}
	const length = 50
	if p.burst {
		p.burst = p.random.IntN(length) > 0
	} else {
		p.burst = p.random.Float64()*length*(1-p.loss) < p.loss
	}
	return p.burst
}

// happen restarts a point or sets a clock, and returns the truth from there
// on.
func (p *path) happen() *truth {
	is := p.truths[reportKey{p.session, p.interval}]
	switch p.trouble {
	case restarts:
		if p.random.IntN(3) == 0 {
			p.receiver = experiment.Try(control.NewReceiver(p.tuner))
			return is
		}
		p.session += p.random.Uint64N(3) - 1 // the same number, too
		p.interval = 0
		p.sender = experiment.Try(control.NewSender(p.tuner, p.session, 1472))
		p.receive(experiment.Try(p.sender.Start(nil)))
		is = &truth{offset: p.offset}
		p.truths[reportKey{p.session, 0}] = is
	case steps:
		by := []int64{37e6, -37e6, 3600e9}[p.random.IntN(3)]
		if p.random.IntN(2) == 0 {
			p.sender.ClockSet()
			p.now += by
			p.offset -= by
		} else {
			p.receiver.ClockSet()
			p.offset += by
		}
	}
	return is
}
