// Package figours measures what is ours beside what is the papers', on the
// same packets and with the same memory. Its packets are those of package
// figlda: an interval of 5,000,000 of them, 500,000 in a quick run, whose
// delays have a mean of 200 ns and are independent draws, from the paper's four
// distributions and from one that it did not try, 200 ± 10 ns: a path on which
// delays vary little around what light and switches take.
package figours

import (
	"context"
	"math"
	"slices"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/figlda"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/queue/trace"
)

// ldaGroup is the heading of the experiments on LDA.
const ldaGroup = "Ours: LDA"

// Experiments are those of our own estimators.
func Experiments() []experiment.Experiment {
	return []experiment.Experiment{ldaDeviation, ldaSampling, ldaQuantiles, ldaCoverage, ldaDigest, ldaControl}
}

const (
	rows      = 1024 // cells of the one bank
	sumBits   = 40
	meanDelay = 200 // ns, of all laws
)

// narrow is the law that the paper did not try.
var narrow = figlda.Law{Name: "200 ± 10 ns", Delays: trace.DelaysConfig{Law: trace.Even, Mean: meanDelay, Spread: 10}}

// allLaws are the paper's four and the narrow one.
func allLaws() []figlda.Law { return append(slices.Clone(figlda.Laws), narrow) }

// losses are the loss rates from 0.01 to 20 %.
var losses = []float64{0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.2}

// onBank shows a bank of 1,024 cells the sampled share of the packets.
func onBank(p *figlda.Passage, share float64, seed uint64) (up, down *lda.Aggregator, err error) {
	c := lda.Config{Seed: seed, SumBits: sumBits}
	c.Banks[0].Rows = rows
	return p.Measure(c, share)
}

// shareOf is the share that a shift samples.
func shareOf(shift uint8) float64 { return math.Ldexp(1, -int(shift)) }

// passages calls f with every loss rate of a law's packets.
func passages(ctx context.Context, run *experiment.Run, law figlda.Law, losses []float64, f func(k int, p *figlda.Passage) error) error {
	t, err := figlda.NewTrace(run, law)
	if err != nil {
		return err
	}
	for k, share := range losses {
		if err := ctx.Err(); err != nil {
			return err
		}
		p, err := t.Lose(run, share, 0)
		if err != nil {
			return err
		}
		if err := f(k, p); err != nil {
			return err
		}
	}
	return nil
}
