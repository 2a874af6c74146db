package figlds

import (
	"context"
	"fmt"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/lds"
)

var bySize = experiment.Experiment{
	Name:   "lds-10",
	Group:  Group,
	Title:  "Error by size and delay of the flow (Fig. 10)",
	Claim:  "With 70,000 cells, the median error is 1.2 % for flows of 500 to 999 packets, 0.4 % from 1,000 and 0.06 % from 10,000 on; 7,000 cells do well from 1,000 packets on; errors grow as a flow's delay departs from the mean of all (section 5.1, Fig. 10).",
	Weight: 6, Quick: 1,
	Run: runBySize,
}

// ranges are classes of flows by their mean delay over that of all packets.
var ranges = []struct {
	name string
	most float64
}{{"< 0.5", 0.5}, {"0.5–0.75", 0.75}, {"0.75–1.25", 1.25}, {"1.25–1.75", 1.75}, {"> 1.75", 1e9}}

func runBySize(ctx context.Context, run *experiment.Run) (experiment.Result, error) {
	intervals := run.Pick(3, 5)
	mean := &method{name: "mean of all packets"}
	var sketches []*method
	for _, columns := range columnsOf {
		sketches = append(sketches, &method{name: fmt.Sprintf("LDS %s × 4", experiment.Number(float64(columns)))})
	}
	byDelay := make([]*method, len(ranges)) // of the reference sketch
	for i, r := range ranges {
		byDelay[i] = &method{name: r.name}
	}
	step := run.Steps(ctx, intervals*len(columnsOf))
	var configs []lds.Config
	for n := range intervals {
		iv, err := newInterval(run, n)
		if err != nil {
			return experiment.Result{}, err
		}
		configs = nil
		for _, columns := range columnsOf {
			configs = append(configs, shape(run, columns, 1, everything(4)...))
		}
		observed, err := iv.observe(0, nil, configs...)
		if err != nil {
			return experiment.Result{}, err
		}
		mean.add(iv, same(iv.Mean), nil)
		for i, s := range observed {
			sketches[i].add(iv, iv.estimated(s, lds.Estimate), nil)
			if err := step(); err != nil {
				return experiment.Result{}, err
			}
		}
		least := 0.0
		for i, r := range ranges {
			byDelay[i].add(iv, iv.estimated(observed[reference], lds.Estimate), func(i int) bool {
				x := iv.Flows[i].Mean / iv.Mean
				return least <= x && x < r.most
			})
			least = r.most
		}
	}

	median := plot.Figure{
		Name: "a", Title: "Median relative error by size (Fig. 10, top)",
		Caption: fmt.Sprintf("Flows of %d intervals together; bars from the lowest to the highest median of an interval. Hollow: what the paper reports of its trace.", intervals),
		X:       binAxis(), Y: plot.Axis{Label: "relative error (%)", Scale: plot.Log},
	}
	high := median
	high.Name, high.Title = "b", "95th percentile of the relative error by size (Fig. 10, top)"
	high.Caption = "The same flows."
	for _, m := range append(sketches, mean) {
		median.Series = append(median.Series, m.byBin(m.name, false))
		high.Series = append(high.Series, m.byBin(m.name, true))
	}
	reported := plot.Series{Name: "70,000 cells, as reported", Kind: plot.Markers, Paper: true, Pair: reference + 1}
	result := experiment.Result{Config: map[string]any{"intervals": intervals, "sketches": configs}}
	for b, value := range []float64{0.012, 0.004, 0.0006} {
		b += len(bins) - 3
		reported.Add(float64(b), 100*value)
		ours := sketches[reference].median(firstBin + b)
		result.Claims = append(result.Claims, experiment.Claim{
			What: "median error with 70,000 cells, flows of " + bins[b].name + " packets", Paper: experiment.Percent(value),
			Ours: experiment.Percent(ours), Verdict: experiment.Judge(ours, value, 0.25),
		})
	}
	for i := range median.Series {
		median.Series[i].Pair = i + 1
		high.Series[i].Pair = i + 1
	}
	median.Series = append(median.Series, reported)

	delays := plot.Figure{
		Name: "c", Title: "Median relative error by size and delay (Fig. 10, bottom)",
		Caption: "LDS 17,500 × 4, the same flows, by their mean delay over that of all packets.",
		X:       binAxis(), Y: plot.Axis{Label: "relative error (%)", Scale: plot.Log},
	}
	for _, m := range byDelay {
		delays.Series = append(delays.Series, m.byBin("delay "+m.name, false))
	}
	result.Figures = []plot.Figure{median, high, delays}

	large, small := sketches[0].median(fromThousand), mean.median(fromThousand)
	result.Claims = append(result.Claims,
		experiment.Claim{
			What: "median error with 7,000 cells, " + classes[fromThousand].name + ", against the mean of all packets", Paper: "significantly better",
			Ours: experiment.Percent(large) + " against " + experiment.Percent(small), Verdict: experiment.Holds(large < small/2),
		},
		experiment.Claim{
			What: "errors by delay, " + classes[fromHundred].name + ": less than half the mean of all, near the mean, and above 1.75 times", Paper: "slightly larger at both ends",
			Ours:    experiment.Percent(byDelay[0].median(fromHundred)) + ", " + experiment.Percent(byDelay[2].median(fromHundred)) + ", " + experiment.Percent(byDelay[4].median(fromHundred)),
			Verdict: experiment.Holds(byDelay[0].median(fromHundred) > byDelay[2].median(fromHundred) && byDelay[4].median(fromHundred) > byDelay[2].median(fromHundred)),
		},
	)
	result.Tables = []experiment.Table{sizeTable(append(sketches, mean))}
	result.Notes = []string{
		"The paper's numbers are of another trace. Here a flow's delay is far from its neighbours', by a factor of 2.5 up or down as a rule; what they add to its cell weighs the more.",
		"Errors are relative: of the same deviation in nanoseconds, a fast flow has the larger error.",
	}
	return result, nil
}

// sizeTable has a row for each bin.
func sizeTable(methods []*method) experiment.Table {
	t := experiment.Table{Name: "sizes", Title: "Relative error of flows' means: median / 95th percentile", Columns: []string{"packets", "flows"}}
	for _, m := range methods {
		t.Columns = append(t.Columns, m.name)
	}
	for b := range bins {
		row := []string{bins[b].name, experiment.Number(float64(len(methods[0].found[firstBin+b].all)))}
		for _, m := range methods {
			row = append(row, m.cell(firstBin+b))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
