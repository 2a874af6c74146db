package figlda

import (
	"fmt"
	"math"
	"slices"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/queue/trace"
)

var knownLoss = experiment.Experiment{
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
			found = append(found, t.Lose(run, share, 0).measure(run, bankings[0], runs))
		}
		of.names, of.found = append(of.names, law.Name), append(of.found, found)
	}
	of.table(run, fmt.Sprintf("Relative error of the average delay (Fig. 4a), average over %d runs of one bank of %s cells, sampling "+
		"p = 0.5·m/(L+1)", runs, number(rows)), percent, ofMean)
	judgeMeans(run, of)
	judgeBounds(run, of.found[0])
	of.deviations(run, "(Fig. 4c)")
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
		"The claims of averages are judged with a margin of two standard errors of an average of ten.")
}

// deviations shows the errors of the deviation by eq. (5), and count-conditioned.
func (s *sweep) deviations(run *experiment.Run, figure string) {
	s.table(run, "Relative error of the standard deviation by the paper's eq. (5) "+figure, percent, ofPaper)
	s.table(run, "The same, count-conditioned from the same cells", percent, ofOurs)
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
		pt := NewTrace(run, law).Lose(run, share, 0).measure(run, bankings[0], runs)
		errors = append(errors, pt.errors...)
		mean.Merge(pt.means)
	}
	run.Between("greatest relative error of the mean at 6 % loss, of all runs on three other traces",
		"≤ 3 %", slices.Max(errors), 0, 0.03, 0)
	run.Between("the same, on average", "about 0.2 %", mean.Mean(), 0.002, 0.002, chance(len(errors)))
}

// judgeDeviations judges the errors of the deviation, by eq. (5) and
// otherwise. It averages over all loss rates, because the paper finds them
// independent of the rate.
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
		if law.Delays.Law == trace.Pareto {
			claimed, low, high = "20–50 %", 0.2, 0.5
		}
		if i < len(Laws) {
			run.Between("average relative error of the deviation by eq. (5) over all loss rates, "+law.Name, claimed, paper[i], low, high, slack)
		}
		run.Beats("deviation over all loss rates, "+law.Name+": eq. (5), and count-conditioned from the same cells", ours[i], paper[i], 0.1)
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

// compareSamples compares the sample with the bound of eq. (2), on average where
// not all packets are sampled.
func compareSamples(run *experiment.Run, points []*point) {
	var ratios estimate.Moments
	for _, pt := range points {
		if pt.presampled < 1 {
			ratios.Add(pt.sample.Mean() / ((1 - alpha) * pt.presampled * float64(pt.received)))
		}
	}
	run.Holds("effective sample over the bound of eq. (2), where p < 1", "almost 2", number(ratios.Mean()), ratios.Mean() >= 1.6)
}

var unknownLoss = experiment.Experiment{
	Name: "lda-5", Title: "Several banks, for a loss rate that is not known (Fig. 5a–c)",
	Claim: "Two, three and four banks of 1,024 cells together, tuned to fixed loss rates, get samples not too far from those of one bank " +
		"tuned to the actual loss, and errors that are much alike; four banks are the worst at high loss, and two banks suit most " +
		"deployments (section IV-B, Fig. 5a–c).",
	Weight: 12, Quick: 1, Measure: measureUnknownLoss,
}

func measureUnknownLoss(run *experiment.Run) {
	t := NewTrace(run, Laws[0])
	of := &sweep{found: make([][]*point, len(bankings))}
	for _, b := range bankings {
		of.names = append(of.names, b.name)
	}
	for _, share := range losses {
		p := t.Lose(run, share, 0)
		for k, b := range bankings {
			of.found[k] = append(of.found[k], p.measure(run, b, runs))
		}
	}
	of.table(run, fmt.Sprintf("Effective sample size (Fig. 5a), average over %d runs, %s delays", runs, t.Law.Name), number, ofSample)
	of.table(run, "The exact expectation of it", number, func(pt *point) float64 { return pt.expected })
	of.table(run, "Relative error of the average delay (Fig. 5b), the same runs", percent, ofMean)
	of.deviations(run, "(Fig. 5c)")
	judgeBanks(run, of)
	run.Note("In the library a bank's rows and the inverse of its sampling probability are powers of two, as in section V's hardware; so "+
		"the three banks have 512, 256 and 256 cells instead of a third each, and sampling is the power of two below αm/(L+1).",
		"A packet is in one bank only: a bank with the sampling p has p less what the next one takes. So the four banks' last two, for 5 and "+
			"10 %, share what two banks' second one has, with as many cells, and four banks are not behind at high loss.")
}

// judgeBanks compares the samples of several banks with that of the bank tuned
// to the actual loss.
func judgeBanks(run *experiment.Run, of *sweep) {
	var share [4]estimate.Moments // of the optimum's sample, by banking, from 0.1 % to 10 % loss
	for k, loss := range losses {
		if loss >= 0.001 && loss <= 0.1 {
			for i := range bankings {
				share[i].Add(of.found[i][k].sample.Mean() / of.found[0][k].sample.Mean())
			}
		}
	}
	// "Not too far" is not a number: a third of the sample is an error larger by
	// a factor of 1.7.
	run.Holds("sample, as a share of that of one bank tuned to the actual loss, average from 0.1 % to 10 % loss: two, three and four banks",
		"not too far (a third, say)", percent(share[1].Mean())+", "+percent(share[2].Mean())+", "+percent(share[3].Mean()),
		min(share[1].Mean(), share[2].Mean(), share[3].Mean()) >= 1.0/3)
	two, three, four := atHighLoss(of, 1, ofSample), atHighLoss(of, 2, ofSample), atHighLoss(of, 3, ofSample)
	run.Holds("sample at 20 % loss: four banks, against two and three", "four banks are the worst",
		number(four)+" against "+number(two)+" and "+number(three), four < min(two, three))
	judgeAlike(run, of, "error of the mean (Fig. 5b)", ofMean)
	judgeAlike(run, of, "error of the deviation by eq. (5) (Fig. 5c)", ofPaper)
}

func atHighLoss(of *sweep, banking int, value func(*point) float64) float64 {
	return value(of.found[banking][len(losses)-1])
}

// judgeAlike judges that several banks have similar errors, and four the
// largest if loss is high. "Comparably" is not a number: we take a factor of 2
// on average from the best to the worst of the three. Chance alone makes some
// 1.5 of it: an average of ten absolute errors deviates by 0.24 of itself, and
// three such averages range over 1.7 deviations.
func judgeAlike(run *experiment.Run, of *sweep, what string, value func(*point) float64) {
	var logs estimate.Moments
	for k := range losses {
		two, three, four := value(of.found[1][k]), value(of.found[2][k]), value(of.found[3][k])
		logs.Add(math.Log(max(two, three, four) / min(two, three, four)))
	}
	factor := math.Exp(logs.Mean())
	run.Holds(what+": the worst of two, three and four banks over the best, average over loss rates", "comparable (a factor of 2, say)",
		fmt.Sprintf("%.2f", factor), factor <= 2)
	two, three, four := atHighLoss(of, 1, value), atHighLoss(of, 2, value), atHighLoss(of, 3, value)
	run.Holds(what+" at 20 % loss: two, three and four banks", "four banks are the worst",
		percent(two)+", "+percent(three)+" and "+percent(four), four > max(two, three))
}
