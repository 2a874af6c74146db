package figlda

import (
	"fmt"
	"math"

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

// coverLoss is how often intervals hold the probability of a loss. It is only
// the counts that matter, which an LDA knows exactly.
func coverLoss(run *experiment.Run) {
	s := plot.Series{Name: "Clopper–Pearson"}
	least := lossRuns
	for _, probability := range ourLosses {
		seed := run.SeedOf(fmt.Sprint("losses ", probability))
		loss := experiment.Try(queue.NewLoss(queue.LossConfig{Probability: probability}, seed))
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
	run.Draw("loss", "Interval of the loss", fmt.Sprintf("Of %d runs of %d packets at each point.", lossRuns, lossPackets), LossAxis,
		plot.LinearAxis("intervals that hold the truth (%)"), s, nominal())
	judgeLowest(run, "loss", least, lossRuns)
}

// All runs together have the packets of a quick trace.
const (
	fewPackets = 500
	fewLoss    = 0.2
)

// coverFew is how often the interval of the mean holds it where only a few
// packets are in usable cells: of short intervals at high loss, measured with
// few cells.
func coverFew(run *experiment.Run) {
	f := run.Draw("few", "Interval of the mean, from few packets",
		fmt.Sprintf("Of %d runs of %d packets each, %s of them lost, with 8 to 256 cells.", coverageRuns, fewPackets, percent(fewLoss)),
		plot.LogAxis("packets in usable cells, on average"), plot.LinearAxis("intervals that hold the truth (%)"))
	least, most := math.Inf(1), 0.0
	for _, law := range experiment.Each(run, allLaws()) {
		p := NewTrace(run, law).Lose(run, fewLoss, 0)
		s := plot.Series{Name: law.Name}
		for few := 8; few <= 256; few *= 2 {
			sample, held := p.fewHeld(run, few)
			s.Add(sample, 100*float64(held)/coverageRuns)
			least, most = min(least, sample), max(most, sample)
		}
		f.Series = append(f.Series, s)
	}
	f.Series = append(f.Series, plot.Level("98 %", 100*confidence, least, most))
}

// fewHeld is the average sample of few cells, and how many intervals held the
// truth. A run without an estimate has an interval without bounds.
func (p *Passage) fewHeld(run *experiment.Run, few int) (sample float64, held int) {
	var samples estimate.Moments
	for r := range coverageRuns {
		w := window(p, r*fewPackets, (r+1)*fewPackets)
		c := lda.Config{Identity: run.SeedOf(fmt.Sprint("few ", r)), SumBits: sumBits}
		c.Banks[0] = lda.Bank{Rows: few, Shift: lda.ShiftFor(few, fewLoss*fewPackets)}
		result, _ := experiment.Answer(lda.Estimate(w.Measure(c, 1)))
		samples.Add(float64(result.N))
		if result.MeanInterval(confidence).Contains(arrivals(w).Mean()) {
			held++
		}
	}
	return samples.Mean(), held
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
