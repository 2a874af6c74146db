package figlda

import (
	"context"
	"fmt"
	"math"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/estimate"
)

var knownLoss = experiment.Experiment{
	Name:   "lda-4",
	Group:  group,
	Title:  "One bank, sampling set for the loss rate (Fig. 4a–c)",
	Claim:  "With one bank of 1,024 cells and the sampling set for the loss rate, the average delay is off by less than 0.3 % on average below 0.1 % loss and by less than 4 % at 20 %; every estimate is within the 98 % bounds of eq. (1); the deviation by eq. (5) is off by less than 10 % for Weibull and 20 to 50 % for Pareto delays, whatever the loss; and the sample is almost twice what eq. (2) promises (section IV-A, Fig. 4a–c).",
	Weight: 20, Quick: 2,
	Run: runKnownLoss,
}

func runKnownLoss(ctx context.Context, run *experiment.Run) (experiment.Result, error) {
	step := run.Steps(ctx, len(Laws)*len(losses)*runs)
	byLaw := make([][]*point, len(Laws))
	for i, law := range Laws {
		t, err := NewTrace(run, law)
		if err != nil {
			return experiment.Result{}, err
		}
		for _, share := range losses {
			p, err := t.Lose(run, share, 0)
			if err != nil {
				return experiment.Result{}, err
			}
			pt, err := p.measure(run, bankings[0], runs, step)
			if err != nil {
				return experiment.Result{}, err
			}
			byLaw[i] = append(byLaw[i], pt)
		}
	}

	a, c := errorFigures(byLaw)
	b, inside := estimatesFigure(byLaw[0])
	samples, overBound := sampleTable(byLaw[0])
	var names []string
	for _, law := range Laws {
		names = append(names, law.Name)
	}
	result := experiment.Result{
		Figures: []plot.Figure{a, b, c},
		Tables:  []experiment.Table{samples},
		Config: map[string]any{
			"packets": run.Pick(quickSize, fullSize), "runs": runs, "rows": rows, "sum bits": sumBits,
			"alpha": alpha, "losses": losses, "laws": names, "mean delay ns": meanDelay,
		},
		Notes: []string{
			"Sampling here is exactly p = αm/(L+1), as in the paper: a mask before the aggregator, whose one bank takes all that it is shown.",
			"A variance by eq. (5) that comes out negative counts as a deviation of 0, an error of 100 %. The paper prints eq. (3) with μ² inside the fraction; the variance is F − μ².",
			"The bound of eq. (2) is at its loosest where p = 1: there the sample is up to twice what it promises. Where p < 1 the exact expectation is pR(1 − p/m)^L, that is e^−0.5 instead of 0.5 times pR, or 1.21 times the bound.",
			"The claims of averages are judged with a margin of two standard errors of an average of ten.",
		},
	}
	result.Claims = append(meanClaims(byLaw), inside)
	result.Claims = append(result.Claims, deviationClaims(byLaw)...)
	result.Claims = append(result.Claims, overBound)
	return result, nil
}

// errorFigures are Figs. 4a and 4c.
func errorFigures(byLaw [][]*point) (a, c plot.Figure) {
	a = plot.Figure{
		Name: "a", Title: "Relative error of the average delay (Fig. 4a)",
		Caption: fmt.Sprintf("Average over %d runs of one bank of %s cells, sampling p = 0.5·m/(L+1).", runs, experiment.Number(rows)),
		X:       LossAxis, Y: plot.Axis{Label: "relative error (%)", Scale: plot.Log},
	}
	c = plot.Figure{
		Name: "c", Title: "Relative error of the standard deviation (Fig. 4c)",
		Caption: "The same runs. Dashed: the paper's eq. (5). Solid: the count-conditioned deviation, from the same cells.",
		X:       LossAxis, Y: plot.Axis{Label: "relative error (%)", Scale: plot.Log},
	}
	for i, law := range Laws {
		mean := plot.Series{Name: law.Name}
		paper := plot.Series{Name: law.Name + ", eq. (5)", Pair: i + 1, Paper: true}
		ours := plot.Series{Name: law.Name + ", ours", Pair: i + 1}
		for k, pt := range byLaw[i] {
			x := 100 * losses[k]
			mean.Add(x, 100*pt.means.Mean())
			paper.Add(x, 100*pt.paper.Mean())
			ours.Add(x, 100*pt.ours.Mean())
		}
		a.Series = append(a.Series, mean)
		c.Series = append(c.Series, paper, ours)
	}
	return a, c
}

// meanClaims judge the errors of the mean.
func meanClaims(byLaw [][]*point) []experiment.Claim {
	mean := func(pt *point) float64 { return pt.means.Mean() }
	low := worstOf(byLaw, mean, func(loss float64) bool { return loss < 0.001 })
	high := worstOf(byLaw, mean, func(loss float64) bool { return loss == 0.2 })
	return []experiment.Claim{
		{What: "average relative error of the mean below 0.1 % loss, worst of the distributions", Paper: "< 0.3 %", Ours: experiment.Percent(low), Verdict: Verdict(low, 0.003, runs)},
		{What: "the same at 20 % loss", Paper: "< 4 %", Ours: experiment.Percent(high), Verdict: Verdict(high, 0.04, runs)},
	}
}

// deviationClaims judge the errors of the deviation, by eq. (5) and otherwise,
// averaged over all loss rates, since the paper finds them independent of it.
func deviationClaims(byLaw [][]*point) []experiment.Claim {
	var claims []experiment.Claim
	for i, family := range []struct {
		name, claimed string
		limit         float64
	}{{"Weibull 0.6 and 0.8", "< 10 %", 0.1}, {"Pareto 3 and 5", "20–50 %", 0.5}} {
		var paper, ours [2]estimate.Moments
		for k, points := range byLaw[2*i : 2*i+2] {
			for _, pt := range points {
				paper[k].Merge(pt.paper)
				ours[k].Merge(pt.ours)
			}
		}
		both := func(m [2]estimate.Moments) string {
			return experiment.Percent(m[0].Mean()) + " and " + experiment.Percent(m[1].Mean())
		}
		worst, worstOurs := max(paper[0].Mean(), paper[1].Mean()), max(ours[0].Mean(), ours[1].Mean())
		claims = append(claims, experiment.Claim{
			What:  "average relative error of the deviation by eq. (5) over all loss rates, " + family.name,
			Paper: family.claimed, Ours: both(paper),
			Verdict: limited(worst, family.limit, runs),
		}, experiment.Claim{
			What:  "the same: eq. (5), and count-conditioned from the same cells",
			Paper: both(paper), Ours: both(ours),
			Verdict: experiment.Judge(worstOurs, worst, 0.1),
		})
	}
	return claims
}

// LossAxis is the X axis of most figures.
var LossAxis = plot.Axis{Label: "loss rate (%)", Scale: plot.Log}

// worstOf is the greatest value of any law at the loss rates that count.
func worstOf(byLaw [][]*point, value func(*point) float64, counts func(loss float64) bool) float64 {
	worst := math.Inf(-1)
	for _, points := range byLaw {
		for k, pt := range points {
			if counts(losses[k]) {
				worst = max(worst, value(pt))
			}
		}
	}
	return worst
}

// estimatesFigure is Fig. 4b. Its claim is about the estimates of all runs and
// the bounds, which follow from the smallest sample and the true deviation.
func estimatesFigure(points []*point) (f plot.Figure, inside experiment.Claim) {
	const shown = 5
	outside, most := 0, 0.0
	f = plot.Figure{
		Name: "b", Title: "Estimated average delay, " + Laws[0].Name + " (Fig. 4b)",
		Caption: fmt.Sprintf("Five of the %d runs and the truth; the band is the 98 %% bound of eq. (1) for the run with the smallest sample.", runs),
		X:       LossAxis, Y: plot.Axis{Label: "average delay (ns)"},
	}
	band := plot.Series{Name: "98 % bound", Kind: plot.Band}
	truth := plot.Series{Name: "truth", Kind: plot.Line}
	var each [shown]plot.Series
	for r := range each {
		each[r] = plot.Series{Name: fmt.Sprintf("run %d", r+1), Kind: plot.Markers}
	}
	for k, pt := range points {
		x := 100 * losses[k]
		around := pt.truth
		truth.Add(x, around.Mean)
		for _, r := range pt.results {
			around.N = min(around.N, r.N)
		}
		limits := estimate.HoeffdingInterval(around, bound)
		band.AddRange(x, around.Mean, limits.Low, limits.High)
		for r, result := range pt.results {
			if !limits.Contains(result.Mean) {
				outside++
			}
			most = max(most, math.Abs(result.Mean-around.Mean)/(limits.High-around.Mean))
			if r < shown {
				each[r].Add(x, result.Mean)
			}
		}
	}
	f.Series = append([]plot.Series{band, truth}, each[:]...)
	inside = experiment.Claim{
		What:  fmt.Sprintf("estimates outside the 98 %% bounds of eq. (1), of %d", runs*len(points)),
		Paper: "none", Ours: fmt.Sprintf("%d; the largest error is %s of its bound", outside, experiment.Percent(most)),
		Verdict: experiment.AsGood,
	}
	if outside > 0 {
		inside.Verdict = experiment.DoesNotHold
	}
	return f, inside
}

// sampleTable compares the sample with the bound of eq. (2) and with its exact
// expectation. Its claim is of the average ratio to the former, where not all
// packets are sampled.
func sampleTable(points []*point) (experiment.Table, experiment.Claim) {
	t := experiment.Table{
		Name: "sample", Title: "Effective sample size, " + Laws[0].Name,
		Columns: []string{"loss rate", "sample", "bound of eq. (2)", "ratio", "exact expectation", "ratio"},
	}
	var ratios estimate.Moments
	for k, pt := range points {
		promised := (1 - alpha) * pt.presampled * float64(pt.received)
		got := pt.sample.Mean()
		if pt.presampled < 1 {
			ratios.Add(got / promised)
		}
		t.Add(experiment.Percent(losses[k]), experiment.Number(got), experiment.Number(promised), fmt.Sprintf("%.2f", got/promised),
			experiment.Number(pt.expected), fmt.Sprintf("%.2f", got/pt.expected))
	}
	over := experiment.Claim{
		What: "effective sample over the bound of eq. (2), where p < 1", Paper: "almost 2",
		Ours: experiment.Number(ratios.Mean()), Verdict: experiment.AsGood,
	}
	if ratios.Mean() < 1.6 {
		over.Verdict = experiment.DoesNotHold
	}
	return t, over
}
