package figrli

import (
	"fmt"
	"math"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/perflow"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/rli"
)

var sharedQuantiles = experiment.Experiment{
	Name:  "ours-rli-shared",
	Group: oursGroup,
	Title: "Quantiles of all flows in 2 MiB",
	Claim: "Histograms that flows share by their hash take 2 MiB for 65,536 flows, where one each takes tens; for flows of 100 packets " +
		"and more they are nearer to the flow's quantiles than those of all packets are, and what they call certain is.",
	Weight: 8, Quick: 0.5,
	Measure: measureShared,
}

// The shared histograms: 8,192 of 128 buckets of two bytes.
const (
	sharedHistograms = 8192
	sharedBuckets    = 128
	sharedFloor      = 32 // ns, and 2 ms where the last one begins
)

// bySize are the flows that are looked at together.
var bySize = []struct {
	name        string
	least, most uint64
}{{"10–99 packets", 10, 99}, {"100–999", 100, 999}, {"1,000 and more", 1000, math.MaxUint64}}

// keepers are how quantiles are kept.
var keepers = []string{"one histogram each", "shared", "of all packets"}

func measureShared(run *experiment.Run) {
	packets := run.Pick(60_000, 600_000)
	loads := []float64{0.55, 0.88}
	run.Config("packets", packets, "injector", everyNth(50), "histograms", sharedHistograms, "buckets", sharedBuckets, "floor", sharedFloor)
	memory := func(c rli.Config) float64 { return float64(c.MemorySize()) / (1 << 20) }
	none, own, shared := rli.DefaultConfig, rli.DefaultConfig, rli.DefaultConfig
	own.Buckets, own.Floor = sharedBuckets, sharedFloor
	shared.Buckets, shared.Floor, shared.Histograms = sharedBuckets, sharedFloor, sharedHistograms
	run.Notef("All are of the same delays, by the busy-aware method; errors are of what was true. Bounds are certain if the answer of a "+
		"flow's own histogram is within them. For %d flows a receiver takes %.1f MiB without histograms, %.1f with one each, and %.1f "+
		"with shared ones.", none.Flows, memory(none), memory(own), memory(shared))
	table := run.Table("", "Relative error of flows' quantiles: median / 75th percentile over flows", "traffic", "utilisation", "flows of",
		"flows", "quantile", keepers[0], keepers[1], keepers[2], "bounds that hold")
	figure := run.Figure(plot.Figure{
		Name: "a", Title: "Error of flows' 99th percentile, " + heavyTailed.name,
		Caption: fmt.Sprintf("At %s; flows of 100 to 999 packets.", experiment.Percent(loads[1])),
		X:       plot.Axis{Label: "relative error", Scale: plot.Log, Min: 1e-3, Max: 10}, Y: plot.Axis{Label: "share of flows", Min: 0, Max: 1},
	})
	for _, u := range experiment.Each(run, loads) {
		p := simulate(run, setting{kind: heavyTailed, utilisation: u, packets: packets, injector: everyNth(50)})
		each, some := p.keep(0), p.keep(sharedHistograms)
		delays := p.delays()
		for _, size := range bySize {
			for _, q := range quantileShares {
				errors, holds, flows := p.compare(each, some, delays, q, size.least, size.most)
				table.Add(heavyTailed.name, experiment.Percent(u), size.name, fmt.Sprint(flows), experiment.Percent(q), spread(errors[0]),
					spread(errors[1]), spread(errors[2]), experiment.Percent(holds))
				where := fmt.Sprintf("%s, %s, flows of %s, quantile %s", heavyTailed.name, experiment.Percent(u), size.name, experiment.Percent(q))
				run.Keeps(where+": bounds that hold the flow's own", "100 %", experiment.Percent(holds), holds == 1)
				if size.least >= 100 {
					run.Beats(where+": median error, of all packets and shared", median(errors[1]), median(errors[2]), 0.1)
				}
				if size.least == 100 && q > 0.5 && u == loads[1] {
					for i, name := range keepers {
						figure.Series = append(figure.Series, plot.CDF(name, errors[i], 150))
					}
				}
			}
		}
	}
}

// keep is a receiver with a histogram for each flow, or so many that are shared.
func (p *passage) keep(histograms int) *rli.Receiver {
	c := p.config(byPeriod)
	c.Buckets, c.Floor, c.Histograms = sharedBuckets, sharedFloor, histograms
	return p.receive(c, nil)
}

// delays are all of each flow's.
func (p *passage) delays() [][]float64 {
	list := make([][]float64, len(p.flows))
	for i := range p.events {
		if d := &p.events[i]; d.regular() {
			list[d.flow] = append(list[d.flow], float64(d.delay))
		}
	}
	return list
}

// compare is what the ways to keep a quantile are off by, over the flows of a
// size, and how often the shared one's bounds hold the answer of a flow's own.
func (p *passage) compare(own, shared *rli.Receiver, delays [][]float64, q float64, least, most uint64) (errors [3][]float64,
	holds float64, flows int) {
	total := experiment.Try(own.TotalQuantile(q))
	held := 0
	for i := range p.flows {
		f := &p.flows[i]
		if n := f.delays.N(); n < least || n > most {
			continue
		}
		truth := perflow.Quantile(delays[i], q)
		alone := experiment.Try(own.Quantile(f.key, q))
		for k, x := range []float64{alone, experiment.Try(shared.Quantile(f.key, q)), total} {
			errors[k] = append(errors[k], estimate.RelativeError(x, truth))
		}
		flows++
		if in := experiment.Try(shared.QuantileInterval(f.key, q)); in.Contains(alone) {
			held++
		}
	}
	return errors, float64(held) / float64(flows), flows
}
