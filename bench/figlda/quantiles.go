package figlda

import (
	"fmt"
	"math"
	"slices"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/lda"
)

var ldaQuantiles = experiment.Experiment{
	Name: "ours-lda-quantiles", Title: "Quantiles from packets that are alone in their cell",
	Claim: "The paper has the mean and the deviation of the delays and nothing else of their distribution (section III-A). " +
		"A bank so thin that many cells hold one packet, 37 % of them at one packet a cell, gives exact delays of packets picked by a hash: " +
		"quantiles for the asking.",
	Weight: 2.5, Quick: 0.4, Measure: measureQuantiles,
}

const (
	quantileIntervals = 100
	quantileLoss      = 0.01
)

// asked lists the required rank errors.
var asked = []struct{ p, limit float64 }{{0.5, 0.010}, {0.9, 0.006}, {0.99, 0.0025}}

// thinned is the result of a law's intervals.
type thinned struct {
	samples estimate.Empirical   // of all intervals
	each    []estimate.Empirical // of each interval
	truth   estimate.Empirical
	cells   float64 // share that held one packet at both ends
}

// window returns some packets of a passage.
func window(p *Passage, from, to int) *Passage {
	return &Passage{Trace: &Trace{Law: p.Law, Delays: p.Delays[from:to]}, Lost: p.Lost[from:to]}
}

// thin cuts a passage into intervals and puts on each a bank that samples one
// packet in 2^shift.
func thin(run *experiment.Run, p *Passage, packets int, shift uint8) *thinned {
	var t thinned
	var samples, truth []float64
	for i := range quantileIntervals {
		w := window(p, i*packets, (i+1)*packets)
		up, down := onBank(w, shareOf(shift), run.SeedOf(fmt.Sprint("interval ", i)))
		from := len(samples)
		samples = experiment.Try(lda.AppendSamples(samples, up, down))
		t.each = append(t.each, estimate.NewEmpirical(slices.Clone(samples[from:])))
		for k, delay := range w.Delays {
			if !w.Lost[k] {
				truth = append(truth, float64(delay))
			}
		}
	}
	cells := float64(rows * quantileIntervals)
	t.cells = float64(len(samples)) / cells
	t.samples, t.truth = estimate.NewEmpirical(samples), estimate.NewEmpirical(truth)
	return &t
}

// rankError returns how far the rank of an empirical quantile is off, with its
// sign. It is 0 if the quantile is among the packets with that very delay.
// There are many of these, because delays are whole nanoseconds.
func (t *thinned) rankError(e estimate.Empirical, p float64) float64 {
	q, err := e.Quantile(p)
	if err != nil {
		return 1
	}
	below, upTo := t.truth.CDF(math.Nextafter(q, math.Inf(-1))), t.truth.CDF(q)
	return max(0, below-p) - max(0, p-upTo)
}

// alone returns the mean absolute rank error of a single interval's quantile.
func (t *thinned) alone(p float64) float64 {
	var m estimate.Moments
	for _, e := range t.each {
		m.Add(math.Abs(t.rankError(e, p)))
	}
	return m.Mean()
}

func measureQuantiles(run *experiment.Run) {
	fitting := run.Pick(2, 5) // the shift at which there is one packet to a cell
	packets := rows << fitting
	ranks := run.Draw("ranks", fmt.Sprintf("Which quantile it really is, %d intervals together", quantileIntervals),
		"How far the rank of every quantile is off; the bars are what is asked of the median, the 90th and the 99th percentile.",
		plot.LinearAxis("quantile (%)"), plot.LinearAxis("rank off by (percentage points)"))
	table := run.Table("ranks", fmt.Sprintf("Rank errors, percentage points: of %d intervals together, and of one on average",
		quantileIntervals),
		"delays", "samples", "p50", "p90", "p99", "samples of one", "p50", "p90", "p99")
	var worst [3]float64
	var cells estimate.Moments
	for _, law := range experiment.Each(run, Laws) {
		t := thin(run, NewTrace(run, law).Lose(run, quantileLoss, 0), packets, uint8(fitting))
		cells.Add(t.cells)
		line := ranks.Line(plot.Series{Name: law.Name, Kind: plot.Line})
		for k := 1; k < 200; k++ {
			q := float64(k) / 200
			line.Add(100*q, 100*t.rankError(t.samples, q))
		}
		row, alone := []string{law.Name, fmt.Sprint(t.samples.N())}, []string{fmt.Sprint(t.samples.N() / quantileIntervals)}
		for k, a := range asked {
			off := math.Abs(t.rankError(t.samples, a.p))
			worst[k] = max(worst[k], off)
			row = append(row, fmt.Sprintf("%.2f", 100*off))
			alone = append(alone, fmt.Sprintf("%.2f", 100*t.alone(a.p)))
		}
		table.Row(row, alone)
	}
	limits := ranks.Line(plot.Series{Name: "asked for", Kind: plot.Markers, Paper: true})
	for _, a := range asked {
		limits.AddRange(100*a.p, 0, -100*a.limit, 100*a.limit)
	}

	best := math.Exp(-1) * (1 - quantileLoss) // share of the cells
	run.Claim("cells that give a sample, at one packet a cell", fmt.Sprintf("%.1f %% expected", 100*best),
		fmt.Sprintf("%.1f %%", 100*cells.Mean()), experiment.Fits(cells.Mean(), best, best, 0.02))
	for k, a := range asked {
		run.Keeps(fmt.Sprintf("rank error of p%g, worst of the distributions, percentage points; our aim: at most %g", 100*a.p, 100*a.limit),
			"impossible", fmt.Sprintf("%.2f", 100*worst[k]), worst[k] <= a.limit)
	}
	run.Config("laws", Laws, "loss", quantileLoss, "intervals", quantileIntervals, "packets", packets, "rows", rows, "shift", fitting)
	theory := best * rows * quantileIntervals // samples
	run.Note("A quantile is judged by its rank among all packets that arrived in the intervals. Delays are whole nanoseconds, and many " +
		"packets share one.")
	run.Notef("By the theory of independent samples, %.0f of them put the rank of a median within %.2f percentage points, of a p99 within "+
		"%.2f, two times in three.", theory, 100*rankDeviation(0.5, theory), 100*rankDeviation(0.99, theory))
}

// rankDeviation returns the standard error of a quantile's rank.
func rankDeviation(p, samples float64) float64 { return math.Sqrt(p * (1 - p) / samples) }
