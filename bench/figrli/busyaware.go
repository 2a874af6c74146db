package figrli

import (
	"context"
	"fmt"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/estimate"
)

var busyAware = experiment.Experiment{
	Name:   "ours-rli-busy",
	Group:  oursGroup,
	Title:  "Busy periods against straight lines",
	Claim:  "With the same references and records, what a departure tells of busy periods leaves at most a quarter of RLI's median error at 20 and 55 % utilisation, and never more than 1.1 of it.",
	Weight: 28, Quick: 1.5,
	Run: runBusyAware,
}

func runBusyAware(ctx context.Context, run *experiment.Run) (experiment.Result, error) {
	packets := run.Pick(80_000, 1_000_000)
	kinds, notes, err := everyKind()
	if err != nil {
		return experiment.Result{}, err
	}
	type variant struct {
		method
		ahead bool
		name  string
	}
	variants := []variant{
		{byLeft, false, "RLI-L"}, {byLine, false, "RLI"}, {byPeriod, false, "busy-aware"},
		{byLine, true, "RLI, references ahead"}, {byPeriod, true, "busy-aware, references ahead"},
	}
	result := experiment.Result{
		Config: map[string]any{"packets": packets, "injector": adaptive, "utilisations": utilisations},
		Notes: append(notes,
			"References go directly behind their packet, where the busy-aware method makes the most of them, or ahead of it, where they meet what packets meet and RLI gains the most. So RLI with references ahead is the stronger rival, and it is here as well; the paper does not say where its references go.",
			"Where flows have many packets, what is left of an error is a bias that all of them share, and with it the mean of all packets, in brackets. There RLI with references ahead, which is unbiased as long as delays change slowly from one reference to the next, can be the better one.",
		),
	}
	table := experiment.Table{Title: "Relative error of flows' means: median / 75th percentile; in brackets, that of the mean of all packets", Columns: []string{"traffic", "utilisation", "packets that found the link idle"}}
	for _, v := range variants {
		table.Columns = append(table.Columns, v.name)
	}
	steps, done := 2*len(kinds)*len(utilisations), 0
	for _, kind := range kinds {
		figure := plot.Figure{
			Name: kind.slug, Title: "Median error of flows' means, " + kind.name,
			Caption: "Adaptive injection; bars up to the 75th percentile. Hollow: the paper's estimators.",
			X:       loadAxis, Y: plot.Axis{Label: "relative error (%)", Scale: plot.Log},
			Series: make([]plot.Series, len(variants)),
		}
		for v := range variants {
			figure.Series[v] = plot.Series{Name: variants[v].name, Paper: variants[v].paper, Pair: v + 1}
		}
		for _, u := range utilisations {
			row := []string{kind.name, percent(u), ""}
			medians := make([]float64, len(variants))
			for _, ahead := range []bool{false, true} {
				p, err := simulate(run, setting{kind: kind, utilisation: u, packets: kind.enough(packets), injector: adaptive, ahead: ahead}, func() error { return run.Progress(ctx, done, steps) })
				if err != nil {
					return experiment.Result{}, err
				}
				done++
				for v := range variants {
					if variants[v].ahead != ahead {
						continue
					}
					a, r, err := p.measure(variants[v].method)
					if err != nil {
						return experiment.Result{}, err
					}
					total, err := r.Total()
					if err != nil {
						return experiment.Result{}, err
					}
					if v == 2 {
						row[2] = percent(float64(r.Counts().Idle) / float64(r.Counts().Packets))
					}
					medians[v] = median(a.mean)
					upper := quantile(a.mean, 0.75)
					row = append(row, fmt.Sprintf("%s / %s (%s)", percent(medians[v]), percent(upper), percent(estimate.RelativeError(total.Mean, p.all.Mean()))))
					// A median of 0, where half of the flows always found the
					// link idle, has no place on the axis.
					figure.Series[v].AddRange(100*u, max(100*medians[v], shown), max(100*medians[v], shown), max(100*upper, shown))
				}
			}
			table.Rows = append(table.Rows, row)
			bar, text := 1.1, "at most 1.1 of RLI's"
			if u <= 0.55 {
				bar, text = 0.25, "at most a quarter of RLI's"
			}
			verdict := experiment.Win
			switch ratio := medians[2] / medians[1]; {
			case ratio > bar:
				verdict = experiment.Loss
			case ratio > 0.9:
				verdict = experiment.AsGood
			}
			where := fmt.Sprintf("%s, %s", kind.name, percent(u))
			result.Claims = append(result.Claims,
				experiment.Claim{What: where + ": median error", Paper: text + " " + percent(medians[1]), Ours: fmt.Sprintf("%s (%.2f of it)", percent(medians[2]), medians[2]/medians[1]), Verdict: verdict, Headline: kind.slug == heavyTailed.slug},
				experiment.Claim{What: where + ": against RLI with references ahead", Paper: percent(medians[3]), Ours: percent(medians[2]), Verdict: experiment.Judge(medians[2], medians[3], 0.1)},
			)
		}
		result.Figures = append(result.Figures, figure)
	}
	result.Tables = []experiment.Table{table}
	return result, run.Progress(ctx, 1, 1)
}

// shown is the least error that is drawn, in per cent.
const shown = 0.01
