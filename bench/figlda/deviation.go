package figlda

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/lda/paper"
)

var ldaDeviation = experiment.Experiment{
	Name: "ours-lda-deviation", Title: "Deviation: eq. (5), all pairings of rows, count-conditioned",
	Claim: "The paper's eq. (5) squares differences of cells whose counts differ by chance, and so measures that spread, times the mean, " +
		"along with the delays': off by 20 to 50 % for Pareto delays (section IV-A). Conditioned on the counts, the same cells should be off " +
		"by about what so many cells allow, 1/√(2M) with M usable, whatever the mean.",
	Weight: 60, Quick: 3, Measure: measureDeviation,
}

// estimators lists the estimators of the deviation, and what bounds them.
var estimators = [...]plot.Series{
	eq5:      {Name: "eq. (5)", Paper: true},
	paired:   {Name: "all pairings of rows"},
	counted:  {Name: "count-conditioned"},
	possible: {Name: "what M cells allow, from 1/√(2M)", Kind: plot.Line},
	known:    {Name: "every delay known", Kind: plot.Line},
}

const (
	eq5 = iota
	paired
	counted
	possible // the mean error of a deviation from M normal sums
	known    // from as many packets whose delays are all known
)

// deviations holds the relative errors of some runs at one loss rate.
type deviations [len(estimators)]estimate.Moments

// deviationSweep holds them by law and loss rate.
type deviationSweep = sweep[Law, *deviations]

// errorOf returns the error of one estimator.
func errorOf(estimator int) func(*deviations) float64 {
	return func(d *deviations) float64 {
		if estimator == possible { // of usable cells
			return math.Sqrt(2/math.Pi) / math.Sqrt(2*d[possible].Mean())
		}
		return d[estimator].Mean()
	}
}

func measureDeviation(run *experiment.Run) {
	runs := run.Pick(10, 40)
	laws := allLaws()
	of := overLaws(run, laws, ourLosses, run.Pick(quickSize, fullSize), func(i, k int, p *Passage) *deviations {
		random, d := run.Rand(fmt.Sprint("known ", i, k)), new(deviations)
		for r := range run.Times(runs) {
			d.measure(p, run.SeedOf(fmt.Sprint("hash ", r)), random)
		}
		return d
	})
	for i, law := range laws {
		f := run.Draw(fmt.Sprint(i+1), "Relative error of the standard deviation, "+law.Name,
			fmt.Sprintf("Average of %d runs; all from the same cells.", runs), LossAxis, errorAxis, estimators[:]...)
		for k, d := range of.found[i] {
			for e := range f.Series {
				f.Series[e].Add(100*ourLosses[k], 100*errorOf(e)(d))
			}
		}
	}
	tabulateDeviations(run, of)
	judgeBands(run, of, runs)
	run.Config("laws", laws, "losses", ourLosses, "runs", runs, "rows", rows, "sum bits", sumBits)
	run.Note("One bank of 1,024 cells, sampling the power of two at or below m/L. A variance that comes out negative counts as a deviation "+
		"of 0, an error of 100 %. The truth is the deviation of the packets that arrived.",
		"What the cells allow is the mean error of a deviation from M normal sums, √(2/π)/√(2M): 1/√(2M) is their standard error. "+
			"\"Every delay known\" is the deviation of as many packets, drawn from those that arrived, whose delays are all known, which needs a "+
			"timestamp in every packet; no cells do better than that.",
		"Pareto delays with shape 3 have a deviation but no fourth moment, so the square of a sample's deviation has no variance to speak "+
			"of: it hangs on whether the sample has one of the few longest delays, which make up much of the whole trace's. At high loss, "+
			"where the sample is small, that is most of the error, and known delays help little: it is not the cells that are at fault. "+
			"Where the sample is large, cells hold many packets and their number limits again.")
}

// measure adds a run.
func (d *deviations) measure(p *Passage, seed uint64, random *rand.Rand) {
	up, down := onBank(p, shareOf(lda.ShiftFor(rows, float64(p.Losses))), seed)
	result := experiment.Try(lda.Estimate(up, down))
	collapsed := experiment.Try(paper.CollapsedVariance(up, down))
	pairs := experiment.Try(paper.PairedVariance(up, down))
	off := func(deviation float64) float64 { return estimate.RelativeError(deviation, p.Truth.StdDev) }
	d[eq5].Add(off(math.Sqrt(max(0, collapsed))))
	d[paired].Add(off(math.Sqrt(max(0, pairs))))
	d[counted].Add(off(result.StdDev))
	d[possible].Add(float64(result.Usable))
	var sample estimate.Moments
	threshold := hashing.Threshold(float64(result.N) / float64(p.Truth.N))
	for i, delay := range p.Delays {
		if !p.Lost[i] && hashing.Sampled(random.Uint64(), threshold) != 0 {
			sample.Add(float64(delay))
		}
	}
	d[known].Add(off(math.Sqrt(sample.Variance())))
}

// A band is a range of loss rates with one required accuracy.
type band struct {
	name      string
	low, high float64
	asked     float64
}

var bands = []band{{"up to 0.1 % loss", 0, 0.001, 0.03}, {"at 1 % loss", 0.01, 0.01, 0.06}, {"at 20 % loss", 0.2, 0.2, 0.12}}

func (b band) has(loss float64) bool { return loss >= b.low && loss <= b.high }

func tabulateDeviations(run *experiment.Run, of *deviationSweep) {
	t := run.Table("deviation", "Relative error of the deviation, average of the runs, at the worst loss rate of each range",
		"delays", "loss rate", "eq. (5)", "all pairings", "count-conditioned", "what M cells allow", "every delay known", "asked for")
	for i, law := range of.over {
		for _, b := range bands {
			row := []string{law.Name, b.name}
			for e := range estimators {
				row = append(row, percent(of.worst(i, b.has, errorOf(e))))
			}
			t.Row(row, "≤ "+percent(b.asked))
		}
	}
}

// pareto3 is the law without a fourth moment, by its index among all.
const pareto3 = 2

func judgeBands(run *experiment.Run, of *deviationSweep, runs int) {
	for _, b := range bands {
		worst, least, most := 0.0, math.Inf(1), 0.0
		for i := range of.over {
			if i != pareto3 {
				worst = max(worst, of.worst(i, b.has, errorOf(counted)))
				least = min(least, of.worst(i, b.has, errorOf(eq5)))
				most = max(most, of.worst(i, b.has, errorOf(eq5)))
			}
		}
		run.Within("error of the count-conditioned deviation "+b.name+", worst of Weibull, Pareto 5 and 200 ± 10 ns; our aim: at most "+
			percent(b.asked), "eq. (5): "+percent(least)+" to "+percent(most), worst, b.asked, chance(runs)).Headline = true
	}
	for _, b := range bands {
		all, paper := percent(of.worst(pareto3, b.has, errorOf(known))), percent(of.worst(pareto3, b.has, errorOf(eq5)))
		run.Within("error of the count-conditioned deviation for Pareto 3, "+b.name+"; with every delay known: "+all+
			"; our aim: at most "+percent(b.asked), "eq. (5): "+paper, of.worst(pareto3, b.has, errorOf(counted)), b.asked, chance(runs))
	}
}
