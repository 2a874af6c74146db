package joint

import (
	"math"
	"math/rand/v2"
	"testing"
)

// queueing makes a world's delays those of a queue: nine flows in ten wait some
// hundred nanoseconds, and one in ten some ten milliseconds, larger ones less.
func queueing(s shape, seed uint64) *world {
	w := simulate(s, seed)
	rng := rand.New(rand.NewPCG(seed, 21))
	clear(w.Sum)
	clear(w.Count)
	clear(w.truth)
	for f, packets := range w.Packets {
		wait := 200 * math.Exp(0.5*rng.NormFloat64())
		if rng.IntN(10) == 0 {
			wait = 1e7 * math.Exp(rng.NormFloat64()) / math.Sqrt(packets)
		}
		for range int(packets) {
			delay := 1000 + wait*rng.ExpFloat64()
			w.truth[f] += delay / packets
			for r := range s.rows {
				if s.rates == nil || rng.Float64() < s.rates[r] {
					c := w.run(f, r)[rng.IntN(s.perRow)]
					w.Sum[c] += delay
					if w.Count != nil {
						w.Count[c]++
					}
				}
			}
		}
	}
	return w
}

// The intervals cover, over all flows and in each class of size, though flow
// means have two modes, sizes are Pareto, and no prior is given. Where delays are
// thousands of times apart, the error of a fast flow is of its own delay's size.
func TestCoverage(t *testing.T) {
	heavy(t)
	for name, shape := range shapes {
		w := simulate(shape, 11)
		w.holds(t, name, w.solve(t, Options{}), 0.2)
		w = queueing(shape, 41)
		own := w.solve(t, Options{})
		if got := w.medianError(own.Mean, 30); got > 1.5 {
			t.Errorf("%s: median error of flows of 30 packets and more %g", name, got)
		}
		w.holds(t, name+", queues", own, 0.01)
	}
}
