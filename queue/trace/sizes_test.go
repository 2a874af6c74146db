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
	}{{IMIX, (7*40 + 4*576 + 1500) / 12.0}, {Fixed(64), 64}, {Mix{{}, {100, 1}, {}, {300, 3}}, 250}} {
		if got := c.mix.Mean(); math.Abs(got-c.mean) > 1e-12*c.mean {
			t.Errorf("%v: mean %v, want %v", c.mix, got, c.mean)
		}
		if x, most, others := mixChiSquare(c.mix, c.mix); x > most || len(others) > 0 {
			t.Errorf("%v: chi-square %.1f, limit %.1f, other sizes %v", c.mix, x, most, others)
		}
		// Negative control: one size a tenth more often.
		skewed := c.mix
		skewed[1].Weight *= 1.1
		if x, most, _ := mixChiSquare(skewed, c.mix); skewed != c.mix && x <= most {
			t.Errorf("negative control: %v passes for %v, chi-square %.1f", skewed, c.mix, x)
		}
	}
}

// mixChiSquare draws sizes from one mix and returns their chi-square for
// another, its limit, and how often sizes that the other does not have came.
func mixChiSquare(from, of Mix) (x, most float64, others map[int32]float64) {
	const n = 120_000
	s := newSizer(from, 1)
	seen := map[int32]float64{}
	for range n {
		seen[s.draw()]++
	}
	total, sizes := 0.0, 0
	for _, size := range of {
		total += size.Weight
	}
	for _, size := range of {
		if size.Weight == 0 {
			continue
		}
		sizes++
		want := n * size.Weight / total
		x += (seen[size.Bytes] - want) * (seen[size.Bytes] - want) / want
		delete(seen, size.Bytes)
	}
	if sizes > 1 {
		most = chiSquareLimit(float64(sizes - 1))
	}
	return x, most, seen
}
