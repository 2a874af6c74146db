package figlda

import (
	"context"
	"fmt"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/estimate"
)

var unknownLoss = experiment.Experiment{
	Name:   "lda-5",
	Group:  group,
	Title:  "Several banks, for a loss rate that is not known (Fig. 5a–c)",
	Claim:  "Two, three and four banks of 1,024 cells together, tuned to fixed loss rates, get samples not too far from those of one bank tuned to the actual loss, and errors that are much alike; four banks are the worst at high loss, and two banks suit most deployments (section IV-B, Fig. 5a–c).",
	Weight: 12, Quick: 1,
	Run: runUnknownLoss,
}

func runUnknownLoss(ctx context.Context, run *experiment.Run) (experiment.Result, error) {
	step := run.Steps(ctx, len(bankings)*len(losses)*runs)
	t, err := NewTrace(run, Laws[0])
	if err != nil {
		return experiment.Result{}, err
	}
	figures := []plot.Figure{
		{Name: "a", Title: "Effective sample size (Fig. 5a)", X: LossAxis, Y: plot.Axis{Label: "packets", Scale: plot.Log},
			Caption: fmt.Sprintf("Average over %d runs, %s delays. Lines without markers: the exact expectation.", runs, t.Law.Name)},
		{Name: "b", Title: "Relative error of the average delay (Fig. 5b)", X: LossAxis, Y: plot.Axis{Label: "relative error (%)", Scale: plot.Log},
			Caption: "The same runs."},
		{Name: "c", Title: "Relative error of the standard deviation (Fig. 5c)", X: LossAxis, Y: plot.Axis{Label: "relative error (%)", Scale: plot.Log},
			Caption: "The same runs. Dashed: the paper's eq. (5). Solid: count-conditioned, from the same cells."},
	}
	points := make([][]*point, len(bankings)) // by loss rate, for each banking
	for _, share := range losses {
		p, err := t.Lose(run, share, 0)
		if err != nil {
			return experiment.Result{}, err
		}
		for i, b := range bankings {
			pt, err := p.measure(run, b, runs, step)
			if err != nil {
				return experiment.Result{}, err
			}
			points[i] = append(points[i], pt)
		}
	}
	for i, b := range bankings {
		sample := plot.Series{Name: b.name, Pair: i + 1, Kind: plot.Markers}
		expected := plot.Series{Pair: i + 1, Kind: plot.Line}
		mean := plot.Series{Name: b.name}
		paper := plot.Series{Name: b.name + ", eq. (5)", Pair: i + 1, Paper: true}
		ours := plot.Series{Name: b.name + ", ours", Pair: i + 1}
		for k, pt := range points[i] {
			x := 100 * losses[k]
			sample.Add(x, pt.sample.Mean())
			expected.Add(x, pt.expected)
			mean.Add(x, 100*pt.means.Mean())
			paper.Add(x, 100*pt.paper.Mean())
			ours.Add(x, 100*pt.ours.Mean())
		}
		figures[0].Series = append(figures[0].Series, sample, expected)
		figures[1].Series = append(figures[1].Series, mean)
		figures[2].Series = append(figures[2].Series, paper, ours)
	}

	table := experiment.Table{Name: "banks", Title: "Sample against that of the bank tuned to the actual loss", Columns: []string{"loss rate"}}
	for _, b := range bankings[1:] {
		table.Columns = append(table.Columns, b.name)
	}
	var share [4]estimate.Moments // of the optimum's sample, by banking, from 0.1 % to 10 % loss
	for k, loss := range losses {
		row := []string{experiment.Percent(loss)}
		for i := range bankings[1:] {
			ratio := points[i+1][k].sample.Mean() / points[0][k].sample.Mean()
			row = append(row, experiment.Percent(ratio))
			if loss >= 0.001 && loss <= 0.1 {
				share[i+1].Add(ratio)
			}
		}
		table.Add(row...)
	}
	last := len(losses) - 1
	two, four := points[1][last], points[3][last]
	fourWorst := experiment.AsGood
	if four.sample.Mean() >= two.sample.Mean() {
		fourWorst = experiment.Win
	}
	// "Not too far" is not a number: a third of the sample is an error larger by
	// a factor of 1.7.
	far := experiment.AsGood
	if min(share[1].Mean(), share[2].Mean(), share[3].Mean()) < 1.0/3 {
		far = experiment.DoesNotHold
	}
	small := experiment.Number
	return experiment.Result{
		Figures: figures,
		Tables:  []experiment.Table{table},
		Claims: []experiment.Claim{
			{What: "sample, as a share of that of one bank tuned to the actual loss, average from 0.1 % to 10 % loss: two, three and four banks", Paper: "not too far (a third, say)",
				Ours:    experiment.Percent(share[1].Mean()) + ", " + experiment.Percent(share[2].Mean()) + ", " + experiment.Percent(share[3].Mean()),
				Verdict: far},
			{What: "sample at 20 % loss: four banks, against two", Paper: "four banks are the worst", Ours: small(four.sample.Mean()) + " against " + small(two.sample.Mean()), Verdict: fourWorst},
		},
		Config: map[string]any{
			"packets": run.Pick(quickSize, fullSize), "runs": runs, "losses": losses, "law": t.Law.Name, "mean delay ns": meanDelay, "alpha": alpha,
			"two banks": points[1][0].config, "three banks": points[2][0].config, "four banks": points[3][0].config,
		},
		Notes: []string{
			"In the library a bank's rows and the inverse of its sampling probability are powers of two, as in section V's hardware; so the three banks have 512, 256 and 256 cells instead of a third each, and sampling is the power of two below αm/(L+1).",
			"A packet is in one bank only: a bank with the sampling p has p less what the next one takes. So the four banks' last two, for 5 and 10 %, share what two banks' second one has, with as many cells, and four banks are not behind at high loss.",
		},
	}, nil
}
