package figrli

import (
	"fmt"
	"math"
	"slices"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

var overhead = experiment.Experiment{
	Name: "rli-12", Title: "What references cost (Fig. 12)",
	Claim: "References take about 0.1 % of the link at low utilisation and 0.007 % at 90 % (section V-D, Fig. 12a). " +
		"Delays of flows change little, and about a tenth of them fall, as other packets are dropped than before (Fig. 12b). " +
		"Loss differs by at most 0.001 % of the packets at almost 80 % utilisation (Fig. 12c).",
	Weight: 25, Quick: 1.5, Measure: measureOverhead,
}

// grades are steps of utilisation.
var grades = []float64{0.2, 0.3, 0.4, 0.55, 0.6, 0.7, 0.8, 0.88, 0.9, 0.95}

func measureOverhead(run *experiment.Run) {
	packets := run.Pick(60_000, 1_000_000)
	kinds := everyKind(run)
	run.Config("packets", packets, "injector", adaptive, "utilisations", grades)
	run.Note(
		"The same packets are sent with references and without. A packet's identity does not show in what the queue does, so whether it is "+
			"dropped depends on its place only.",
		"The share of capacity depends on the size of packets: one reference of 48 bytes to 10 packets is 1.4 % of the bytes where packets "+
			"have 340 bytes on average, so 0.3 % of a link at 20 %. The paper's 0.1 % would want packets of about 1,000 bytes at that rate.",
		"Where nothing is lost with references or without, no claim about loss is judged: rli-loss is about a load at which packets are lost.",
	)
	capacity := run.Draw("a", "Capacity that references take (Fig. 12a)", "The adaptive injector, references of 48 bytes.", loadAxis,
		plot.LogAxis("share of the link's capacity (%)"))
	delays := run.Draw("b", "How much a flow's mean delay changes at 88 % (Fig. 12b)",
		"PI: flows whose mean delay rises with references. NI: flows whose falls.",
		plot.Axis{Label: "change (µs)", Scale: plot.Log, Min: 1e-4, Max: 1e4}, plot.LogAxis("share of all flows that change by at least so much"))
	losses := run.Draw("c", "Loss with references less loss without (Fig. 12c)", "The same packets with and without references.", loadAxis,
		plot.LinearAxis("percentage points"))
	table := run.Table("", "With references and without", "traffic", "utilisation", "references per packet", "capacity",
		"mean delay without", "with", "a flow's change: 10th percentile", "median", "90th", "loss without", "with")
	for k, kind := range experiment.Each(run, kinds) {
		taken, lost := plot.Series{Name: kind.name, Pair: k + 1}, plot.Series{Name: kind.name, Pair: k + 1}
		for _, u := range experiment.Each(run, grades) {
			s := setting{kind: kind, utilisation: u, packets: kind.enough(packets)}
			without := simulate(run, s)
			s.injector = adaptive
			with := simulate(run, s)
			share := with.cost.Capacity(rate)
			taken.Add(100*u, 100*share)
			lost.Add(100*u, 100*(with.loss()-without.loss()))
			changes := with.changes(without)
			table.Row(kind.name, percent(u), percent(with.cost.Rate()), percent(share), duration(without.all.Mean()), duration(with.all.Mean()),
				signed(quantile(changes, 0.1)), signed(median(changes)), signed(quantile(changes, 0.9)), percent(without.loss()), percent(with.loss()))
			switch u {
			case 0.8:
				if more := with.loss() - without.loss(); with.lost+without.lost > 0 {
					run.Holds(kind.name+": additional loss at 80 %", "at most 0.001 %", signedPercent(more), near(more, math.Inf(-1), 0.00001))
				}
			case 0.88:
				up, down := bothWays(changes)
				run.Between(kind.name+": flows whose mean delay falls, at 88 %", "about 10 %",
					float64(len(down))/float64(len(changes)), 0.10, 0.10, 0.5)
				delays.Series = append(delays.Series, changed(kind.name+", PI", k, false, up, len(changes))...)
				delays.Series = append(delays.Series, changed(kind.name+", NI", k, true, down, len(changes))...)
			case 0.9:
				run.Between(kind.name+": capacity at 90 %", "0.007 %", share, 0.00007, 0.00007, 0.5)
			}
		}
		capacity.Series = append(capacity.Series, taken)
		losses.Series = append(losses.Series, lost)
		run.Between(kind.name+": most of the capacity that references take", "about 0.1 %", slices.Max(taken.Y)/100, 0.001, 0.001, 0.5)
	}
}

// changes are those of the flows' mean delays since another passage.
func (p *passage) changes(since *passage) []float64 {
	was := map[hashing.Flow]float64{}
	for i := range since.flows {
		was[since.flows[i].key] = since.flows[i].mean()
	}
	var changes []float64
	for i := range p.flows {
		if before, ok := was[p.flows[i].key]; ok {
			changes = append(changes, p.flows[i].mean()-before)
		}
	}
	return changes
}

// bothWays are the sizes of the changes up and down.
func bothWays(changes []float64) (up, down []float64) {
	for _, d := range changes {
		if d > 0 {
			up = append(up, d)
		} else if d < 0 {
			down = append(down, -d)
		}
	}
	return up, down
}

// changed is which share of all flows changes by so much; nothing without any.
func changed(name string, k int, paper bool, list []float64, all int) []plot.Series {
	if len(list) == 0 {
		return nil
	}
	s := plot.Series{Name: name, Kind: plot.Line, Paper: paper, Pair: k + 1}
	e := estimate.NewEmpirical(list)
	for q := range 100 {
		x := experiment.Try(e.Quantile(float64(q) / 100))
		s.Add(x/1e3, float64(len(list))/float64(all)*(1-float64(q)/100))
	}
	return []plot.Series{s}
}

// signed is a time in ns with its sign.
func signed(ns float64) string {
	if ns < 0 {
		return "−" + duration(-ns)
	}
	return "+" + duration(ns)
}

func signedPercent(x float64) string {
	return fmt.Sprintf("%s%s", map[bool]string{true: "−", false: "+"}[x < 0], percent(math.Abs(x)))
}
