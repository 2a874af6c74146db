package figcolate

import (
	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
)

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
			f.Series = append(f.Series, plot.CDF(k.name, packets, 0))
			run.Holds(k.name+": flows of fewer than 10 packets; of 1,000 and more", "both kinds",
				percent(float64(mice)/float64(len(packets)))+"; "+percent(float64(elephants)/float64(len(packets))), mice > 0 && elephants > 0)
		}
		table.Row(t.describe(), number(float64(elephants)), percent(float64(t.dropped)/float64(t.dropped+len(t.packets))), k.paper)
		configs[k.name] = k.trace
	}
	configure(run, "traffic", configs)
	run.Note("All traces are on a link of 10 Gb/s, so that a few seconds make an epoch; the paper's last from 5 minutes to 41 hours, at " +
		"1.3 to 411 Mb/s. Flows are cut off where the trace begins and ends.")
}
