package rli

import (
	"math"
	"testing"
)

// TestEnter: a stretch counts once, and when no more fit, packets still count.
func TestEnter(t *testing.T) {
	r := record{}
	for _, x := range []struct {
		stretch uint32
		part    float64 // of a bridge
	}{{4, 0.25}, {4, 0.75}, {6, 0.5}} {
		r.enter(1, x.stretch, 3, float32(math.Sqrt(x.part/(1-x.part))))
	}
	// The covariance of a Brownian bridge at s and t is s·(1−t), so here the correlation is a third.
	if want := 3.0*3*(2+2/3.0) + 3*3; math.Abs(r.error-want) > 1e-5 {
		t.Errorf("two errors of 3 in a stretch and one in another: %v, want %v", r.error, want)
	}
	if r.count() != 3 || r.stretches() != 2 {
		t.Errorf("%d packets in %d stretches, want 3 in 2", r.count(), r.stretches())
	}
	r.tally = mostStretches<<countBits | 7
	if r.enter(1, 7, 0, 1); r.count() != 8 || r.stretches() != mostStretches {
		t.Errorf("%d packets in %d stretches, want 8 in %d", r.count(), r.stretches(), mostStretches)
	}
}
