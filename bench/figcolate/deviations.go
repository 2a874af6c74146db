package figcolate

import (
	"fmt"
	"math"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/colate/paper"
)

var deviations = experiment.Experiment{
	Name: "colate-7", Title: "The error of deviations, and virtual repetitions (Figs. 7 and 9)",
	Claim: "The deviation is off by less than 5 % for 91 % of the flows with 1,000 virtual repetitions, and for 98 % with 100,000: " +
		"its error can be made as small as one likes (sections 4.2 and 6.2.2, Figs. 7 and 9).",
	Weight: 50, Quick: 1.5, Measure: measureDeviations,
}

const deviationLimit = 0.05

func measureDeviations(run *experiment.Run) {
	most := run.Pick(60, 300)
	gammas := []int{1, 10, 100, 1000, 10_000, 100_000}
	if run.Quick {
		gammas = gammas[:4]
	}
	seed := run.SeedOf("deviations")
	cdf := plot.Figure{
		Name: "7", Title: "Error of deviations, flows of 100 packets and more",
		Caption: fmt.Sprintf("Dashed: %d virtual repetitions, where the paper has 91 %% of flows within 5 %%. Solid: "+
			"counters of the same memory that count their packets.", 1000),
		X: errorAxis(0.1, 1e5), Y: shareAxis,
	}
	repetitions := plot.Figure{
		Name: "9", Title: "Flows whose deviation is within 5 %, and virtual repetitions",
		Caption: "The last mark is the closed form, which is what infinitely many repetitions give.",
		X:       plot.LogAxis("virtual repetitions"), Y: plot.Axis{Label: "flows (%)", Min: 0, Max: 100},
	}
	table := run.Table("", "Deviation: median error where there is an answer, and part of all flows within 5 %; 10 MB", "trace", "flows",
		"1 repetition", "1,000", "closed form", "Estimate, counted", "no answer, closed form", "no answer, counted")
	configure(run, "repetitions", gammas, "seed", seed, "memory, MB", 10)
	for i, k := range experiment.Each(run, kinds) {
		t := newTraffic(run, k)
		n := countersIn(run, 10)
		chosen := t.some(asked, most)
		byGamma, closed := t.repeat(run, sums(n, seed), gammas, chosen)
		ours := &errorsOf{}
		found := t.count(counted(n, seed)).estimate(t, chosen)
		for a, j := range chosen {
			f := &t.flows[j]
			got := math.NaN()
			if found[a].DeviationKnown {
				got = found[a].StdDev
			}
			ours.addTo(f, got, math.Sqrt(f.delays.PopulationVariance()))
		}
		_, answers := closed.answered(asked)
		_, answersOurs := ours.answered(asked)
		thousand := byGamma[3]
		theirs, mine := thousand.cdf(asked, k.name), ours.cdf(asked, k.name+", counted")
		theirs.Pair, mine.Pair = i+1, i+1
		cdf.Series = append(cdf.Series, theirs, mine)
		line := plot.Series{Name: k.name, Paper: true, Pair: i + 1}
		for g, gamma := range gammas {
			line.Add(float64(gamma), 100*byGamma[g].within(asked, deviationLimit))
		}
		line.Add(10*float64(gammas[len(gammas)-1]), 100*closed.within(asked, deviationLimit))
		repetitions.Series = append(repetitions.Series, line)
		table.Add(k.name, fmt.Sprint(len(chosen)), byGamma[0].answersCell(), thousand.answersCell(), closed.answersCell(), ours.answersCell(),
			fmt.Sprint(len(chosen)-answers), fmt.Sprint(len(chosen)-answersOurs))
		judgeDeviations(run, k.name, thousand, closed, ours)
	}
	run.Figures(cdf, repetitions)

	run.Note(
		"Repetitions average over pairings of the same 20 numbers, and their limit is known in closed form (m·S²). "+
			"They cannot make up for what the 20 numbers do not tell: how many packets are in each. The sample variance of 20 sums has itself a "+
			"deviation of a third, and it is mostly that of the number of packets.",
		"Flows without an answer, as where the variance comes out negative, are not within 5 %, and in no median. Counted counters say that "+
			"they do not know where most of what they hold is of other flows, whose delays vary more: with the bursts of the data centre that "+
			"is most flows.",
	)
}

func judgeDeviations(run *experiment.Run, name string, thousand, closed, ours *errorsOf) {
	median, answers := closed.answered(asked)
	medianOurs, answersOurs := ours.answered(asked)
	within := thousand.within(asked, deviationLimit)
	run.Holds(name+": flows within 5 %, 1,000 repetitions", "> 91 %", experiment.Percent(within), within > 0.91)
	run.Claim(name+": the same, closed form and counted counters", experiment.Percent(closed.within(asked, deviationLimit)),
		experiment.Percent(ours.within(asked, deviationLimit)), experiment.Judge(1-ours.within(asked, deviationLimit),
			1-closed.within(asked, deviationLimit), 0.01))
	run.Beats(fmt.Sprintf("%s: median error where there is an answer, closed form (%d of %d flows) and counted counters (%d)", name,
		answers, len(ours.off), answersOurs), medianOurs, median, 0.1)
}

// repeat are the errors of virtual repetitions, by their number, and of the
// closed form.
func (t *traffic) repeat(run *experiment.Run, c paper.Config, gammas, chosen []int) (byGamma []*errorsOf, closed *errorsOf) {
	plain := t.record(c)
	for range gammas {
		byGamma = append(byGamma, &errorsOf{paper: true})
	}
	closed = &errorsOf{paper: true}
	for _, j := range chosen {
		f := &t.flows[j]
		truth := math.Sqrt(f.delays.PopulationVariance())
		plain.gather(f)
		for g, gamma := range gammas {
			x := orNone(paper.VirtualRepetitions(plain.sender, plain.receiver, uint64(f.packets), gamma, uint64(f.key)))
			byGamma[g].addTo(f, x, truth)
		}
		closed.addTo(f, orNone(paper.ClosedForm(plain.sender, plain.receiver, uint64(f.packets))), truth)
		run.Alive()
	}
	return byGamma, closed
}

// answersCell is the median error where there is an answer, and the part of all
// flows within the limit.
func (e *errorsOf) answersCell() string {
	median, _ := e.answered(asked)
	return experiment.Percent(median) + "; " + experiment.Percent(e.within(asked, deviationLimit))
}
