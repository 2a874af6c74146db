package figlda

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/lda"
)

var ldaQuantiles = experiment.Experiment{
	Name:   "ours-lda-quantiles",
	Group:  ours,
	Title:  "Quantiles from packets that are alone in their cell",
	Claim:  "The paper has the mean and the deviation of the delays and nothing else of their distribution (section III-A). A bank so thin that many cells hold one packet, 37 % of them at one packet a cell, gives exact delays of packets picked by a hash: quantiles for the asking.",
	Weight: 2.5, Quick: 0.4,
	Run: runQuantiles,
}

const (
	quantileIntervals = 100
	quantileLoss      = 0.01
)

// asked are the rank errors that are asked for.
var asked = []struct{ p, limit float64 }{{0.5, 0.010}, {0.9, 0.006}, {0.99, 0.0025}}

// thinned is what a law's intervals gave.
type thinned struct {
	samples estimate.Empirical   // of all intervals
	each    []estimate.Empirical // of each interval
	truth   estimate.Empirical
	cells   float64 // share that held one packet at both ends
	arrived float64 // packets that arrived, per cell, of those sampled
}

// window is some packets of a passage.
func window(p *Passage, from, to int) *Passage {
	return &Passage{Trace: &Trace{Law: p.Law, Delays: p.Delays[from:to]}, Lost: p.Lost[from:to]}
}

// thin cuts a passage into intervals and puts on each a bank that samples one
// packet in 2^shift.
func thin(run *experiment.Run, p *Passage, packets int, shift uint8) (*thinned, error) {
	var t thinned
	var samples, truth []float64
	for i := range quantileIntervals {
		w := window(p, i*packets, (i+1)*packets)
		up, down, err := onBank(w, shareOf(shift), run.SeedOf(fmt.Sprint("interval ", i)))
		if err != nil {
			return nil, err
		}
		from := len(samples)
		if samples, err = lda.AppendSamples(samples, up, down); err != nil {
			return nil, err
		}
		t.each = append(t.each, estimate.NewEmpirical(slices.Clone(samples[from:])))
		for k, delay := range w.Delays {
			if !w.Lost[k] {
				truth = append(truth, float64(delay))
			}
		}
	}
	cells := float64(rows * quantileIntervals)
	t.cells = float64(len(samples)) / cells
	t.arrived = float64(len(truth)) * shareOf(shift) / cells
	t.samples, t.truth = estimate.NewEmpirical(samples), estimate.NewEmpirical(truth)
	return &t, nil
}

// rankError is how far the rank of an empirical quantile is off, with its sign:
// 0 if the packets with that very delay, of which there are many since delays
// are whole nanoseconds, include the quantile's.
func (t *thinned) rankError(e estimate.Empirical, p float64) float64 {
	q, err := e.Quantile(p)
	if err != nil {
		return 1
	}
	below, upTo := t.truth.CDF(math.Nextafter(q, math.Inf(-1))), t.truth.CDF(q)
	return max(0, below-p) - max(0, p-upTo)
}

// alone is the mean absolute rank error of a single interval's quantile.
func (t *thinned) alone(p float64) float64 {
	var m estimate.Moments
	for _, e := range t.each {
		m.Add(math.Abs(t.rankError(e, p)))
	}
	return m.Mean()
}

func runQuantiles(ctx context.Context, run *experiment.Run) (experiment.Result, error) {
	// At this shift there is one packet to a cell.
	fitting := run.Pick(2, 5)
	packets := rows << fitting
	laws := Laws
	shifts := fitting + 4 // from no sampling on
	step := run.Steps(ctx, len(laws)+shifts)

	share := plot.Figure{
		Name: "share", Title: "Cells that give a sample",
		Caption: fmt.Sprintf("Average of %d intervals of %d packets, %s lost, by how many packets are sampled.", quantileIntervals, packets, experiment.Percent(quantileLoss)),
		X:       plot.Axis{Label: "packets a cell", Scale: plot.Log}, Y: plot.Axis{Label: "cells with one packet at both ends (%)"},
	}
	expected := plot.Series{Name: "expected, λ·exp(−λ)", Kind: plot.Line}
	for at := -4.0; at <= float64(fitting); at += 0.125 {
		sampled := math.Exp2(at)
		expected.Add(sampled, 100*(1-quantileLoss)*sampled*math.Exp(-sampled))
	}
	measured := plot.Series{Name: "measured", Kind: plot.Markers}
	ranks := plot.Figure{
		Name: "ranks", Title: fmt.Sprintf("Which quantile it really is, %d intervals together", quantileIntervals),
		Caption: "How far the rank of every quantile is off; the bars are what is asked of the median, the 90th and the 99th percentile.",
		X:       plot.Axis{Label: "quantile (%)"}, Y: plot.Axis{Label: "rank off by (percentage points)"},
	}
	table := experiment.Table{
		Name: "ranks", Title: fmt.Sprintf("Rank errors, percentage points: of %d intervals together, and of one on average", quantileIntervals),
		Columns: []string{"delays", "samples", "p50", "p90", "p99", "samples of one", "p50", "p90", "p99"},
	}
	var worst [3]float64
	var cells estimate.Moments
	for i, law := range laws {
		err := passages(ctx, run, law, []float64{quantileLoss}, func(_ int, p *Passage) error {
			t, err := thin(run, p, packets, uint8(fitting))
			if err != nil {
				return err
			}
			cells.Add(t.cells)
			line := plot.Series{Name: law.Name, Kind: plot.Line}
			for k := 1; k < 200; k++ {
				q := float64(k) / 200
				line.Add(100*q, 100*t.rankError(t.samples, q))
			}
			ranks.Series = append(ranks.Series, line)
			row := []string{law.Name, fmt.Sprint(t.samples.N())}
			for k, a := range asked {
				off := math.Abs(t.rankError(t.samples, a.p))
				worst[k] = max(worst[k], off)
				row = append(row, fmt.Sprintf("%.2f", 100*off))
			}
			row = append(row, fmt.Sprint(t.samples.N()/quantileIntervals))
			for _, a := range asked {
				row = append(row, fmt.Sprintf("%.2f", 100*t.alone(a.p)))
			}
			table.Add(row...)
			for shift := 0; i == 0 && shift < shifts; shift++ {
				t, err := thin(run, p, packets, uint8(shift))
				if err != nil {
					return err
				}
				measured.Add(t.arrived/(1-quantileLoss), 100*t.cells)
				if err := step(); err != nil {
					return err
				}
			}
			return step()
		})
		if err != nil {
			return experiment.Result{}, err
		}
	}
	limits := plot.Series{Name: "asked for", Kind: plot.Markers, Paper: true}
	for _, a := range asked {
		limits.AddRange(100*a.p, 0, -100*a.limit, 100*a.limit)
	}
	ranks.Series = append(ranks.Series, limits)
	share.Series = []plot.Series{expected, measured}

	best := math.Exp(-1) * (1 - quantileLoss) // share of the cells
	theory := best * rows * quantileIntervals // samples
	claims := []experiment.Claim{{
		What: "cells that give a sample, at one packet a cell", Paper: fmt.Sprintf("%.1f %% expected", 100*best), Ours: fmt.Sprintf("%.1f %%", 100*cells.Mean()),
		Verdict: experiment.Judge(best, cells.Mean(), 0.02),
	}}
	for k, a := range asked {
		claims = append(claims, experiment.Claim{
			What:  fmt.Sprintf("rank error of p%g, worst of the distributions, percentage points; asked for: at most %g", 100*a.p, 100*a.limit),
			Paper: "impossible", Ours: fmt.Sprintf("%.2f", 100*worst[k]), Verdict: judgeRank(worst[k], a.limit), Headline: true,
		})
	}
	return experiment.Result{
		Figures: []plot.Figure{share, ranks}, Tables: []experiment.Table{table}, Claims: claims,
		Config: map[string]any{"laws": laws, "loss": quantileLoss, "intervals": quantileIntervals, "packets": packets, "rows": rows, "shift": fitting},
		Notes: []string{
			"A quantile is judged by its rank among all packets that arrived in the intervals. Delays are whole nanoseconds, and many packets share one.",
			fmt.Sprintf("By the theory of independent samples, %.0f of them put the rank of a median within %.2f percentage points, of a p99 within %.2f, two times in three.", theory, 100*rankDeviation(0.5, theory), 100*rankDeviation(0.99, theory)),
		},
	}, nil
}

// rankDeviation is the standard error of a quantile's rank.
func rankDeviation(p, samples float64) float64 { return math.Sqrt(p * (1 - p) / samples) }

// judgeRank judges a rank error; what the paper cannot do at all is a win.
func judgeRank(off, limit float64) experiment.Verdict {
	if off > limit {
		return experiment.Loss
	}
	return experiment.Win
}
