package rli

import "testing"

// TestEnter: a stretch counts once. When no more fit, packets still count, and so do errors too small to change a sum.
func TestEnter(t *testing.T) {
	r := record{}
	for _, stretch := range []uint32{4, 4, 6} {
		r.enter(1, stretch, 3)
	}
	r.begin(6, 0)
	if want := float32(6*6 + 3*3); r.error != want || int(1000*r.alike()) != 1000*45*45/(36*36+9*9) {
		t.Errorf("two errors of 3 in a stretch and one in another: %v, want %v", r.error, want)
	}
	if r.count() != 3 || r.stretches() != 2 {
		t.Errorf("%d packets in %d stretches, want 3 in 2", r.count(), r.stretches())
	}
	r.tally = mostStretches<<countBits | 7
	if r.enter(1, 7, 0); r.count() != 8 || r.stretches() != mostStretches {
		t.Errorf("%d packets in %d stretches, want 8 in %d", r.count(), r.stretches(), mostStretches)
	}
	r.error = 1 << 24
	r.tally = mostStretches<<countBits | 1<<25 // each with an error of 1
	if x := r.variance(); x < 1<<25 || x > 1.01*(1<<25) {
		t.Errorf("2^25 errors of 1: %v", x)
	}
}
