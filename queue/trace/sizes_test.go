package trace

import (
	"math"
	"testing"
)

// chiSquareLimit is what chi-square exceeds with that chance, by Wilson and
// Hilferty.
func chiSquareLimit(freedom float64) float64 {
	return freedom * math.Pow(1-2/(9*freedom)+limit*math.Sqrt(2/(9*freedom)), 3)
}

func TestMix(t *testing.T) {
	for _, c := range []struct {
		mix  Mix
		mean float64
	}{{IMIX, (7*40 + 4*576 + 1500) / 12.0}, {Bimodal, 770}, {Fixed(64), 64}, {Mix{{}, {100, 1}, {}, {300, 3}}, 250}} {
		if got := c.mix.Mean(); math.Abs(got-c.mean) > 1e-12*c.mean {
			t.Errorf("%v: mean %v, want %v", c.mix, got, c.mean)
		}
		const n = 120_000
		s := newSizer(c.mix, 1)
		seen := map[int32]float64{}
		for range n {
			seen[s.draw()]++
		}
		total := 0.0
		for _, size := range c.mix {
			total += size.Weight
		}
		sum, sizes := 0.0, 0
		for _, size := range c.mix {
			if size.Weight == 0 {
				continue
			}
			sizes++
			want := n * size.Weight / total
			sum += (seen[size.Bytes] - want) * (seen[size.Bytes] - want) / want
			delete(seen, size.Bytes)
		}
		if sizes > 1 && sum > chiSquareLimit(float64(sizes-1)) || len(seen) > 0 {
			t.Errorf("%v: chi-square %.1f, other sizes %v", c.mix, sum, seen)
		}
	}
}
