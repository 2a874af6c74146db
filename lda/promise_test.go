package lda

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The default keeps its promises: no interval is refused, and the p97 is mostly bounded and right.
func TestPromises(t *testing.T) {
	const quantile, delay = 0.97, 1e6 // mean, ns
	for _, packets := range []int{1e4, 1e5, 5e5} {
		const runs = 10
		missed, open, x := 0, 0, newRun(t, DefaultConfig)
		for seed := range uint64(runs) {
			x.pass(rand.New(rand.NewPCG(seed, 21)), packets, losing(0.01, exponentialDelay(delay)))
			q, err := accumulated(t, x.up, x.down).Quantile(quantile, 0.95)
			if err != nil {
				open++ // chance looks like copies, once in 10 to 25
			} else if !q.Interval.Contains(-delay * math.Log(1-quantile)) {
				missed++
			}
		}
		// Of ten intervals of 95 % four or more miss once in a thousand times.
		if missed > 3 || open > 4 {
			t.Errorf("%d packets: %d of %d quantiles missed, %d open", packets, missed, runs, open)
		}
	}
}
