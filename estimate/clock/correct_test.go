package clock

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/estimate"
)

// A correction takes the offset out of means and the drift out of deviations.
func TestSubtract(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	theta := steady(7e7, 1e-4)
	r := Reading{Time: epoch + 5e8, Offset: theta(5e8), Drift: 1e-4}
	var measured, truth, back estimate.Moments
	for range 20_000 {
		at := 1e9 * rng.Float64()
		delay := 2e5 + 1e4*rng.ExpFloat64()
		truth.Add(delay)
		measured.Add(delay + theta(at))
		back.Add(delay - theta(at))
	}
	of := func(m *estimate.Moments) estimate.Delay {
		d, err := m.Delay()
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	const spread = 1e9 / 3.4641016
	there, home := r.Subtract(of(&measured), spread), r.Reverse().Subtract(of(&back), spread)
	for name, c := range map[string]estimate.Delay{"there": there, "back": home} {
		// The times' mean is the middle to within 1e9/√12/√20000 ns.
		if e := math.Abs(c.Mean - truth.Mean()); e > 5*1e-4*spread/math.Sqrt(20_000) {
			t.Errorf("%s: mean %.0f, want %.0f", name, c.Mean, truth.Mean())
		}
		if e := math.Abs(c.StdDev/truth.StdDev() - 1); e > 0.1 {
			t.Errorf("%s: deviation %.0f, want %.0f", name, c.StdDev, truth.StdDev())
		}
		if c.N != 20_000 {
			t.Errorf("%s: %+v", name, c)
		}
	}
	if measured.StdDev() < 2*truth.StdDev() {
		t.Error("the drift did not widen the delays: a bad comparison")
	}
}

// Where a clock likely is must be where it certainly is.
func TestCertainCounts(t *testing.T) {
	for _, likely := range [][2]float64{{1, 2}, {1, 4.5}, {4.2, 4.4}, {9, 12}} {
		var k Reading
		k.Certain.Low, k.Certain.High, k.Likely.Low, k.Likely.High = 4, 5, likely[0], likely[1]
		if k = k.Within(k); !k.Certain.Contains(k.Likely.Low) || !k.Certain.Contains(k.Likely.High) || !k.Likely.Contains(k.Offset) {
			t.Errorf("%v: %+v", likely, k)
		}
	}
}
