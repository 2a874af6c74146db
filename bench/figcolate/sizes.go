package figcolate

import (
	"fmt"
	"math"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/perflow"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

var split = experiment.Experiment{
	Name: "colate-2", Title: "How a flow's time stamps divide among its counters",
	Claim: "What a flow adds to one of its m counters is about the m-th part of the sum of its time stamps: the ratio has mean and median 1 " +
		"and rises steeply there, and the sum is taken as binomial, as if single units of time fell in counters (section 3.2, Lemma 1, Fig. 2).",
	Weight: 1, Quick: 0.2, Measure: measureSplit,
}

func measureSplit(run *experiment.Run) {
	t := newTraffic(run, enterprise)
	parts := make([][countersEach]float64, len(t.flows))
	for _, p := range t.packets {
		j := hashing.Row(uint64(p.id), countersEach) // as the recorder chooses
		parts[p.flow][j] += float64(p.in)
	}
	f := run.Draw("", "A counter's share of its flow's time stamps, as a multiple of the expected one",
		fmt.Sprintf("Distribution over the %d counters of every flow. The paper's model of a binomial of time units is a step at 1.",
			countersEach), plot.Axis{Label: "C_f / E[C_f]", Min: 0, Max: 4}, plot.Axis{Label: "share of counters", Min: 0, Max: 1})
	configure(run, "traffic", enterprise.trace)
	table := run.Table("", "C_f / E[C_f]", "packets of the flow", "flows", "mean", "median", "counters without a packet", "deviation",
		"deviation of the paper's model")
	for _, c := range []perflow.Class{every, asked, large} {
		var ratios []float64
		var moments estimate.Moments
		empty, flows, model := 0, 0, 0.0
		for i := range t.flows {
			if !c.Has(t.flows[i].packets) || t.flows[i].in == 0 {
				continue
			}
			flows++
			expected := t.flows[i].in / countersEach
			model += (1 - 1.0/countersEach) / expected
			for _, sum := range parts[i] {
				ratios = append(ratios, sum/expected)
				moments.Add(sum / expected)
				if sum == 0 {
					empty++
				}
			}
		}
		median := perflow.Quantile(ratios, 0.5)
		name := "flows of " + c.Name + " packets"
		if c == every {
			name = "all flows"
		}
		f.Add(plot.CDF(name, ratios, 400))
		predicted := math.Sqrt(model / float64(flows))
		table.Row(c.Name, flows, number(moments.Mean()), number(median), percent(float64(empty)/float64(len(ratios))), number(moments.StdDev()),
			number(predicted))
		run.Holds(name+": median of C_f / E[C_f]", "1", number(median), math.Abs(median-1) < 0.1)
		run.Holds(name+": deviation of C_f / E[C_f]", number(predicted), number(moments.StdDev()), moments.StdDev() < 2*predicted)
	}
	f.Add(plot.Series{Name: "the paper's model", Kind: plot.Line, Paper: true, X: []float64{0, 1, 1, 4},
		Y: []float64{0, 0, 1, 1}})
	run.Note("The mean is 1 as a matter of arithmetic. A flow of fewer packets than counters leaves most of them empty, so that the " +
		"median over all flows is 0. The deviation is that of the number of packets in a counter, √(m/p) at least; " +
		"the paper's variance, eq. (2), counts time units as if each fell in a counter by itself, and on it rest its parameters (section 5).")
}

var sizes = experiment.Experiment{
	Name: "colate-5", Title: "Sizes of flows, and the traces (Table 2)",
	Claim:  "The traces have both mice and elephants among their flows (section 6.1, Fig. 5).",
	Weight: 3, Quick: 0.6, Measure: measureSizes,
}

func measureSizes(run *experiment.Run) {
	f := run.Draw("", "Packets of a flow", "Distribution over the flows of each trace.", plot.LogAxis("packets"), shareAxis)
	table := run.Table("", "The traces", "trace", "packets", "flows", "packets a flow", "seconds", "mean delay (µs)", "deviation (µs)",
		"flows ≥ 1,000", "dropped by RED", "stands for (Table 2)")

	configs := map[string]any{}
	list := append(append([]kind(nil), kinds...), congested())
	for i, k := range experiment.Each(run, list) {
		t := newTraffic(run, k)
		packets := make([]float64, len(t.flows))
		mice, elephants := 0, 0
		for i := range t.flows {
			packets[i] = float64(t.flows[i].packets)
			if packets[i] < 10 {
				mice++
			}
			if large.Has(t.flows[i].packets) {
				elephants++
			}
		}
		if i < len(kinds) {
			f.Add(plot.CDF(k.name, packets, 0))
			run.Holds(k.name+": flows of fewer than 10 packets; of 1,000 and more", "both kinds",
				percent(float64(mice)/float64(len(packets)))+"; "+percent(float64(elephants)/float64(len(packets))), mice > 0 && elephants > 0)
		}
		table.Row(t.name, len(t.packets), len(t.flows), number(float64(len(t.packets))/float64(len(t.flows))), number(t.duration),
			number(t.delays.Mean()/1e3), number(t.delays.StdDev()/1e3), number(float64(elephants)),
			percent(float64(t.dropped)/float64(t.dropped+len(t.packets))), k.paper)
		configs[k.name] = k.trace
	}
	configure(run, "traffic", configs)
	run.Note("All traces are on a link of 10 Gb/s, so that a few seconds make an epoch; the paper's last from 5 minutes to 41 hours, at " +
		"1.3 to 411 Mb/s. Flows are cut off where the trace begins and ends.")
}
