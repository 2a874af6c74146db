package lds

import (
	"errors"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
)

// The interval travels, and is forgotten by Reset; merged sketches are of the earlier one.
func TestIntervalTravels(t *testing.T) {
	const number, began = 41, 1_700_000_000_000_000_000
	s, later, none := mustNew(t, lossless), mustNew(t, lossless), mustNew(t, lossless)
	s.SetInterval(number, began)
	later.SetInterval(number+1, began+1)
	var decoded Sketch
	if err := errors.Join(decoded.UnmarshalBinary(encode(t, s)), later.Merge(s), later.Merge(none), none.Merge(s)); err != nil {
		t.Fatal(err)
	}
	for what, s := range map[string]*Sketch{"set": s, "decoded": &decoded, "merged": later, "merged into none": none} {
		if n, at := s.Interval(); n != number || at != began {
			t.Errorf("%s: interval %d at %d", what, n, at)
		}
		s.Reset()
		if n, at := s.Interval(); n != 0 || at != 0 {
			t.Errorf("%s, reset: interval %d at %d", what, n, at)
		}
	}
}

// Sketches that say that they are of different intervals are not compared, and those that say nothing are.
// Those of another identity are not, such as those that someone forges with a key that has since been changed.
func TestIntervalsAreNotMixed(t *testing.T) {
	stream := alone(10, func(i int) int64 { return int64(i) })
	for _, test := range []struct {
		up, down, identity uint64
		mixed              bool
	}{{0, 0, 0, false}, {3, 0, 0, false}, {0, 3, 0, false}, {3, 3, 0, false}, {3, 4, 0, true}, {3, 3, 1, true}} {
		up, _ := fill(t, lossless, stream)
		other := lossless
		other.Identity = test.identity
		_, down := fill(t, other, stream)
		up.SetInterval(test.up, 0)
		down.SetInterval(test.down, 1) // clocks differ
		_, estimated := Estimate(up, down, stream[0].flow)
		_, decoded := Decode(t.Context(), up, down, records([]hashing.Flow{stream[0].flow}, nil), joint.Options{})
		for what, err := range map[string]error{
			"Estimate": estimated, "Decode": decoded, "Add": mustAccumulate(t, lossless).Add(0, 1, up, down),
		} {
			if errors.Is(err, estimate.ErrMismatch) != test.mixed || !test.mixed && err != nil {
				t.Errorf("%s of intervals %d and %d: %v", what, test.up, test.down, err)
			}
		}
	}
}
