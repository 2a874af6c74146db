package trace

import (
	"math"
	"testing"
)

// chiSquareLimit is what chi-square exceeds with that chance, by Wilson and Hilferty.
func chiSquareLimit(freedom float64) float64 {
	return freedom * math.Pow(1-2/(9*freedom)+limit*math.Sqrt(2/(9*freedom)), 3)
}

func TestMix(t *testing.T) {
	for _, c := range []struct {
		mix  Mix
		mean float64
	}{{IMIX, (7*40 + 4*576 + 1500) / 12.0}, {Mix{{64, 1}}, 64}, {Mix{{}, {100, 1}, {}, {300, 3}}, 250}} {
		if got := c.mix.Mean(); math.Abs(got-c.mean) > 1e-12*c.mean {
			t.Errorf("%v: mean %v, want %v", c.mix, got, c.mean)
		}
		if x, most := mixChiSquare(c.mix, c.mix); x > most {
			t.Errorf("%v: chi-square %.1f, limit %.1f", c.mix, x, most)
		}
		// Negative control: one size a tenth more often.
		skewed := c.mix
		skewed[1].Weight *= 1.1
		if x, most := mixChiSquare(skewed, c.mix); skewed != c.mix && x <= most {
			t.Errorf("negative control: %v passes for %v, chi-square %.1f", skewed, c.mix, x)
		}
	}
}

// mixChiSquare draws sizes from one mix and returns their chi-square for another, infinite if that has not all
// of them, and its limit.
func mixChiSquare(from, of Mix) (x, most float64) {
	const n = 120_000
	s, seen, total, sizes := newSizer(from, 1), map[int32]float64{}, 0.0, 0.0
	for range n {
		seen[s.draw()]++
	}
	for _, size := range of {
		total += size.Weight
	}
	left := float64(n)
	for _, size := range of {
		if want := n * size.Weight / total; want > 0 {
			sizes++
			x += (seen[size.Bytes] - want) * (seen[size.Bytes] - want) / want
			left -= seen[size.Bytes]
		}
	}
	if left > 0 {
		x = math.Inf(1)
	}
	return x, chiSquareLimit(max(sizes-1, 1))
}
