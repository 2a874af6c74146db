package figlds

import (
	"context"
	"fmt"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/lds"
)

var byRows = experiment.Experiment{
	Name:   "lds-rows",
	Group:  Group,
	Title:  "How many rows 70,000 cells should be divided into",
	Claim:  "With half as many cells as flows, a flow has only small collisions, of 50 packets or fewer, in some row with a probability of 0.91 in one row and of 0.985 in four, which is the best number (section 3.1).",
	Weight: 45, Quick: 4,
	Run: runByRows,
}

const (
	cells = 70_000
	small = 50 // packets of a small collision, x in section 3.1
)

var rowsOf = []int{1, 2, 3, 4, 5, 6, 8}

func runByRows(ctx context.Context, run *experiment.Run) (experiment.Result, error) {
	intervals := run.Pick(2, 3)
	var configs []lds.Config
	var paper, decoded []*method
	for _, rows := range rowsOf {
		configs = append(configs, shape(run, cells/rows, 1, everything(rows)...))
		name := fmt.Sprintf("%d × %s", rows, experiment.Number(float64(cells/rows)))
		paper = append(paper, &method{name: name})
		decoded = append(decoded, &method{name: name})
	}
	spared := make([]coverage, len(rowsOf)) // large flows with a small collision in some row
	var large, flows int
	step := run.Steps(ctx, intervals*(1+len(rowsOf)))
	for n := range intervals {
		iv, err := newInterval(run, n)
		if err != nil {
			return experiment.Result{}, err
		}
		observed, err := iv.observe(0, nil, configs...)
		if err != nil {
			return experiment.Result{}, err
		}
		if err := step(); err != nil {
			return experiment.Result{}, err
		}
		flows += len(iv.Flows)
		for i := range iv.Flows {
			if iv.Flows[i].Size <= small {
				continue
			}
			large++
			for r, s := range observed {
				spared[r].all++
				if s.up.Packets(iv.keys[i])-uint64(iv.Flows[i].Size) <= small {
					spared[r].in++
				}
			}
		}
		for r, s := range observed {
			paper[r].add(iv, iv.estimated(s, lds.Estimate), nil)
			_, a, err := iv.decode(ctx, s, iv.packets)
			if err != nil {
				return experiment.Result{}, err
			}
			decoded[r].add(iv, a, nil)
			if err := step(); err != nil {
				return experiment.Result{}, err
			}
		}
	}

	perCell := float64(flows) / float64(intervals) / float64(configs[0].Columns)
	load := perCell * float64(large) / float64(flows)
	axis := plot.Axis{Label: "rows", Min: 1, Max: 8}
	measured := plot.Series{Name: "measured"}
	simple := plot.Series{Name: "the paper's model", Paper: true}
	full := plot.Series{Name: "all collisions added up (SmallSums)"}
	table := experiment.Table{
		Name: "rows", Title: "70,000 cells in rows: median / 95th percentile of the relative error",
		Columns: []string{"rows", "Fig. 6, ≥ 100 packets", "≥ 1,000 packets", "all flows", "joint, counts known, ≥ 100 packets", "≥ 1,000 packets", "all flows", "small collisions"},
	}
	f := plot.Figure{
		Name: "b", Title: "Relative error, flows of 100 packets and more, by rows of 70,000 cells",
		Caption: "Median and 95th percentile of the paper's estimator (Fig. 6) and of joint decoding with known counts, from the same cells.",
		X:       axis, Y: plot.Axis{Label: "relative error (%)", Scale: plot.Log},
	}
	median, high := plot.Series{Name: "Fig. 6, median", Paper: true, Pair: 1}, plot.Series{Name: "Fig. 6, 95th percentile", Paper: true, Pair: 2}
	jointMedian, jointHigh := plot.Series{Name: "joint, median", Pair: 1}, plot.Series{Name: "joint, 95th percentile", Pair: 2}
	best, bestSpared := 0, 0
	for r, rows := range rowsOf {
		x := float64(rows)
		measured.Add(x, 1-spared[r].share())
		simple.Add(x, 1-lds.SmallCollisions(load, rows, 1))
		full.Add(x, 1-lds.SmallSums(perCell, lds.Pareto{Shape: 0.8, Scale: 1}, small, rows, 1))
		median.Add(x, 100*paper[r].median(fromHundred))
		high.Add(x, 100*paper[r].high(fromHundred))
		jointMedian.Add(x, 100*decoded[r].median(fromHundred))
		jointHigh.Add(x, 100*decoded[r].high(fromHundred))
		table.Add(fmt.Sprint(rows), paper[r].cell(fromHundred), paper[r].cell(fromThousand), paper[r].cell(all),
			decoded[r].cell(fromHundred), decoded[r].cell(fromThousand), decoded[r].cell(all), fmt.Sprintf("%.3f", spared[r].share()))
		if paper[r].median(fromHundred) < paper[best].median(fromHundred) {
			best = r
		}
		if spared[r].share() > spared[bestSpared].share() {
			bestSpared = r
		}
	}
	f.Series = []plot.Series{median, high, jointMedian, jointHigh}
	percent := experiment.Percent
	four := 3
	return experiment.Result{
		Figures: []plot.Figure{{
			Name: "a", Title: "Flows of more than 50 packets that share each of their cells with more than 50",
			Caption: fmt.Sprintf("Of %d intervals, and by the paper's model, 1 − Q, with the share of large flows that the traffic has.", intervals),
			X:       axis, Y: plot.Axis{Label: "share of large flows", Scale: plot.Log},
			Series: []plot.Series{simple, full, measured},
		}, f},
		Tables: []experiment.Table{table},
		Claims: []experiment.Claim{
			{What: "large flows with a small collision in their row, 1 row", Paper: "0.91", Ours: fmt.Sprintf("%.3f", spared[0].share()), Verdict: experiment.Holds(spared[0].share() > 0.89)},
			{What: "in some of 4 rows", Paper: "0.985", Ours: fmt.Sprintf("%.3f", spared[four].share()), Verdict: experiment.Holds(spared[four].share() > 0.975)},
			{What: "number of rows with the most such flows", Paper: "4", Ours: fmt.Sprint(rowsOf[bestSpared]), Verdict: experiment.Holds(rowsOf[bestSpared] == 4)},
			{What: "number of rows with the smallest median error by Fig. 6, " + classes[fromHundred].name, Paper: "4",
				Ours: fmt.Sprintf("%d: %s, with 4: %s", rowsOf[best], paper[best].cell(fromHundred), paper[four].cell(fromHundred)), Verdict: experiment.Holds(rowsOf[best] == 4)},
			{What: "joint decoding with 4 rows against Fig. 6 with its best number of rows, " + classes[fromHundred].name, Paper: percent(paper[best].median(fromHundred)),
				Ours: percent(decoded[four].median(fromHundred)), Verdict: experiment.Judge(decoded[four].median(fromHundred), paper[best].median(fromHundred), 0.05)},
		},
		Config: map[string]any{"intervals": intervals, "sketches": configs, "small": small, "large flows a cell": load},
		Notes: []string{
			"The paper's model blames a collision on one large flow. With few cells a row there are many flows to a cell, and their small ones add up: 8 flows to a cell with 4 rows bring more than 50 packets together far more often than one of them does. SmallSums, which adds them up, takes sizes as continuous and without an end, and sees too many.",
		},
	}, nil
}
