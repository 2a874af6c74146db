package figrli

import (
	"fmt"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
)

var traces = experiment.Experiment{
	Name: "rli-table1", Title: "What the traffic is like (Table I)",
	Claim: "A flow has 15.9 to 20.8 packets on average; flows' mean delays range over 3 to 4 orders of magnitude on links of 10 Gb/s, " +
		"1 to 2 on slower ones; and of two traces of a link, the one with more load has the greater mean delay and range (section II, Table I).",
	Weight: 2, Quick: 0.2, Measure: measureTraces,
}

// published is Table I: mean delays in ns, and the ratio of the 99th to the 1st
// percentile of flows' means.
var published = []struct {
	name                          string
	packets, flows, perFlow, mean float64
	span                          float64
}{
	{"CHIC, 10 Gb/s", 131e6, 8.25e6, 15.9, 0.286e6, 9.96e3},
	{"SANJ, 10 Gb/s", 214e6, 10.3e6, 20.8, 0.386e6, 4.54e4},
	{"WEB468, 155 Mb/s", 2.61e6, 140e3, 18.6, 0.552e6, 39},
	{"WEB700, 155 Mb/s", 3.98e6, 208e3, 19.1, 3.70e6, 271},
}

func measureTraces(run *experiment.Run) {
	packets := run.Pick(60_000, 1_500_000)
	loads := []float64{0.55, 0.88}
	run.Config("packets", packets, "utilisations", loads)
	run.Note("The paper's traces are of backbone links for ten minutes, and of a laboratory's for five. Delays are of queueing alone; flows " +
		"of which no packet waited are left out of the range, which would be infinite with them.")
	table := run.Table("", "Packets, flows and delays", "traffic", "utilisation", "packets", "flows", "packets a flow", "mean delay",
		"flows' means, 99th over 1st percentile")
	for _, t := range published {
		table.Row("paper: "+t.name, "", number(t.packets), number(t.flows), number(t.perFlow), duration(t.mean), number(t.span))
	}
	figure := run.Draw("a", "Mean queueing delays of flows", fmt.Sprintf("At %s.", percent(loads[1])),
		plot.LogAxis("mean delay (µs)"), plot.Axis{Label: "share of flows", Min: 0, Max: 1})
	for _, kind := range experiment.Each(run, everyKind(run)) {
		var means, spans []float64
		for k, u := range experiment.Each(run, loads) {
			p := simulate(run, setting{kind: kind, utilisation: u, packets: kind.enough(packets)})
			waited, mean := p.waited()
			span := quantile(waited, 0.99) / quantile(waited, 0.01)
			means, spans = append(means, mean), append(spans, span)
			perFlow := float64(p.all.N()) / float64(len(p.flows))
			table.Row(kind.name, percent(u), number(float64(p.all.N())), number(float64(len(p.flows))), number(perFlow), duration(mean),
				number(span))
			if k == 1 && kind.slug != poisson.slug { // its flows are all alike
				for i := range waited {
					waited[i] /= 1e3
				}
				figure.Series = append(figure.Series, plot.CDF(kind.name, waited, 150))
				run.Holds(kind.name+": packets a flow", "15.9–20.8", number(perFlow), near(perFlow, 15.9, 20.8))
				run.Holds(kind.name+": flows' mean delays range over", "3 to 4 orders of magnitude: 9,960–45,400", number(span),
					near(span, 9960, 45400))
			}
		}
		if kind.slug == poisson.slug {
			continue
		}
		run.Holds(kind.name+": mean delay and range at both loads", "both greater at the higher",
			fmt.Sprintf("%s and %s; %s and %s", duration(means[0]), duration(means[1]), number(spans[0]), number(spans[1])),
			means[1] > means[0] && spans[1] > spans[0])
	}
}

// waited are the mean queueing delays of the flows that waited at all, and that
// of all packets.
func (p *passage) waited() (flows []float64, mean float64) {
	list := p.waits()
	sums, n := make([]float64, len(p.flows)), make([]float64, len(p.flows))
	all := 0.0
	for i := range list {
		sums[list[i].flow] += list[i].delay
		n[list[i].flow]++
		all += list[i].delay
	}
	for i := range sums {
		if sums[i] > 0 {
			flows = append(flows, sums[i]/n[i])
		}
	}
	return flows, all / float64(len(list))
}
