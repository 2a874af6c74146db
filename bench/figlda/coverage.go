package figlda

import (
	"fmt"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/lda"
)

var ldaCoverage = experiment.Experiment{
	Name: "ours-lda-coverage", Title: "Do 98 % intervals hold the truth 98 times in a hundred?",
	Claim: "The paper bounds the error of the mean by eq. (1), with the true deviation in it (section III-D). An interval that is printed " +
		"has an estimated deviation, and should hold nevertheless; so should those of the loss and, where tails are light, of the deviation.",
	Weight: 65, Quick: 2.5, Measure: measureCoverage,
}

const (
	confidence   = 0.98
	coverageRuns = 1000
)

// covers counts how many intervals held the truth.
type covers struct {
	interval, paper, central, deviation int
}

// coverageSweep counts by law and loss rate.
type coverageSweep = experiment.Sweep[float64, Law, *covers]

func measureCoverage(run *experiment.Run) {
	laws := allLaws()
	packets := run.Pick(5_000, 500_000)
	run.Part(0, 2)
	of := &coverageSweep{Places: ourLosses, Methods: laws}
	for _, law := range experiment.Each(run, laws) {
		t := NewTrace(run, law)
		t.Delays = t.Delays[:packets]
		var counted []*covers
		for _, loss := range experiment.Each(run, ourLosses) {
			p, c := t.Lose(run, loss, 0), new(covers)
			for r := range run.Times(coverageRuns) {
				c.measure(p, run.SeedOf(fmt.Sprint("hash ", r)))
			}
			counted = append(counted, c)
		}
		of.Found = append(of.Found, counted)
	}
	drawCoverage(run, of)
	judgeCoverage(run, of)
	run.Part(1, 2)
	coverLoss(run)
	coverFew(run)
	run.Config("laws", laws, "losses", ourLosses, "runs", coverageRuns, "packets", packets, "packets for loss", lossPackets,
		"runs for loss", lossRuns, "rows", rows, "confidence", confidence)
	run.Notef("One bank of 1,024 cells that samples the power of two at or below m/L of %d packets; %d runs with different hashes. The truth "+
		"is the mean and the deviation of the packets that arrived. For the loss, every run of %d loses other packets of %d, and the truth is "+
		"the probability.", packets, coverageRuns, lossRuns, lossPackets)
	run.Note(
		"By chance alone, an interval that holds the truth with a probability of 98 % does so in 971 to 989 of 1,000 runs, 95 times in a "+
			"hundred.",
		"Where nearly all packets are in usable cells, at the lowest losses, every interval of the mean is wider than it need be: what is "+
			"estimated has nearly all been seen.",
		"The deviation's interval is as wide as the squares of the usable cells say. Of delays with heavy tails most samples lack the longest, "+
			"and their squares do not show it; so the interval is too narrow as soon as the sample is small, as it is at high loss, and worst "+
			"for Pareto 3, whose squares have no variance.",
	)
}

// intervals are those whose coverage is shown, a figure and a table each.
var intervals = []struct {
	name, title string
	count       func(*covers) int
}{
	{"mean", "Interval of the mean, as printed", ofMean},
	{"eq1", "Interval of the mean by eq. (1), with the estimated deviation", ofEq1},
	{"central", "Interval of the mean by the central limit theorem", ofCentral},
	{"deviation", "Interval of the deviation", ofDeviation},
}

func ofMean(c *covers) int      { return c.interval }
func ofEq1(c *covers) int       { return c.paper }
func ofCentral(c *covers) int   { return c.central }
func ofDeviation(c *covers) int { return c.deviation }

func drawCoverage(run *experiment.Run, of *coverageSweep) {
	for _, f := range intervals {
		figure := run.Draw(f.name, f.title, fmt.Sprintf("Of %d runs at each point.", coverageRuns), LossAxis,
			plot.LinearAxis("intervals that hold the truth (%)"))
		table := run.Table(f.name, fmt.Sprintf("%s: how many of %d hold the truth", f.title, coverageRuns), "delays")
		for _, loss := range ourLosses {
			table.Columns = append(table.Columns, percent(loss))
		}
		for i, law := range of.Methods {
			row := []string{law.Name}
			for _, c := range of.Found[i] {
				row = append(row, fmt.Sprint(f.count(c)))
			}
			table.Row(row)
		}
		figure.Series = append(of.Lines(func(_ int, l Law) plot.Series { return plot.Series{Name: l.Name} },
			func(line *plot.Series, loss float64, c *covers) {
				line.Add(100*loss, 100*float64(f.count(c))/coverageRuns)
			}), nominal())
	}
}

// nominal is the line at 98 %.
func nominal() plot.Series {
	return plot.Level("98 %", 100*confidence, 100*ourLosses[0], 100*ourLosses[len(ourLosses)-1])
}

// measure adds a run's intervals of mean and deviation.
func (c *covers) measure(p *Passage, seed uint64) {
	up, down := onBank(p, shareOf(lda.ShiftFor(rows, float64(p.Losses))), seed)
	r := experiment.Try(lda.Estimate(up, down))
	count := func(n *int, i estimate.Interval, truth float64) {
		if i.Contains(truth) {
			*n++
		}
	}
	count(&c.interval, r.MeanInterval(confidence), p.Truth.Mean)
	count(&c.paper, estimate.HoeffdingInterval(r.Delay, confidence), p.Truth.Mean)
	count(&c.central, r.CentralLimitInterval(confidence), p.Truth.Mean)
	count(&c.deviation, r.DeviationInterval(confidence), p.Truth.StdDev)
}

// judgeCoverage judges the lowest coverage of all points.
func judgeCoverage(run *experiment.Run, of *coverageSweep) {
	for _, c := range []struct {
		what  string
		laws  []int
		count func(*covers) int
	}{
		{"mean, as printed", []int{0, 1, 2, 3, 4}, ofMean},
		{"mean by eq. (1) with the estimated deviation", []int{0, 1, 2, 3, 4}, ofEq1},
		{"mean by the central limit theorem", []int{0, 1, 2, 3, 4}, ofCentral},
		{"deviation, light tails: 200 ± 10 ns", []int{4}, ofDeviation},
		{"deviation, Weibull 0.8", []int{1}, ofDeviation},
		{"deviation, heavier tails: Weibull 0.6 and Pareto 5", []int{0, 3}, ofDeviation},
		{"deviation, no fourth moment: Pareto 3", []int{pareto3}, ofDeviation},
	} {
		least := coverageRuns
		for _, i := range c.laws {
			for _, point := range of.Found[i] {
				least = min(least, c.count(point))
			}
		}
		judgeLowest(run, c.what, least, coverageRuns)
	}
}

// judgeLowest judges the lowest coverage. The least of so many is some
// standard errors low by chance: it is no loss unless it is so low once in ten
// thousand times.
func judgeLowest(run *experiment.Run, what string, least, runs int) *experiment.Claim {
	return run.Meets("98 % intervals of the "+what+": lowest coverage at any loss rate", "98 %",
		fmt.Sprintf("%.1f %%", 100*float64(least)/float64(runs)),
		estimate.ProportionInterval(uint64(least), uint64(runs), 0.9998).High >= confidence)
}
