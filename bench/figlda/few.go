package figlda

import (
	"errors"
	"fmt"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/queue"
)

const (
	lossPackets = 5_000
	lossRuns    = 5 * coverageRuns
)

// lossCoverage is how often intervals hold the probability of a loss, and how
// often at least. It is only the counts that matter, which an LDA knows
// exactly.
func lossCoverage(run *experiment.Run) (f plot.Figure, least int, err error) {
	f = plot.Figure{
		Name: "loss", Title: "Interval of the loss", Caption: fmt.Sprintf("Of %d runs of %d packets at each point.", lossRuns, lossPackets),
		X: LossAxis, Y: plot.Axis{Label: "intervals that hold the truth (%)"},
	}
	s := plot.Series{Name: "Clopper–Pearson"}
	least = lossRuns
	for _, probability := range ourLosses {
		loss, err := queue.NewLoss(queue.LossConfig{Probability: probability}, run.SeedOf(fmt.Sprint("losses ", probability)))
		if err != nil {
			return f, 0, err
		}
		held := 0
		for range lossRuns {
			r := lda.Result{Sent: lossPackets}
			for range lossPackets {
				if loss.Drop() {
					r.Lost++
				}
			}
			if r.LossInterval(confidence).Contains(probability) {
				held++
			}
		}
		least = min(least, held)
		s.Add(100*probability, 100*float64(held)/lossRuns)
	}
	f.Series = []plot.Series{s, nominal()}
	return f, least, nil
}

// All runs together have the packets of a quick trace.
const (
	fewPackets = 500
	fewLoss    = 0.2
)

// fewCoverage is how often the interval of the mean holds it where only a few
// packets are in usable cells: of short intervals at high loss, measured with
// few cells. A run without an estimate has an interval without bounds.
func fewCoverage(run *experiment.Run) (plot.Figure, error) {
	f := plot.Figure{
		Name: "few", Title: "Interval of the mean, from few packets",
		Caption: fmt.Sprintf("Of %d runs of %d packets each, %s of them lost, with 8 to 256 cells.", coverageRuns, fewPackets, experiment.Percent(fewLoss)),
		X:       plot.Axis{Label: "packets in usable cells, on average", Scale: plot.Log}, Y: plot.Axis{Label: "intervals that hold the truth (%)"},
	}
	var least, most float64
	for _, law := range allLaws() {
		t, err := NewTrace(run, law)
		if err != nil {
			return f, err
		}
		p, err := t.Lose(run, fewLoss, 0)
		if err != nil {
			return f, err
		}
		s := plot.Series{Name: law.Name}
		for few := 8; few <= 256; few *= 2 {
			held := 0
			var sample estimate.Moments
			for r := range coverageRuns {
				w := window(p, r*fewPackets, (r+1)*fewPackets)
				c := lda.Config{Identity: run.SeedOf(fmt.Sprint("few ", r)), SumBits: sumBits}
				c.Banks[0] = lda.Bank{Rows: few, Shift: lda.ShiftFor(few, fewLoss*fewPackets)}
				up, down, err := w.Measure(c, 1)
				if err != nil {
					return f, err
				}
				result, err := lda.Estimate(up, down)
				if err != nil && !errors.Is(err, estimate.ErrNoSamples) {
					return f, err
				}
				sample.Add(float64(result.N))
				if result.MeanInterval(confidence).Contains(arrivals(w).Mean()) {
					held++
				}
			}
			s.Add(sample.Mean(), 100*float64(held)/coverageRuns)
			if least == 0 {
				least = sample.Mean()
			}
			least, most = min(least, sample.Mean()), max(most, sample.Mean())
		}
		f.Series = append(f.Series, s)
	}
	f.Series = append(f.Series, plot.Level("98 %", 100*confidence, least, most))
	return f, nil
}

// arrivals are the delays of a window's packets that arrived.
func arrivals(w *Passage) *estimate.Moments {
	var m estimate.Moments
	for i, delay := range w.Delays {
		if !w.Lost[i] {
			m.Add(float64(delay))
		}
	}
	return &m
}
