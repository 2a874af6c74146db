package figcolate

import (
	"fmt"
	"math"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/colate"
	"github.com/hoplag/hoplag/colate/paper"
)

var countedDeviation = experiment.Experiment{
	Name:  "ours-colate-deviation",
	Group: ours,
	Title: "COLATE: deviations with counts packed into the counters",
	Claim: "Ours: a counter that also counts its packets, in the high bits of the same word, makes the deviation work; " +
		"from sums alone at m = 20 its median error is far too large, and no number of repetitions helps, as their limit is known in closed " +
		"form.",
	Weight: 80, Quick: 4,
	Measure: measureCountedDeviation,
}

func measureCountedDeviation(run *experiment.Run) {
	most := run.Pick(150, 1000)
	seed := run.SeedOf("deviation")
	t, config := ownDelays(run)
	const full = 455_000
	n := scaled(run, full)
	perFlow := []int{20, 40, 80, 160, 320, 640, 1280}
	configure(run, "traffic", config, "counters in a full run", full, "m", perFlow, "seed", seed)
	size := plot.Figure{
		Name: "size", Title: fmt.Sprintf("Median error of deviations by size, %d counters, m = %d", n, countersEach),
		Caption: "Dashed: the paper's estimator from sums. Solid: with counts in the same bits.",
		X:       binAxis, Y: errorAxis(0, 0),
	}
	width := plot.Figure{
		Name: "m", Title: "Median error of deviations by counters of a flow, flows of 1,000 packets and more",
		Caption: "A larger m gives the paper's estimator more numbers, and each of them more of the packets of others.",
		X:       plot.Axis{Label: "counters of a flow (m)", Scale: plot.Log}, Y: errorAxis(0, 0),
	}
	paperLine, ourLine := plot.Series{Name: "closed form (γ = ∞)", Paper: true, Pair: 1}, plot.Series{Name: "counted", Pair: 2}
	table := run.Table("", "Deviation, flows of 1,000 packets and more: median error, and flows without an answer", "m", "closed form",
		"no answer", "counted", "no answer")
	var at20 [2]float64
	for k, m := range experiment.Each(run, perFlow) {
		asked := t.some(large, most)
		if k == 0 {
			asked = t.someOfEach(most)
		}
		closed, mine, none := t.deviations(m, n, seed, asked)
		if k == 0 {
			size.Series = []plot.Series{closed.byBin(closed.name), mine.byBin(mine.name)}
			at20 = [2]float64{closed.median(large), mine.median(large)}
		}
		paperLine.Add(float64(m), 100*closed.median(large))
		ourLine.Add(float64(m), 100*mine.median(large))
		table.Add(fmt.Sprint(m), experiment.Percent(closed.median(large)), fmt.Sprint(none[0]), experiment.Percent(mine.median(large)),
			fmt.Sprint(none[1]))
	}
	width.Series = []plot.Series{paperLine, ourLine}
	run.Figures(size, width)

	least := paperLine.Y[0]
	at := paperLine.X[0]
	for i, y := range paperLine.Y {
		if y < least {
			least, at = y, paperLine.X[i]
		}
	}
	run.Beats("median error of deviations, m = 20, flows of ≥ 1,000 packets, closed form and counted", at20[1], at20[0], 0.1).Headline = true
	run.Within(fmt.Sprintf("the best m for the closed form, %.0f, and counted at m = 20", at), experiment.Percent(least/100), at20[1],
		least/100, 0.1)
	run.Note(
		"From sums alone, the variance of a counter is that of its number of packets, times the squared mean delay, plus that of the delays: "+
			"the second is known only as the difference of two estimates. Flows without an answer count as infinitely wrong, and a mark that is "+
			"missing means that most had none.",
		"Memory is equal: the counts take 16 of the 60 bits, and the sums wrap in what is left.",
	)
}

// deviations are the errors of the closed form and of ours, with m counters to a
// flow, and how many large flows had no answer.
func (t *traffic) deviations(m, n int, seed uint64, asked []int) (closed, mine *errorsOf, none [2]int) {
	closed, mine = &errorsOf{name: "closed form (γ = ∞)", paper: true}, &errorsOf{name: "counted"}
	plain, counting := sums(n, seed), counted(n, seed)
	plain.PerFlow, counting.PerFlow = m, m
	papers := t.record(plain)
	answers := t.count(counting).estimate(t, asked)
	for a, i := range asked {
		f := &t.flows[i]
		if f.packets == 1 {
			continue
		}
		papers.gather(f)
		theirs := orNone(paper.ClosedForm(papers.sender, papers.receiver, uint64(f.packets)))
		for v, x := range []float64{theirs, deviationOf(&answers[a])} {
			if math.IsNaN(x) && large.Has(f.packets) {
				none[v]++
			}
			[]*errorsOf{closed, mine}[v].addTo(f, x, math.Sqrt(f.delays.PopulationVariance()))
		}
	}
	return closed, mine, none
}

// deviationOf is the deviation of an answer, or not a number.
func deviationOf(a *colate.Answer) float64 {
	if !a.DeviationKnown {
		return math.NaN()
	}
	return a.StdDev
}
