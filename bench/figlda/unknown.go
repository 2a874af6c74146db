package figlda

import (
	"fmt"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/estimate"
)

var unknownLoss = experiment.Experiment{
	Name:  "lda-5",
	Group: group,
	Title: "Several banks, for a loss rate that is not known (Fig. 5a–c)",
	Claim: "Two, three and four banks of 1,024 cells together, tuned to fixed loss rates, get samples not too far from those of one bank " +
		"tuned to the actual loss, and errors that are much alike; four banks are the worst at high loss, and two banks suit most " +
		"deployments (section IV-B, Fig. 5a–c).",
	Weight: 12, Quick: 1,
	Measure: measureUnknownLoss,
}

// bankSweep is what every banking gave at every loss rate.
type bankSweep = experiment.Sweep[float64, banking, *point]

func measureUnknownLoss(run *experiment.Run) {
	t := NewTrace(run, Laws[0])
	of := experiment.SweepOver(run, losses, bankings,
		func(share float64) *Passage { return t.Lose(run, share, 0) },
		func(p *Passage, b banking) *point { return p.measure(run, b, runs) })
	name := func(b banking) string { return b.name }
	sample := of.Lines(func(i int, b banking) plot.Series { return plot.Series{Name: b.name, Pair: i + 1, Kind: plot.Markers} },
		func(line *plot.Series, loss float64, pt *point) { line.Add(100*loss, pt.sample.Mean()) })
	expected := of.Lines(func(i int, _ banking) plot.Series { return plot.Series{Pair: i + 1, Kind: plot.Line} },
		func(line *plot.Series, loss float64, pt *point) { line.Add(100*loss, pt.expected) })
	run.Figures(plot.Figure{
		Name: "a", Title: "Effective sample size (Fig. 5a)", X: LossAxis, Y: plot.Axis{Label: "packets", Scale: plot.Log},
		Caption: fmt.Sprintf("Average over %d runs, %s delays. Lines without markers: the exact expectation.", runs, t.Law.Name),
		Series:  interleaved(sample, expected),
	}, plot.Figure{
		Name: "b", Title: "Relative error of the average delay (Fig. 5b)", X: LossAxis, Y: errorAxis,
		Caption: "The same runs.",
		Series:  of.Lines(func(_ int, b banking) plot.Series { return plot.Series{Name: b.name} }, meanLine),
	}, plot.Figure{
		Name: "c", Title: "Relative error of the standard deviation (Fig. 5c)", X: LossAxis, Y: errorAxis,
		Caption: "The same runs. Dashed: the paper's eq. (5). Solid: count-conditioned, from the same cells.",
		Series:  deviationLines(of, name),
	})
	judgeBanks(run, of)
	run.Config("packets", len(t.Delays), "runs", runs, "losses", losses, "law", t.Law.Name, "mean delay ns", meanDelay, "alpha", alpha,
		"two banks", of.Found[1][0].config, "three banks", of.Found[2][0].config, "four banks", of.Found[3][0].config)
	run.Note(
		"In the library a bank's rows and the inverse of its sampling probability are powers of two, as in section V's hardware; so the three "+
			"banks have 512, 256 and 256 cells instead of a third each, and sampling is the power of two below αm/(L+1).",
		"A packet is in one bank only: a bank with the sampling p has p less what the next one takes. So the four banks' last two, for 5 and "+
			"10 %, share what two banks' second one has, with as many cells, and four banks are not behind at high loss.",
	)
}

// judgeBanks compares the samples of several banks with that of the bank tuned
// to the actual loss.
func judgeBanks(run *experiment.Run, of *bankSweep) {
	table := run.Table("banks", "Sample against that of the bank tuned to the actual loss", "loss rate")
	for _, b := range bankings[1:] {
		table.Columns = append(table.Columns, b.name)
	}
	var share [4]estimate.Moments // of the optimum's sample, by banking, from 0.1 % to 10 % loss
	for k, loss := range losses {
		row := []string{experiment.Percent(loss)}
		for i := range bankings[1:] {
			ratio := of.Found[i+1][k].sample.Mean() / of.Found[0][k].sample.Mean()
			row = append(row, experiment.Percent(ratio))
			if loss >= 0.001 && loss <= 0.1 {
				share[i+1].Add(ratio)
			}
		}
		table.Add(row...)
	}
	// "Not too far" is not a number: a third of the sample is an error larger by
	// a factor of 1.7.
	run.Holds("sample, as a share of that of one bank tuned to the actual loss, average from 0.1 % to 10 % loss: two, three and four banks",
		"not too far (a third, say)",
		experiment.Percent(share[1].Mean())+", "+experiment.Percent(share[2].Mean())+", "+experiment.Percent(share[3].Mean()),
		min(share[1].Mean(), share[2].Mean(), share[3].Mean()) >= 1.0/3)
	last := len(losses) - 1
	two, four := of.Found[1][last].sample.Mean(), of.Found[3][last].sample.Mean()
	fourWorst := experiment.AsGood
	if four >= two {
		fourWorst = experiment.Win
	}
	run.Claim("sample at 20 % loss: four banks, against two", "four banks are the worst",
		experiment.Number(four)+" against "+experiment.Number(two), fourWorst)
}
