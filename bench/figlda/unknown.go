package figlda

import (
	"fmt"
	"math"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/estimate"
)

var unknownLoss = experiment.Experiment{
	Name: "lda-5", Title: "Several banks, for a loss rate that is not known (Fig. 5a–c)",
	Claim: "Two, three and four banks of 1,024 cells together, tuned to fixed loss rates, get samples not too far from those of one bank " +
		"tuned to the actual loss, and errors that are much alike; four banks are the worst at high loss, and two banks suit most " +
		"deployments (section IV-B, Fig. 5a–c).",
	Weight: 12, Quick: 1, Measure: measureUnknownLoss,
}

// bankSweep is what every banking gave at every loss rate.
type bankSweep = experiment.Sweep[float64, banking, *point]

func measureUnknownLoss(run *experiment.Run) {
	t := NewTrace(run, Laws[0])
	of := experiment.SweepOver(run, losses, bankings, func(share float64) *Passage { return t.Lose(run, share, 0) },
		func(p *Passage, b banking) *point { return p.measure(run, b, runs) })
	name := func(b banking) string { return b.name }
	sample := of.Lines(func(i int, b banking) plot.Series { return plot.Series{Name: b.name, Pair: i + 1, Kind: plot.Markers} },
		func(line *plot.Series, loss float64, pt *point) { line.Add(100*loss, pt.sample.Mean()) })
	expected := of.Lines(func(i int, _ banking) plot.Series { return plot.Series{Pair: i + 1, Kind: plot.Line} },
		func(line *plot.Series, loss float64, pt *point) { line.Add(100*loss, pt.expected) })
	run.Figures(plot.Figure{
		Name: "a", Title: "Effective sample size (Fig. 5a)", X: LossAxis, Y: plot.LogAxis("packets"),
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
		row := []string{percent(loss)}
		for i := range bankings[1:] {
			ratio := of.Found[i+1][k].sample.Mean() / of.Found[0][k].sample.Mean()
			row = append(row, percent(ratio))
			if loss >= 0.001 && loss <= 0.1 {
				share[i+1].Add(ratio)
			}
		}
		table.Row(row)
	}
	// "Not too far" is not a number: a third of the sample is an error larger by
	// a factor of 1.7.
	run.Holds("sample, as a share of that of one bank tuned to the actual loss, average from 0.1 % to 10 % loss: two, three and four banks",
		"not too far (a third, say)", percent(share[1].Mean())+", "+percent(share[2].Mean())+", "+percent(share[3].Mean()),
		min(share[1].Mean(), share[2].Mean(), share[3].Mean()) >= 1.0/3)
	sample := func(pt *point) float64 { return pt.sample.Mean() }
	two, three, four := atHighLoss(of, 1, sample), atHighLoss(of, 2, sample), atHighLoss(of, 3, sample)
	run.Holds("sample at 20 % loss: four banks, against two and three", "four banks are the worst",
		number(four)+" against "+number(two)+" and "+number(three), four < min(two, three))
	judgeAlike(run, of, "error of the mean (Fig. 5b)", func(pt *point) float64 { return pt.means.Mean() })
	judgeAlike(run, of, "error of the deviation by eq. (5) (Fig. 5c)", func(pt *point) float64 { return pt.paper.Mean() })
}

func atHighLoss(of *bankSweep, banking int, value func(*point) float64) float64 {
	return value(of.Found[banking][len(losses)-1])
}

// judgeAlike judges that several banks err much alike, and four the most where
// loss is high. "Comparably" is not a number: a factor of 2 on average from the
// best to the worst of the three. Chance alone makes some 1.5 of it, as an
// average of ten absolute errors deviates by 0.24 of itself, and three such
// averages range over 1.7 deviations.
func judgeAlike(run *experiment.Run, of *bankSweep, what string, value func(*point) float64) {
	var logs estimate.Moments
	for k := range losses {
		two, three, four := value(of.Found[1][k]), value(of.Found[2][k]), value(of.Found[3][k])
		logs.Add(math.Log(max(two, three, four) / min(two, three, four)))
	}
	factor := math.Exp(logs.Mean())
	run.Holds(what+": the worst of two, three and four banks over the best, average over loss rates", "comparable (a factor of 2, say)",
		fmt.Sprintf("%.2f", factor), factor <= 2)
	two, three, four := atHighLoss(of, 1, value), atHighLoss(of, 2, value), atHighLoss(of, 3, value)
	run.Holds(what+" at 20 % loss: two, three and four banks", "four banks are the worst",
		percent(two)+", "+percent(three)+" and "+percent(four), four > max(two, three))
}
