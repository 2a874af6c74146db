package figrli

import (
	"math"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/estimate"
)

var coverage = experiment.Experiment{
	Name: "ours-rli-coverage", Title: "How often intervals hold the truth",
	Claim: "The intervals of flows' means and deviations, and of the mean of all packets, hold the truth at least as often as they say, " +
		"by every method.",
	Weight: 12, Quick: 1, Measure: measureCoverage,
}

func measureCoverage(run *experiment.Run) {
	const confidence = 0.95
	packets := run.Pick(60_000, 500_000)
	loads := []float64{0.2, 0.55, 0.88}
	run.Config("packets", packets, "injector", everyNth(100), "utilisations", loads, "confidence", confidence)
	table := run.Table("",
		"Share of flows whose interval at 95 % holds the truth: means / deviations; and whether that of all packets' mean does",
		"traffic", "utilisation")
	for _, m := range methods {
		table.Columns = append(table.Columns, m.name)
	}
	for _, kind := range experiment.Each(run, everyKind(run)) {
		for _, u := range experiment.Each(run, loads) {
			p := simulate(run, setting{kind: kind, utilisation: u, packets: kind.enough(packets), injector: everyNth(100)})
			row := []string{kind.name, percent(u)}
			for _, m := range methods {
				r := p.receive(p.config(m), nil)
				flows, means, deviations := 0.0, 0.0, 0.0
				for i := range p.flows {
					f := &p.flows[i]
					got, err := r.Estimate(f.key)
					if err != nil || f.delays.N() == 0 {
						continue
					}
					flows++
					means += holds(got.MeanInterval(confidence), f.mean())
					deviations += holds(got.DeviationInterval(confidence), f.deviation())
				}
				total := experiment.Try(r.Total())
				all := "not all packets'"
				if holds(total.MeanInterval(confidence), p.all.Mean()) == 1 {
					all = "all packets'"
				}
				cell := percent(means/flows) + " / " + percent(deviations/flows) + ", " + all
				row = append(row, cell)
				least := math.Min(means, deviations) / flows
				run.Keeps(kind.name+", "+percent(u)+", "+m.name+": coverage", "at least 95 %", cell, least >= confidence && all == "all packets'")
			}
			table.Row(row)
		}
	}
}

// holds is 1 if x is in the interval, and 0 if not.
func holds(in estimate.Interval, x float64) float64 {
	if in.Contains(x) {
		return 1
	}
	return 0
}
