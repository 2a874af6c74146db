package figlda

import (
	"fmt"
	"math"
	"slices"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/queue/trace"
)

var knownLoss = experiment.Experiment{
	Name: "lda-4", Title: "One bank, sampling set for the loss rate (Fig. 4a–c)",
	Claim: "With one bank of 1,024 cells and the sampling set for the loss rate, the average delay is off by less than 0.3 % on average " +
		"below 0.1 % loss and by less than 4 % at 20 %; every estimate is within the 98 % bounds of eq. (1); the deviation by eq. (5) is off " +
		"by less than 10 % for Weibull and 20 to 50 % for Pareto delays, whatever the loss; and the sample is almost twice what eq. (2) " +
		"promises (section IV-A, Fig. 4a–c).",
	Weight: 26, Quick: 2.5, Measure: measureKnownLoss,
}

// lawSweep is what a bank gave at every loss rate, for each law.
type lawSweep = experiment.Sweep[float64, Law, *point]

func measureKnownLoss(run *experiment.Run) {
	of := &lawSweep{Places: losses, Methods: Laws}
	for _, law := range experiment.Each(run, Laws) {
		t := NewTrace(run, law)
		var points []*point
		for _, share := range experiment.Each(run, losses) {
			points = append(points, t.Lose(run, share, 0).measure(run, bankings[0], runs))
		}
		of.Found = append(of.Found, points)
	}
	run.Draw("a", "Relative error of the average delay (Fig. 4a)",
		fmt.Sprintf("Average over %d runs of one bank of %s cells, sampling p = 0.5·m/(L+1).", runs, number(rows)), LossAxis,
		errorAxis, of.Lines(func(_ int, l Law) plot.Series { return plot.Series{Name: l.Name} }, meanLine)...)
	judgeMeans(run, of)
	drawEstimates(run, of.Found[0])
	run.Draw("c", "Relative error of the standard deviation (Fig. 4c)",
		"The same runs. Dashed: the paper's eq. (5). Solid: the count-conditioned deviation, from the same cells.", LossAxis, errorAxis,
		deviationLines(of, func(l Law) string { return l.Name })...)
	judgeDeviations(run, of)
	compareSamples(run, of.Found[0])
	judgeTraces(run)
	var names []string
	for _, law := range Laws {
		names = append(names, law.Name)
	}
	run.Config("packets", run.Pick(quickSize, fullSize), "runs", runs, "rows", rows, "sum bits", sumBits,
		"alpha", alpha, "losses", losses, "laws", names, "mean delay ns", meanDelay)
	run.Note(
		"Sampling here is exactly p = αm/(L+1), as in the paper: a mask before the aggregator, whose one bank takes all that it is shown.",
		"A variance by eq. (5) that comes out negative counts as a deviation of 0, an error of 100 %. The paper prints eq. (3) with μ² inside "+
			"the fraction; the variance is F − μ².",
		"The bound of eq. (2) is at its loosest where p = 1: there the sample is up to twice what it promises. Where p < 1 the exact "+
			"expectation is pR(1 − p/m)^L, that is e^−0.5 instead of 0.5 times pR, or 1.21 times the bound.",
		"The claims of averages are judged with a margin of two standard errors of an average of ten.",
	)
}

// Axes of most figures.
var (
	LossAxis  = plot.LogAxis("loss rate (%)")
	errorAxis = plot.LogAxis("relative error (%)")
)

func meanLine(line *plot.Series, loss float64, pt *point) { line.Add(100*loss, 100*pt.means.Mean()) }

// deviationLines are, for each method, the errors of the deviation by eq. (5)
// and count-conditioned.
func deviationLines[M any](of *experiment.Sweep[float64, M, *point], name func(M) string) []plot.Series {
	paper := of.Lines(func(k int, m M) plot.Series {
		return plot.Series{Name: name(m) + ", eq. (5)", Pair: k + 1, Paper: true}
	},
		func(line *plot.Series, loss float64, pt *point) { line.Add(100*loss, 100*pt.paper.Mean()) })
	ours := of.Lines(func(k int, m M) plot.Series { return plot.Series{Name: name(m) + ", ours", Pair: k + 1} },
		func(line *plot.Series, loss float64, pt *point) { line.Add(100*loss, 100*pt.ours.Mean()) })
	return interleaved(paper, ours)
}

// interleaved are the elements of lists of one length by turns.
func interleaved[T any](lists ...[]T) []T {
	var all []T
	for i := range lists[0] {
		for _, list := range lists {
			all = append(all, list[i])
		}
	}
	return all
}

// judgeMeans judges the errors of the mean.
func judgeMeans(run *experiment.Run, of *lawSweep) {
	worst := func(counts func(loss float64) bool) float64 {
		w := 0.0
		for i := range Laws {
			w = max(w, of.Worst(i, counts, func(pt *point) float64 { return pt.means.Mean() }))
		}
		return w
	}
	run.Within("average relative error of the mean below 0.1 % loss, worst of the distributions", "< 0.3 %",
		worst(func(loss float64) bool { return loss < 0.001 }), 0.003, chance(runs))
	run.Within("the same at 20 % loss", "< 4 %", worst(func(loss float64) bool { return loss == 0.2 }), 0.04, chance(runs))
}

// judgeTraces judges the errors of the mean at 6 % loss, on other traces.
func judgeTraces(run *experiment.Run) {
	const traces, share = 3, 0.06
	var errors []float64
	var mean estimate.Moments
	for k := range run.Times(traces) {
		law := Laws[0]
		law.Name += fmt.Sprint(", trace ", k+2) // from which the seed follows
		pt := NewTrace(run, law).Lose(run, share, 0).measure(run, bankings[0], runs)
		errors = append(errors, pt.errors...)
		mean.Merge(pt.means)
	}
	run.Between("greatest relative error of the mean at 6 % loss, of all runs on three other traces", "≤ 3 %", slices.Max(errors), 0, 0.03, 0)
	run.Between("the same, on average", "about 0.2 %", mean.Mean(), 0.002, 0.002, chance(len(errors)))
}

// judgeDeviations judges the errors of the deviation, by eq. (5) and otherwise,
// averaged over all loss rates, since the paper finds them independent of it.
func judgeDeviations(run *experiment.Run, of *lawSweep) {
	slack := chance(runs * len(losses))
	var paper, ours []float64
	for _, points := range of.Found {
		var eq5, conditioned estimate.Moments
		for _, pt := range points {
			eq5.Merge(pt.paper)
			conditioned.Merge(pt.ours)
		}
		paper, ours = append(paper, eq5.Mean()), append(ours, conditioned.Mean())
	}
	for i, law := range Laws {
		claimed, low, high := "< 10 %", 0.0, 0.1
		if law.Delays.Law == trace.Pareto {
			claimed, low, high = "20–50 %", 0.2, 0.5
		}
		run.Between("average relative error of the deviation by eq. (5) over all loss rates, "+law.Name, claimed, paper[i], low, high, slack)
		run.Beats("the same: eq. (5), and count-conditioned from the same cells", ours[i], paper[i], 0.1)
	}
}

// drawEstimates is Fig. 4b. Its claim is about the estimates of all runs and
// the bounds, which follow from the smallest sample and the true deviation.
func drawEstimates(run *experiment.Run, points []*point) {
	const shown = 5
	outside, most := 0, 0.0
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
	run.Draw("b", "Estimated average delay, "+Laws[0].Name+" (Fig. 4b)",
		fmt.Sprintf("Five of the %d runs and the truth; the band is the 98 %% bound of eq. (1) for the run with the smallest sample.",
			runs), LossAxis, plot.LinearAxis("average delay (ns)"), append([]plot.Series{band, truth}, each[:]...)...)
	run.Holds(fmt.Sprintf("estimates outside the 98 %% bounds of eq. (1), of %d", runs*len(points)), "none",
		fmt.Sprintf("%d; the largest error is %s of its bound", outside, percent(most)), outside == 0)
}

// compareSamples compares the sample with the bound of eq. (2) and with its
// exact expectation. Its claim is of the average ratio to the former, where
// not all packets are sampled.
func compareSamples(run *experiment.Run, points []*point) {
	t := run.Table("sample", "Effective sample size, "+Laws[0].Name,
		"loss rate", "sample", "bound of eq. (2)", "ratio", "exact expectation", "ratio")
	var ratios estimate.Moments
	for k, pt := range points {
		promised := (1 - alpha) * pt.presampled * float64(pt.received)
		got := pt.sample.Mean()
		if pt.presampled < 1 {
			ratios.Add(got / promised)
		}
		t.Row(percent(losses[k]), number(got), number(promised), fmt.Sprintf("%.2f", got/promised), number(pt.expected),
			fmt.Sprintf("%.2f", got/pt.expected))
	}
	run.Holds("effective sample over the bound of eq. (2), where p < 1", "almost 2", number(ratios.Mean()), ratios.Mean() >= 1.6)
}
