package figcolate

import (
	"context"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
)

var sizes = experiment.Experiment{
	Name:   "colate-5",
	Group:  group,
	Title:  "Sizes of flows, and the traces (Table 2)",
	Claim:  "The traces have both mice and elephants among their flows (section 6.1, Fig. 5).",
	Weight: 3, Quick: 0.6,
	Run: runSizes,
}

func runSizes(ctx context.Context, run *experiment.Run) (experiment.Result, error) {
	f := plot.Figure{
		Title:   "Packets of a flow",
		Caption: "Distribution over the flows of each trace.",
		X:       plot.Axis{Label: "packets", Scale: plot.Log}, Y: shareAxis,
	}
	table := experiment.Table{
		Title:   "The traces",
		Columns: []string{"trace", "packets", "flows", "packets a flow", "seconds", "mean delay (µs)", "deviation (µs)", "flows ≥ 1,000", "dropped by RED", "stands for (Table 2)"},
	}
	result := experiment.Result{}
	configs := map[string]any{}
	list := append(append([]kind(nil), kinds...), congested())
	for i, k := range list {
		t, err := newTraffic(ctx, run, k)
		if err != nil {
			return experiment.Result{}, err
		}
		packets := make([]float64, len(t.flows))
		mice, elephants := 0, 0
		for i := range t.flows {
			packets[i] = float64(t.flows[i].packets)
			if packets[i] < 10 {
				mice++
			}
			if large.has(&t.flows[i]) {
				elephants++
			}
		}
		if i < len(kinds) {
			f.Series = append(f.Series, plot.CDF(k.name, packets, 0))
			result.Claims = append(result.Claims, experiment.Claim{
				What: k.name + ": flows of fewer than 10 packets; of 1,000 and more", Paper: "both kinds",
				Ours:    experiment.Percent(float64(mice)/float64(len(packets))) + "; " + experiment.Percent(float64(elephants)/float64(len(packets))),
				Verdict: experiment.Holds(mice > 0 && elephants > 0),
			})
		}
		table.Add(append(t.describe(), experiment.Number(float64(elephants)), experiment.Percent(float64(t.dropped)/float64(t.dropped+len(t.packets))), k.paper)...)
		configs[k.name] = k.trace
		if err := run.Progress(ctx, i+1, len(list)); err != nil {
			return experiment.Result{}, err
		}
	}
	result.Figures = []plot.Figure{f}
	result.Tables = []experiment.Table{table}
	result.Config = setting(run, map[string]any{"traffic": configs})
	result.Notes = []string{"All traces are on a link of 10 Gb/s, so that a few seconds make an epoch; the paper's last from 5 minutes to 41 hours, at 1.3 to 411 Mb/s. Flows are cut off where the trace begins and ends."}
	return result, nil
}
