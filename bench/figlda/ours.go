package figlda

import (
	"iter"
	"math"
	"slices"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/queue/trace"
)

// narrow is a law that the paper did not try: a path on which delays vary
// little around what light and switches take.
var narrow = Law{Name: "200 ± 10 ns", Delays: trace.DelaysConfig{Law: trace.Even, Mean: meanDelay, Spread: 10}}

// allLaws are the paper's four and the narrow one.
func allLaws() []Law { return append(slices.Clone(Laws), narrow) }

// ourLosses are the loss rates from 0.01 to 20 %.
var ourLosses = []float64{0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.2}

// onBank shows a bank of 1,024 cells the sampled share of the packets.
func onBank(p *Passage, share float64, seed uint64) (up, down *lda.Aggregator) {
	c := lda.Config{Identity: seed, SumBits: sumBits}
	c.Banks[0].Rows = rows
	return p.Measure(c, share)
}

// shareOf is the share that a shift samples.
func shareOf(shift uint8) float64 { return math.Ldexp(1, -int(shift)) }

// passages are a law's packets at every loss rate, by its number.
func passages(run *experiment.Run, law Law, losses []float64) iter.Seq2[int, *Passage] {
	t := NewTrace(run, law)
	return func(yield func(int, *Passage) bool) {
		for k, share := range experiment.Each(run, losses) {
			if !yield(k, t.Lose(run, share, 0)) {
				return
			}
		}
	}
}
