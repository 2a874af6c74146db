package lds

import (
	"math"
	"testing"

	"github.com/hoplag/hoplag/estimate"
)

// However the packets are chosen that are left out, the mean of the others is off
// by no more than is said; of two kinds of delays it is off by as much.
func TestLeftOut(t *testing.T) {
	delays := make([]float64, 1000)
	for i := range delays {
		delays[i] = math.Exp(float64(i) / 150) // by rank, as a queue that fills
	}
	of := func(list []float64) (m estimate.Moments) {
		for _, x := range list {
			m.Add(x)
		}
		return m
	}
	all := of(delays)
	for _, kept := range []int{100, 500, 900, 990, 1000} {
		few := of(delays[:kept])
		r := Result{Share: float64(kept) / float64(len(delays))}
		off, most := all.Mean()-few.Mean(), r.LeftOut(math.Sqrt(all.PopulationVariance()))
		if off < 0 || off > most || kept < 1000 && off < most/10 {
			t.Errorf("of %v: off by %v, said at most %v", r.Share, off, most)
		}
	}
	// One in ten takes 1, the others nothing: deviation 0.3.
	if got := (&Result{Share: 0.9}).LeftOut(0.3); math.Abs(got-0.1) > 1e-12 {
		t.Errorf("%v, want 0.1", got)
	}
}
