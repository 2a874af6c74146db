package figlda

import (
	"fmt"
	"math/rand/v2"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
)

// ldaAccumulated compares intervals that clocks cut, many a report.
var ldaAccumulated = experiment.Experiment{
	Name: "ours-lda-accumulated", Title: "Clock-cut intervals, added up",
	Claim: "Cells matched by level use what crosses the cuts, and a loss costs one cell a few intervals: " +
		"the mean of a report is inside its interval, where interval by interval it is biased.",
	Weight: 150, Quick: 2, Measure: measureAccumulated,
}

const (
	cutEvery  = 100_000_000 // ns
	cutRate   = 1e-4        // packets a ns: 10⁵ a second
	cutReport = 20          // intervals
)

var (
	cutDelays = []float64{5e5, 5e6, 5e7} // ns
	cutLosses = []float64{0, 0.001, 0.01, 0.05, 0.3}
)

// accumulated is what came of the reports of one kind of traffic.
type accumulated struct {
	reports, refused, outside    int
	share, err, plainShare, bias estimate.Moments
}

func measureAccumulated(run *experiment.Run) {
	t := run.Table("accumulated", fmt.Sprintf("Reports of %d intervals of 0.1 s and 10⁴ packets", cutReport),
		"delays", "mean", "loss", "refused", "outside 99.9 %", "in the sample", "error", "uncrossed", "their bias")
	reports, outside, worst := 0, 0, 0.0
	for _, law := range experiment.Each(run, tails) {
		for _, delay := range experiment.Each(run, cutDelays) {
			for _, loss := range cutLosses {
				random := run.Rand(fmt.Sprint(law.name, delay, loss))
				var a accumulated
				for range run.Pick(1, 30) {
					run.Alive()
					a.report(random, law, delay, loss)
				}
				t.Row(law.name, fmt.Sprintf("%g ms", delay/1e6), percent(loss), a.cells())
				reports += a.reports - a.refused
				outside += a.outside
				if loss <= 0.05 && delay <= 5e6 && law.name == "exponential" {
					worst = max(worst, a.err.Mean())
				}
			}
		}
	}
	run.Keeps("reports outside their 99.9 % interval", "at most 1 in 1,000",
		fmt.Sprintf("%d of %d", outside, reports), 1000*outside <= reports).Headline = true
	run.Within("exponential delays up to 5 ms, losses up to 5 %: worst average error", "< 0.5 %", worst, 0.005, 0)
	run.Config("intervals", cutReport, "delays", cutDelays, "losses", cutLosses)
}

// cells are the end of a table's row.
func (a *accumulated) cells() []string {
	return []string{
		fmt.Sprintf("%d of %d", a.refused, a.reports), fmt.Sprint(a.outside), percent(a.share.Mean()),
		percent(a.err.Mean()), percent(a.plainShare.Mean()), percent(a.bias.Mean()),
	}
}

// report passes the intervals of one report and judges it. The truth is of the
// packets received in them.
func (a *accumulated) report(random *rand.Rand, law tail, delay, loss float64) {
	ups, downs := cutAggregators(), cutAggregators()
	var truth estimate.Moments
	for now := random.ExpFloat64() / cutRate; now < cutReport*cutEvery; now += random.ExpFloat64() / cutRate {
		p, sent := hashing.Packet(random.Uint64()), int64(now)
		ups[sent/cutEvery].Update(p, sent)
		if random.Float64() < loss {
			continue
		}
		arrival := sent + int64(delay*law.draw(random))
		if k := arrival / cutEvery; k < cutReport {
			downs[k].Update(p, arrival)
			truth.Add(float64(arrival - sent))
		}
	}
	total := experiment.Try(lda.NewAccumulator(lda.DefaultConfig))
	var sum, packets float64
	for k := range ups {
		// An interval whose cells contradict each other is left out.
		_ = total.Add(uint64(k), ups[k], downs[k])
		if r, err := lda.Estimate(ups[k], downs[k]); err == nil {
			sum += r.Mean * float64(r.N)
			packets += float64(r.N)
		}
	}
	a.reports++
	r, err := total.Estimate()
	if err != nil {
		a.refused++
		return
	}
	if !r.MeanInterval(sure).Contains(truth.Mean()) {
		a.outside++
	}
	a.share.Add(float64(r.N) / float64(r.Received))
	a.err.Add(estimate.RelativeError(r.Mean, truth.Mean()))
	a.plainShare.Add(packets / float64(r.Received))
	if packets > 0 {
		a.bias.Add(sum/packets/truth.Mean() - 1)
	}
}

func cutAggregators() []*lda.Aggregator {
	all := make([]*lda.Aggregator, cutReport)
	for k := range all {
		all[k] = experiment.Try(lda.New(lda.DefaultConfig))
	}
	return all
}
