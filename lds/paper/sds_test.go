package paper

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// Figs. 2 and 3: the mean of a flow is that of its least loaded cell, which is its own for a flow by itself. A
// flow without a packet has none.
func TestSDS(t *testing.T) {
	s, err := NewSDS(4, 500)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	sums, counts := map[hashing.Flow]float64{}, map[hashing.Flow]uint64{}
	for range 50_000 {
		f, delay := hashing.Flow(hashing.Word(1, rng.Uint64N(100))), rng.Int64N(1e6)-1e5
		s.Update(f, delay)
		sums[f] += float64(delay)
		counts[f]++
	}
	exact := 0
	for f, n := range counts {
		mean, packets, err := s.Estimate(f)
		if err != nil || packets < n {
			t.Fatalf("%d packets of %d, %v", packets, n, err)
		}
		if packets == n {
			exact++
			if want := sums[f] / float64(n); math.Abs(mean-want) > 1e-6 {
				t.Errorf("%g, want %g", mean, want)
			}
		}
	}
	// A flow meets one of 99 others in a row with probability 0.18, in all four with 0.001.
	if exact < 97 {
		t.Errorf("%d of 100 flows alone in a cell", exact)
	}
	s, _ = NewSDS(2, 3)
	if _, _, err := s.Estimate(5); !errors.Is(err, estimate.ErrNoSamples) {
		t.Error(err)
	}
	for _, size := range [][2]int{{0, 1}, {9, 1}, {1, 0}, {1, 1<<22 + 1}} {
		if _, err := NewSDS(size[0], size[1]); !errors.Is(err, estimate.ErrConfig) {
			t.Errorf("%v: %v", size, err)
		}
	}
}
