package figlda

import (
	"fmt"
	"math"
	"slices"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/estimate"
)

// KnownLoss measures with one bank, which samples as the loss requires.
var KnownLoss = experiment.Experiment{
	Name: "lda-4", Title: "One bank, sampling set for the loss rate (Fig. 4a–c)",
	Claim: "With one bank of 1,024 cells and the sampling set for the loss rate, the average delay is off by less than 0.3 % on average " +
		"below 0.1 % loss and by less than 4 % at 20 %; every estimate is within the 98 % bounds of eq. (1); the deviation by eq. (5) is off " +
		"by less than 10 % for Weibull and 20 to 50 % for Pareto delays, whatever the loss; and the sample is almost twice what eq. (2) " +
		"promises (section IV-A, Fig. 4a–c).",
	Weight: 32, Quick: 3, Measure: measureKnownLoss,
}

func measureKnownLoss(run *experiment.Run) {
	laws := allLaws()
	of := new(sweep)
	for _, law := range laws {
		t := NewTrace(run, law)
		var found []*point
		for _, share := range losses {
			found = append(found, t.Lose(run, share).measure(run))
		}
		of.names, of.found = append(of.names, law.Name), append(of.found, found)
	}
	of.table(run, fmt.Sprintf("Relative error of the average delay (Fig. 4a), average over %d runs of one bank of %s cells, sampling "+
		"p = 0.5·m/(L+1)", runs, number(rows)), percent, ofMean)
	judgeMeans(run, of)
	judgeBounds(run, of.found[0])
	of.table(run, "Relative error of the standard deviation by the paper's eq. (5) (Fig. 4c)", percent, ofPaper)
	of.table(run, "The same, count-conditioned from the same cells", percent, ofOurs)
	judgeDeviations(run, of)
	compareSamples(run, of.found[0])
	judgeTraces(run)
	run.Note("Sampling here is exactly p = αm/(L+1), as in the paper: a mask before the aggregator, whose one bank takes all that it is "+
		"shown.",
		"A variance by eq. (5) that comes out negative counts as a deviation of 0, an error of 100 %. The paper prints eq. (3) with μ² inside "+
			"the fraction; the variance is F − μ².",
		"The bound of eq. (2) is at its loosest where p = 1: there the sample is up to twice what it promises. Where p < 1 the exact "+
			"expectation is pR(1 − p/m)^L, that is e^−0.5 instead of 0.5 times pR, or 1.21 times the bound.",
		"Delays of 200 ± 10 ns are not in the paper: a path on which little varies, where eq. (5) measures the chance in the counts of cells.",
		"Pareto delays of shape 3 have no fourth moment: the square of a sample's deviation hangs on whether the sample has one of the few "+
			"longest delays. At high loss, where the sample is small, no estimate from it is good, even with every delay known.",
		"Averages are judged with a margin of two standard errors, as if all errors were independent and normal.")
}

// judgeMeans judges the errors of the mean.
func judgeMeans(run *experiment.Run, of *sweep) {
	worst := func(counts func(loss float64) bool) float64 {
		w := 0.0
		for i := range Laws {
			w = max(w, of.worst(i, counts, ofMean))
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
	for k := range traces {
		law := Laws[0]
		law.Name += fmt.Sprint(", trace ", k+2) // the seed follows from it
		pt := NewTrace(run, law).Lose(run, share).measure(run)
		errors = append(errors, pt.errors...)
		mean.Merge(pt.means)
	}
	run.Between("greatest relative error of the mean at 6 % loss, of all runs on three other traces",
		"≤ 3 %", slices.Max(errors), 0, 0.03, 0)
	run.Between("the same, on average", "about 0.2 %", mean.Mean(), 0.0015, 0.0025, chance(len(errors)))
}

// judgeDeviations judges the errors of the deviation, by eq. (5) and otherwise. It averages over all loss
// rates, because the paper finds them independent of the rate.
func judgeDeviations(run *experiment.Run, of *sweep) {
	slack := chance(runs * len(losses))
	var paper, ours []float64
	for _, points := range of.found {
		var eq5, conditioned estimate.Moments
		for _, pt := range points {
			eq5.Merge(pt.paper)
			conditioned.Merge(pt.ours)
		}
		paper, ours = append(paper, eq5.Mean()), append(ours, conditioned.Mean())
	}
	for i, law := range allLaws() {
		claimed, low, high := "< 10 %", 0.0, 0.1
		if law.heavy {
			claimed, low, high = "20–50 %", 0.2, 0.5
		}
		if i < len(Laws) {
			run.Between("average relative error of the deviation by eq. (5) over all loss rates, "+law.Name, claimed, paper[i], low, high, slack)
		}
		run.Beats("deviation over all loss rates, "+law.Name+": eq. (5), and count-conditioned from the same cells", ours[i], paper[i])
	}
	for _, aim := range []struct{ loss, most float64 }{{0.001, 0.03}, {0.01, 0.06}, {0.2, 0.12}} {
		worst := 0.0
		for i := range of.names {
			if i != pareto3 {
				worst = max(worst, of.worst(i, func(x float64) bool { return x == aim.loss }, ofOurs))
			}
		}
		run.Within("error of the count-conditioned deviation at "+percent(aim.loss)+" loss, worst of all but Pareto 3",
			"ours: at most "+percent(aim.most), worst, aim.most, chance(runs))
	}
}

// judgeBounds is Fig. 4b: the estimates of all runs, and the bounds, which follow from
// the smallest sample and the true deviation.
func judgeBounds(run *experiment.Run, points []*point) {
	outside, most := 0, 0.0
	table := run.Table("Estimated average delay, "+Laws[0].Name+" (Fig. 4b), ns, and the 98 % bound of eq. (1) for the smallest sample",
		"loss", "truth", "bound", "least estimate", "greatest")
	for k, pt := range points {
		around, least, greatest := pt.truth, math.Inf(1), 0.0
		for _, r := range pt.results {
			around.N, least, greatest = min(around.N, r.N), min(least, r.Mean), max(greatest, r.Mean)
		}
		limits := estimate.HoeffdingInterval(around, bound)
		for _, result := range pt.results {
			if !limits.Contains(result.Mean) {
				outside++
			}
			most = max(most, math.Abs(result.Mean-around.Mean)/(limits.High-around.Mean))
		}
		table.Row(percent(losses[k]), number(around.Mean), number(limits.Low)+" to "+number(limits.High), number(least), number(greatest))
	}
	run.Holds(fmt.Sprintf("estimates outside the 98 %% bounds of eq. (1), of %d", runs*len(points)), "none",
		fmt.Sprintf("%d; the largest error is %s of its bound", outside, percent(most)), outside == 0)
}

// compareSamples compares the sample with the bound of eq. (2), on average where not all packets are sampled.
func compareSamples(run *experiment.Run, points []*point) {
	var ratios estimate.Moments
	for _, pt := range points {
		if pt.presampled < 1 {
			ratios.Add(pt.sample.Mean() / ((1 - alpha) * pt.presampled * float64(pt.received)))
		}
	}
	run.Holds("effective sample over the bound of eq. (2), where p < 1", "almost 2", number(ratios.Mean()), ratios.Mean() >= 1.6)
}
