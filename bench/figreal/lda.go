package figreal

import (
	"fmt"
	"math"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/perflow"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
)

var realLDA = experiment.Experiment{
	Name: "real-lda", Title: "LDA beside the exact answer, interval by interval",
	Claim: "In the paper packets are from a trace and delays are drawn (section IV). What it claims of them, that the mean is as good as " +
		"a random sample of the packets in usable cells, should hold of real queues too, whose delays depend on one another and on loss, " +
		"since cells are chosen by a hash.",
	Weight: 1, Quick: 1, Measure: measureLDA,
}

// confidence is that of all intervals shown.
const confidence = 0.95

// period is the length of an interval, in ns.
const period = 250e6

// shortLDA is for an interval.
var shortLDA = lda.Config{Banks: [lda.MaxBanks]lda.Bank{{Rows: 512, Shift: 0}, {Rows: 512, Shift: 3}}, SumBits: 40, DigestBits: 16}

func measureLDA(run *experiment.Run) {
	run.Note(fmt.Sprintf("One aggregator of %d bytes on the wire at each point for each interval. Where a marker would end the receiver's "+
		"interval, the first packet does that was sent after the sender's had ended.", shortLDA.EncodedSize()))
	over := load().overTime(shortLDA)
	over.draw(run)
	over.judge(run)
}

// An interval is what an LDA says about one, with the truth.
type interval struct {
	middle   float64 // seconds
	sent     int
	exact    estimate.Moments
	result   lda.Result
	answered bool // whether it has a result

	// crossed: packets sent in it came after the receiver's interval had
	// ended, or those of another came before.
	crossed bool
}

type intervals []interval

// overTime measures interval by interval, as a sender and a receiver would
// with a marker between them.
func (c *capture) overTime(config lda.Config) intervals {
	first := c.packets[0].in
	of := func(p *packet) int { return int((p.in - first) / period) }
	last := of(&c.packets[len(c.packets)-1])
	all := make(intervals, last+1)
	ups := make([]*lda.Aggregator, last+1)
	for i := range ups {
		ups[i] = experiment.Try(lda.New(config))
		all[i].middle = (float64(i) + 0.5) * period / 1e9
	}
	down := experiment.Try(lda.New(config))
	for i := range c.packets {
		p := &c.packets[i]
		ups[of(p)].Update(hashing.Word(config.Identity, uint64(p.id)), p.in)
		all[of(p)].sent++
	}
	receiving := 0
	end := func() {
		all[receiving].result, all[receiving].answered = experiment.Answer(lda.Estimate(ups[receiving], down))
		down.Reset()
		receiving++
	}
	for _, number := range c.leaving {
		p := &c.packets[number]
		for receiving < of(p) { // the marker would have come by now
			end()
		}
		down.Update(hashing.Word(config.Identity, uint64(p.id)), p.out)
		all[of(p)].exact.Add(p.delay())
		if of(p) != receiving {
			all[of(p)].crossed, all[receiving].crossed = true, true
		}
	}
	for receiving <= last {
		end()
	}
	return all
}

// draw shows the delay over time.
func (all intervals) draw(run *experiment.Run) {
	mean, deviation := curve{name: "mean"}, curve{name: "deviation"}
	for i := range all {
		w := &all[i]
		if w.exact.N() > 0 {
			mean.exact = append(mean.exact, [2]float64{w.middle, w.exact.Mean() / 1e6})
			deviation.exact = append(deviation.exact, [2]float64{w.middle, math.Sqrt(w.exact.PopulationVariance()) / 1e6})
		}
		if w.answered {
			limits, off := w.result.CentralLimitInterval(confidence), w.result.StdDev/1e6
			mean.measured = append(mean.measured, [4]float64{w.middle, w.result.Mean / 1e6, max(0, limits.Low/1e6), limits.High / 1e6})
			deviation.measured = append(deviation.measured, [4]float64{w.middle, off, off, off})
		}
	}
	title := "Delay over time, queue of 12 Mb/s"
	run.Picture(experiment.Picture{Title: title, File: "real-lda-delay-shipped.svg",
		SVG: draw(title, "time (s)", "delay (ms)", [2]curve{mean, deviation}),
		Caption: fmt.Sprintf("One LDA for every %.0f ms. Bars: the %.0f %% interval of the mean for delays whose tails are light, as a "+
			"queue of bounded length has. Of delays without bound, MeanInterval's is wider where packets were lost, for those that no cell "+
			"saw.", period/1e6, 100*confidence)})
}

// judge judges the bars of intervals whose ends no packet crossed and, if nothing
// was lost, the mean.
func (all intervals) judge(run *experiment.Run) {
	var held, light, exactly perflow.Coverage
	for i := range all {
		w := &all[i]
		if w.exact.N() == 0 || w.crossed || !w.answered {
			continue
		}
		held.Count(w.result.MeanInterval(confidence).Contains(w.exact.Mean()))
		light.Count(w.result.CentralLimitInterval(confidence).Contains(w.exact.Mean()))
		if w.sent == int(w.exact.N()) {
			exactly.Count(estimate.RelativeError(w.result.Mean, w.exact.Mean()) < 1e-9)
		}
	}
	for i, of := range []*perflow.Coverage{&held, &light} {
		run.Claim(fmt.Sprintf("true means within the %.0f %% %s, of %d whose ends no packet crossed", 100*confidence,
			[]string{"intervals", "intervals for light tails"}[i], of.All), fmt.Sprintf("at least %.0f %%", 100*confidence),
			percent(of.Share()), experiment.Covers(of.Held, of.All, confidence, confidence))
	}
	run.Holds(fmt.Sprintf("means that are exact, of %d intervals in which nothing was lost or crossed", exactly.All),
		"all", fmt.Sprint(exactly.Held), exactly.Held == exactly.All)
}
