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
		"has an estimated deviation; it should hold nevertheless, and so should, where tails are light, that of the deviation.",
	Weight: 65, Quick: 2.5, Measure: measureCoverage,
}

const (
	confidence   = 0.98
	coverageRuns = 1000
)

// intervals lists those whose coverage is shown, with a figure each.
var intervals = [...]struct{ name, title string }{
	{"mean", "Interval of the mean, as printed"},
	{"eq1", "Interval of the mean by eq. (1), with the estimated deviation"},
	{"central", "Interval of the mean by the central limit theorem"},
	{"deviation", "Interval of the deviation"},
}

// pareto3 is the law without a fourth moment, by its index among all.
const pareto3 = 2

// covers counts how many intervals held the truth.
type covers [len(intervals)]int

// coverageSweep counts by law and loss rate.
type coverageSweep = sweep[Law, *covers]

func measureCoverage(run *experiment.Run) {
	laws := allLaws()
	packets := run.Pick(5_000, 500_000)
	of := overLaws(run, laws, ourLosses, packets, func(_, _ int, p *Passage) *covers {
		c := new(covers)
		for r := range run.Times(coverageRuns) {
			c.measure(p, run.SeedOf(fmt.Sprint("hash ", r)))
		}
		return c
	})
	drawCoverage(run, of)
	judgeCoverage(run, of)
	run.Config("laws", laws, "losses", ourLosses, "runs", coverageRuns, "packets", packets, "rows", rows,
		"confidence", confidence)
	run.Notef("One bank of 1,024 cells that samples the power of two at or below m/L of %d packets; %d runs with different hashes. The truth "+
		"is the mean and the deviation of the packets that arrived.", packets, coverageRuns)
	run.Note("By chance alone, an interval that holds the truth with a probability of 98 % does so in 971 to 989 of 1,000 runs, 95 times in "+
		"a hundred.",
		"Where nearly all packets are in usable cells, at the lowest losses, every interval of the mean is wider than it need be: what is "+
			"estimated has nearly all been seen.",
		"Of delays with heavy tails most samples lack the longest, and their squares do not show it. The deviation's interval is widened for "+
			"that; for Pareto 3, whose squares have no variance, it still holds a little less often than it says.")
}

func drawCoverage(run *experiment.Run, of *coverageSweep) {
	for k, f := range intervals {
		run.Draw(f.name, f.title, fmt.Sprintf("Of %d runs at each point.", coverageRuns), LossAxis,
			plot.LinearAxis("intervals that hold the truth (%)"),
			of.lines(nameOf, func(c *covers) float64 { return 100 * float64(c[k]) / coverageRuns })...,
		).Add(plot.Level("98 %", 100*confidence, 100*ourLosses[0], 100*ourLosses[len(ourLosses)-1]))
	}
}

// measure adds a run's intervals of mean and deviation.
func (c *covers) measure(p *Passage, seed uint64) {
	up, down := onBank(p, shareOf(lda.ShiftFor(rows, float64(p.Losses))), seed)
	r := experiment.Try(lda.Estimate(up, down))
	for k, i := range []estimate.Interval{r.MeanInterval(confidence), estimate.HoeffdingInterval(r.Delay, confidence),
		r.CentralLimitInterval(confidence), r.DeviationInterval(confidence)} {
		if i.Contains([]float64{p.Truth.Mean, p.Truth.StdDev}[k/3]) {
			c[k]++
		}
	}
}

// judgeCoverage judges the lowest coverage of all points.
func judgeCoverage(run *experiment.Run, of *coverageSweep) {
	for _, c := range []struct {
		what     string
		laws     []int
		interval int
	}{
		{"mean, as printed", []int{0, 1, 2, 3, 4}, 0},
		{"mean by eq. (1) with the estimated deviation", []int{0, 1, 2, 3, 4}, 1},
		{"mean by the central limit theorem", []int{0, 1, 2, 3, 4}, 2},
		{"deviation, light tails: 200 ± 10 ns", []int{4}, 3},
		{"deviation, Weibull 0.8", []int{1}, 3},
		{"deviation, heavier tails: Weibull 0.6 and Pareto 5", []int{0, 3}, 3},
		{"deviation, no fourth moment: Pareto 3", []int{pareto3}, 3},
	} {
		least := coverageRuns
		for _, i := range c.laws {
			for _, point := range of.found[i] {
				least = min(least, point[c.interval])
			}
		}
		judgeLowest(run, c.what, least, coverageRuns)
	}
}

// judgeLowest judges the lowest coverage. The lowest of so many is some
// standard errors low by chance: it is a loss only if it is so low less than
// once in ten thousand times.
func judgeLowest(run *experiment.Run, what string, least, runs int) *experiment.Claim {
	return run.Claim("98 % intervals of the "+what+": lowest coverage at any loss rate", "at least 98 %",
		fmt.Sprintf("%.1f %%", 100*float64(least)/float64(runs)), experiment.Covers(uint64(least), uint64(runs), confidence, 0.9998))
}
