package clock

import (
	"math"
	"math/rand/v2"
	"testing"
)

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
