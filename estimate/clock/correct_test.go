package clock

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/estimate"
)

// A reading takes the offset out of means and the drift out of deviations, there and back.
func TestSubtract(t *testing.T) {
	const n, spread = 20_000, 1e9 / 3.4641016
	rng, theta := rand.New(rand.NewPCG(1, 2)), steady(7e7, 1e-4)
	r := Reading{Time: epoch + 5e8, Offset: theta(5e8), Drift: 1e-4}
	for sign, r := range map[float64]Reading{1: r, -1: r.Reverse()} {
		var measured, truth estimate.Moments
		for range n {
			at, delay := 1e9*rng.Float64(), 2e5+1e4*rng.ExpFloat64()
			truth.Add(delay)
			measured.Add(delay + sign*theta(at))
		}
		d, err := measured.Delay()
		c := r.Subtract(d, spread)
		// The times' mean is the middle to within 1e9/√12/√20000 ns. The drift widens the delays, or this would tell nothing.
		if e := math.Abs(c.Mean - truth.Mean()); err != nil || e > 5*1e-4*spread/math.Sqrt(n) ||
			math.Abs(c.StdDev/truth.StdDev()-1) > 0.1 || d.StdDev < 2*truth.StdDev() || c.N != n {
			t.Errorf("%+v of %+v, want %v ± %v; %v", c, d, truth.Mean(), truth.StdDev(), err)
		}
	}
}

// Where a clock likely is must be where it certainly is, and it drifts as is likely.
func TestCertainCounts(t *testing.T) {
	for _, likely := range [][2]float64{{1, 2}, {1, 4.5}, {4.2, 4.4}, {9, 12}} {
		var k Reading
		k.Certain.Low, k.Certain.High, k.Likely.Low, k.Likely.High, k.LikelyDrift.High = 4, 5, likely[0], likely[1], 3
		if k = k.Within(k); k.Drift != 1.5 || !k.Certain.Contains(k.Likely.Low) || !k.Certain.Contains(k.Likely.High) ||
			!k.Likely.Contains(k.Offset) {
			t.Errorf("%v: %+v", likely, k)
		}
	}
}
