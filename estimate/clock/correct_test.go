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

// The sums of a far clock become what the near clock would have added up.
func TestNearSum(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	for _, offset := range []float64{0, 0.4, -1e8 + 0.7, 3e11, -5e17} {
		theta := steady(offset, -4e-5)
		r := Reading{Time: epoch + 5e8, Offset: theta(5e8), Drift: -4e-5}
		for _, bits := range []int{38, 40, 64} {
			for _, packets := range []int{1, 2, 300} {
				var far, near uint64
				for range packets {
					at := rng.Int64N(1e9)
					near += uint64(epoch + at)
					far += uint64(epoch+at+int64(math.Floor(offset))) + uint64(int64(theta(float64(at))-math.Floor(offset)))
				}
				low := uint64(math.MaxUint64) >> (64 - bits)
				got := r.NearSum(far&low, uint64(packets), bits)
				// A stamp loses up to a nanosecond; the offset has 53 bits.
				off := math.Abs(float64(int64(got-near) << (64 - bits) >> (64 - bits)))
				if limit := float64(packets)*(1+math.Abs(offset)*0x1p-51) + 1; off > limit {
					t.Errorf("offset %g, %d bits, %d packets: off by %.0f ns", offset, bits, packets, off)
				}
				if packets == 1 && math.Abs(offset) < 1e12 {
					if e := r.NearTime(int64(far)) - int64(near); e < -1 || e > 1 {
						t.Errorf("offset %g: a stamp is off by %d ns", offset, e)
					}
				}
			}
		}
	}
}
