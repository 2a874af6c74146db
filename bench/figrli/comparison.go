package figrli

import (
	"context"
	"fmt"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
)

var comparison = experiment.Experiment{
	Name:   "rli-10",
	Group:  group,
	Title:  "Against trajectory sampling, the multiflow estimator and probes (Fig. 10)",
	Claim:  "On the flows that packet sampling at 0.1 % finds, at high utilisation, most of RLI's errors are below 1 %: 500 times less than trajectory sampling, of which half are above 80 %, and almost 100 times less than the multiflow estimator; RLI-L is in between (section V-C, Fig. 10a). At all utilisations RLI is in many cases ten times better than the multiflow estimator (Fig. 10b).",
	Weight: 40, Quick: 1.5,
	Run: runComparison,
}

func runComparison(ctx context.Context, run *experiment.Run) (experiment.Result, error) {
	packets := run.Pick(60_000, 1_500_000)
	kinds, notes, err := everyKind()
	if err != nil {
		return experiment.Result{}, err
	}
	names := []string{"trajectory sampling", "multiflow estimator", byLeft.name, byLine.name, byPeriod.name, "RLI, references ahead"}
	result := experiment.Result{
		Config: map[string]any{"packets": packets, "injector": adaptive, "sampled": sampled, "utilisations": utilisations},
		Notes: append(notes,
			"Both routers sample the same packets, 0.1 % of them by hash. A flow begins with its first sampled packet, and the truth is of its packets from there on; RLI measures all of those. Trajectory sampling averages the flow's sampled delays, and the multiflow estimator those of all flows' first and last samples within the flow's own.",
			"RLI's references go behind packets, and in another run ahead of them; claims of RLI are judged by the better.",
			"Probes are Poisson, of 48 bytes, as many as the references in the same time. A flow is told the mean of those between its first packet and its last, or the latest before it; over all flows, beside RLI over all flows.",
		),
	}
	table := experiment.Table{
		Title:   "Relative error of flows' means: median / 75th percentile",
		Columns: append(append([]string{"traffic", "utilisation", "flows sampled"}, names...), "all flows: "+byLeft.name, byLine.name, byPeriod.name, "probes"),
	}
	steps, done := 3*len(kinds)*len(utilisations), 0
	step := func() error { return run.Progress(ctx, done, steps) }
	for _, kind := range kinds {
		byLoad := plot.Figure{
			Name: "b-" + kind.slug, Title: "Median error of the sampled flows by utilisation, " + kind.name + " (Fig. 10b)",
			Caption: "The flows that sampling finds, from their first sampled packet on.",
			X:       loadAxis, Y: plot.Axis{Label: "median relative error (%)", Scale: plot.Log},
			Series: make([]plot.Series, len(names)),
		}
		var series []plot.Series
		for i, name := range names {
			byLoad.Series[i] = plot.Series{Name: name, Paper: name != byPeriod.name, Pair: i + 1}
		}
		for _, u := range utilisations {
			s := setting{kind: kind, utilisation: u, packets: kind.enough(packets), injector: adaptive}
			p, err := simulate(run, s, step)
			if err != nil {
				return experiment.Result{}, err
			}
			done++
			known := p.sample()
			lists := [][]float64{known.trajectory, known.multiflow}
			var everywhere [][]float64
			for _, m := range methods {
				r, err := p.receive(p.config(m), known.born)
				if err != nil {
					return experiment.Result{}, err
				}
				lists = append(lists, p.judge(r, known.truth).mean)
				a, _, err := p.measure(m)
				if err != nil {
					return experiment.Result{}, err
				}
				everywhere = append(everywhere, a.mean)
			}
			s.ahead = true
			q, err := simulate(run, s, step)
			if err != nil {
				return experiment.Result{}, err
			}
			done++
			also := q.sample()
			r, err := q.receive(q.config(byLine), also.born)
			if err != nil {
				return experiment.Result{}, err
			}
			lists = append(lists, q.judge(r, also.truth).mean)
			probed, err := simulate(run, setting{kind: kind, utilisation: u, packets: kind.enough(packets), probes: float64(p.cost.Elapsed) / float64(p.cost.References)}, step)
			if err != nil {
				return experiment.Result{}, err
			}
			done++
			everywhere = append(everywhere, probed.byProbes())

			row := []string{kind.name, percent(u), fmt.Sprint(len(some(known.trajectory)))}
			for _, list := range append(lists[:len(lists):len(lists)], everywhere...) {
				row = append(row, percent(median(list))+" / "+percent(quantile(list, 0.75)))
			}
			table.Rows = append(table.Rows, row)
			for i, list := range lists {
				byLoad.Series[i].Add(100*u, 100*median(list))
				if u == levels[0].utilisation {
					c := plot.CDF(names[i], some(list), 150)
					c.Paper, c.Pair = names[i] != byPeriod.name, i+1
					series = append(series, c)
				}
			}
			where := fmt.Sprintf("%s, %s", kind.name, percent(u))
			trajectory, multiflow, left, ours := median(lists[0]), median(lists[1]), median(lists[2]), median(lists[4])
			line := min(median(lists[3]), median(lists[5])) // wherever the references go
			if u == levels[0].utilisation {
				order := experiment.AsGood
				if !(line < left && left < multiflow && multiflow <= 1.05*trajectory) {
					order = experiment.DoesNotHold
				}
				result.Claims = append(result.Claims,
					experiment.Claim{What: where + ": trajectory sampling's median error over RLI's", Paper: "500", Ours: experiment.Number(trajectory / line), Verdict: atLeast(trajectory/line, 500)},
					experiment.Claim{What: where + ": the multiflow estimator's over RLI's", Paper: "almost 100", Ours: experiment.Number(multiflow / line), Verdict: atLeast(multiflow/line, 90)},
					experiment.Claim{What: where + ": RLI below RLI-L below multiflow below trajectory sampling", Paper: "in this order", Ours: percent(line) + ", " + percent(left) + ", " + percent(multiflow) + ", " + percent(trajectory), Verdict: order},
				)
			} else {
				result.Claims = append(result.Claims, experiment.Claim{What: where + ": the multiflow estimator's median error over RLI's", Paper: "often over 10", Ours: experiment.Number(multiflow / line), Verdict: atLeast(multiflow/line, 10)})
			}
			result.Claims = append(result.Claims, experiment.Claim{What: where + ": busy-aware's median error on the same flows", Paper: percent(min(trajectory, multiflow, left, line)) + " (best of the others)", Ours: percent(ours), Verdict: experiment.Judge(ours, min(trajectory, multiflow, left, line), 0.1)})
		}
		result.Figures = append(result.Figures, plot.Figure{
			Name: "a-" + kind.slug, Title: fmt.Sprintf("Error of the sampled flows at %s, %s (Fig. 10a)", percent(levels[0].utilisation), kind.name),
			Caption: "The flows that sampling finds, from their first sampled packet on.",
			X:       plot.Axis{Label: "relative error of the mean delay", Scale: plot.Log, Min: 1e-5, Max: 10}, Y: plot.Axis{Label: "share of flows", Min: 0, Max: 1},
			Series: series,
		}, byLoad)
	}
	result.Tables = []experiment.Table{table}
	return result, run.Progress(ctx, 1, 1)
}

// atLeast judges how many times better the paper says its method is: as good
// from four fifths of that on.
func atLeast(ours, paper float64) experiment.Verdict {
	if ours >= 0.8*paper {
		return experiment.AsGood
	}
	return experiment.DoesNotHold
}
