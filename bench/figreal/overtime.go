package figreal

import (
	"fmt"
	"math"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/lda"
)

// An interval is what an LDA says of one, beside the truth.
type interval struct {
	middle float64 // seconds
	sent   int
	exact  estimate.Moments
	result lda.Result

	answered bool // whether it has a result

	// crossed: packets sent in it came after the receiver's had ended, or
	// those of another came before.
	crossed bool
}

type intervals []interval

// overTime measures interval by interval, as a sender and a receiver would
// with a marker between them.
func (c *capture) overTime(config lda.Config) intervals {
	first := c.packets[0].in
	of := func(p *packet) int { return int((p.in - first) / c.period) }
	last := of(&c.packets[len(c.packets)-1])
	all := make(intervals, last+1)
	ups := make([]*lda.Aggregator, last+1)
	for i := range ups {
		ups[i] = experiment.Try(lda.New(config))
		all[i].middle = (float64(i) + 0.5) * float64(c.period) / 1e9
	}
	down := experiment.Try(lda.New(config))
	for i := range c.packets {
		p := &c.packets[i]
		ups[of(p)].Update(packetKey(config.Identity, p), p.in)
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
		down.Update(packetKey(config.Identity, p), p.out)
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

func (all intervals) delayFigure(c *capture) plot.Figure {
	exact := plot.Series{Name: "mean, exact", Kind: plot.Line, Pair: 1}
	mean := plot.Series{Name: "mean, LDA", Kind: plot.Markers, Pair: 1}
	deviation := plot.Series{Name: "deviation, exact", Kind: plot.Line, Pair: 2}
	got := plot.Series{Name: "deviation, LDA", Kind: plot.Markers, Pair: 2}
	for i := range all {
		w := &all[i]
		if w.exact.N() > 0 {
			exact.Add(w.middle, w.exact.Mean()/1e6)
			deviation.Add(w.middle, math.Sqrt(w.exact.PopulationVariance())/1e6)
		}
		if w.answered {
			limits := w.result.CentralLimitInterval(confidence)
			mean.AddRange(w.middle, w.result.Mean/1e6, max(0, limits.Low/1e6), limits.High/1e6)
			got.Add(w.middle, w.result.StdDev/1e6)
		}
	}
	return plot.Figure{
		Name: "delay-" + c.name, Title: "Delay over time, " + c.title,
		Caption: fmt.Sprintf("One LDA for every %.0f ms. Bars: the %.0f %% interval of the mean for delays whose tails are light, as a queue "+
			"of bounded length has. Of delays without bound, MeanInterval's is wider where packets were lost, for those that no cell saw.",
			float64(c.period)/1e6, 100*confidence),
		X: plot.LinearAxis("time (s)"), Y: plot.LinearAxis("delay (ms)"),
		Series: []plot.Series{exact, mean, deviation, got},
	}
}

func (all intervals) lossFigure(c *capture) plot.Figure {
	exact := plot.Series{Name: "exact", Kind: plot.Steps}
	got := plot.Series{Name: "LDA", Kind: plot.Markers}
	scale := 1e9 / float64(c.period)
	for i := range all {
		w := &all[i]
		exact.Add(w.middle, float64(w.sent-int(w.exact.N()))*scale)
		got.Add(w.middle, (float64(w.result.Lost)-float64(w.result.Extra))*scale)
	}
	return plot.Figure{
		Name: "loss-" + c.name, Title: "Loss over time, " + c.title,
		Caption: fmt.Sprintf("Every %.0f ms. An LDA counts a packet that crosses the end of its interval as lost in one and as too many in "+
			"the other, which is less than none lost.", float64(c.period)/1e6),
		X: plot.LinearAxis("time (s)"), Y: plot.LinearAxis("packets lost a second"),
		Series: []plot.Series{exact, got},
	}
}

// judge judges the intervals' bars, and where nothing was lost the mean.
func (all intervals) judge(run *experiment.Run, c *capture) {
	var lossless, exactly uint64
	for _, crossed := range []bool{false, true} {
		var answered, held, light uint64
		for i := range all {
			w := &all[i]
			if w.exact.N() == 0 || w.crossed != crossed || !w.answered {
				continue
			}
			answered++
			if w.result.MeanInterval(confidence).Contains(w.exact.Mean()) {
				held++
			}
			if w.result.CentralLimitInterval(confidence).Contains(w.exact.Mean()) {
				light++
			}
			if !crossed && w.sent == int(w.exact.N()) {
				lossless++
				if estimate.RelativeError(w.result.Mean, w.exact.Mean()) < 1e-9 {
					exactly++
				}
			}
		}
		if answered == 0 {
			continue
		}
		kind := "no packet"
		if crossed {
			kind = "packets"
		}
		for _, bars := range []struct {
			name string
			held uint64
		}{{"intervals", held}, {"intervals for light tails", light}} {
			run.Holds(fmt.Sprintf("%s: true means within the %.0f %% %s, of %d whose ends %s crossed", c.title, 100*confidence,
				bars.name, answered, kind), fmt.Sprintf("%.0f %%", 100*confidence), percent(float64(bars.held)/float64(answered)),
				estimate.ProportionInterval(bars.held, answered, confidence).High >= confidence)
		}
	}
	if lossless > 0 {
		run.Holds(fmt.Sprintf("%s: means that are exact, of %d intervals in which nothing was lost or crossed", c.title, lossless),
			"all", fmt.Sprint(exactly), exactly == lossless)
	}
}
