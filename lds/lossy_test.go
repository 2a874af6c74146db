package lds

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
)

// Cells that lost packets are weighed, not thrown away: in one comparison of a
// second, with exponential delays of 18 ms, nearly all flows of 1,000 packets have an
// answer, and intervals hold for flows of all sizes.
func TestLossyCellsAreWeighed(t *testing.T) {
	skipShort(t)
	for _, test := range []struct{ loss, answered, median float64 }{{0.001, 0.99, 0.011}, {0.01, 0.99, 0.03}, {0.05, 0.95, 0.061}} {
		c := DefaultConfig
		c.Columns = 1750
		up, down := mustNew(t, c), mustNew(t, c)
		r := rand.New(rand.NewPCG(1, 1))
		var keys []hashing.Flow
		var sent, means []float64
		for range 14_600 {
			f, mean, sum, arrived := hashing.Flow(r.Uint64()), 18e6*(0.5+r.Float64()), 0.0, 0.0
			n := paretoPackets(r)
			for range min(n, 20_000) {
				p, at, delay := hashing.Packet(r.Uint64()), r.Int64N(1e9), int64(mean*r.ExpFloat64())
				up.Update(f, p, at)
				if r.Float64() >= test.loss {
					down.Update(f, p, at+delay)
					sum += float64(delay)
					arrived++
				}
			}
			if arrived > 0 {
				keys, sent, means = append(keys, f), append(sent, float64(min(n, 20_000))), append(means, sum/arrived)
			}
		}
		decoded, err := Decode(t.Context(), up, down, records(keys, sent), joint.Options{})
		if err != nil {
			t.Fatal(err)
		}
		read := func(i int) (float64, estimate.Interval, bool) {
			r, err := Estimate(up, down, keys[i])
			return r.Mean, r.MeanInterval(0.95), err == nil
		}
		decode := func(i int) (float64, estimate.Interval, bool) {
			return decoded.Mean[i], decoded.MeanInterval(i, 0.95), decoded.Usable[i] > 0
		}
		for name, answer := range map[string]func(int) (float64, estimate.Interval, bool){"Estimate": read, "Decode": decode} {
			for _, class := range [][2]float64{{10, 99}, {100, 999}, {1000, math.Inf(1)}} {
				var errs []float64
				var flows, held, narrow float64
				for i, want := range means {
					if sent[i] < class[0] || sent[i] > class[1] {
						continue
					}
					flows++
					mean, within, ok := answer(i)
					if !ok {
						continue
					}
					errs = append(errs, math.Abs(mean/want-1))
					if within.Contains(want) {
						held++
					}
					if math.Abs(mean-want) < (within.High-within.Low)/20 {
						narrow++
					}
				}
				slices.Sort(errs)
				n, median := float64(len(errs)), errs[len(errs)/2]
				t.Logf("loss %g, %s, %g packets: %.3f answered, median error %.4f, %.3f in intervals", test.loss, name, class[0],
					n/flows, median, held/n)
				if least := 0.95 - 4*math.Sqrt(0.05*0.95/n); held < least*n {
					t.Errorf("loss %g, %s, %g packets: %.3f of %.0f in intervals", test.loss, name, class[0], held/n, n)
				}
				if class[0] == 1000 && (n < test.answered*flows || median > test.median) {
					t.Errorf("loss %g, %s: %.3f answered, median error %.4f", test.loss, name, n/flows, median)
				}
				if narrow >= 0.95*n { // the negative control
					t.Errorf("loss %g, %s, %g packets: a tenth of the intervals holds %.3f", test.loss, name, class[0], narrow/n)
				}
			}
		}
	}
}
