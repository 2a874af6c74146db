package estimate

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// slowQuantile is the definition: the first sample in order that at least the
// fraction hundredths/100 of all do not exceed, in whole numbers.
func slowQuantile(samples []float64, hundredths int) float64 {
	sorted := slices.Sorted(slices.Values(samples))
	for _, x := range sorted {
		atMost := 0
		for _, y := range samples {
			if y <= x {
				atMost++
			}
		}
		if 100*atMost >= hundredths*len(samples) {
			return x
		}
	}
	return math.NaN()
}

func TestQuantileIsTheDefinition(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine, for long under the race detector")
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for n := 1; n <= 120; n++ {
		samples := make([]float64, n)
		for i := range samples {
			samples[i] = float64(rng.IntN(50)) // with ties
		}
		e := NewEmpirical(slices.Clone(samples))
		for hundredths := 0; hundredths <= 100; hundredths++ {
			want := slowQuantile(samples, hundredths)
			got, err := e.Quantile(float64(hundredths) / 100)
			if err != nil || got != want {
				t.Fatalf("%d samples, %d %%: got %v, %v, want %v", n, hundredths, got, err, want)
			}
		}
		for x := -1.0; x < 52; x += 0.5 {
			atMost := 0
			for _, y := range samples {
				if y <= x {
					atMost++
				}
			}
			if got, want := e.CDF(x), float64(atMost)/float64(n); got != want {
				t.Fatalf("%d samples: CDF(%v) is %v, want %v", n, x, got, want)
			}
		}
	}
}

func TestEmpiricalOfOddSamples(t *testing.T) {
	empty := NewEmpirical([]float64{math.NaN()})
	if _, err := empty.Quantile(0.5); !errors.Is(err, ErrNoSamples) {
		t.Errorf("no samples: %v", err)
	}
	if empty.N() != 0 || empty.CDF(1) != 0 || empty.QuantileInterval(0.5, 0.9) != anywhere {
		t.Errorf("no samples: %+v", empty)
	}
	e := NewEmpirical([]float64{math.Inf(1), 2, math.NaN(), math.Inf(-1)})
	if e.N() != 3 || e.CDF(2) != 2.0/3 || e.CDF(math.Inf(1)) != 1 {
		t.Errorf("%+v", e)
	}
	for p, want := range map[float64]float64{-1: math.Inf(-1), 0.5: 2, 2: math.Inf(1), math.Inf(1): math.Inf(1)} {
		if got, err := e.Quantile(p); err != nil || got != want {
			t.Errorf("quantile %v: %v, %v, want %v", p, got, err, want)
		}
	}
	if _, err := e.Quantile(math.NaN()); err == nil {
		t.Error("the quantile at NaN is a number")
	}
}

// binomialAtMost is Pr[at most k of n], by the recurrence of its terms.
func binomialAtMost(n, k int, p float64) float64 {
	term, sum := math.Pow(1-p, float64(n)), 0.0
	for i := 0; i <= k; i++ {
		sum += term
		term *= float64(n-i) / float64(i+1) * p / (1 - p)
	}
	return sum
}

// The ranks are the tightest that the binomial distribution allows. No tail
// here is a probability of that distribution, which rounding would decide.
func TestQuantileRanks(t *testing.T) {
	for n := 1; n <= 60; n++ {
		for _, p := range []float64{0.01, 0.1, 0.5, 0.77, 0.9, 0.99} {
			for _, tail := range []float64{0.24, 0.05, 0.003} {
				wantLow, wantHigh := 0, n+1
				for k := 1; k <= n; k++ {
					if binomialAtMost(n, k-1, p) <= tail {
						wantLow = k
					}
				}
				for k := n; k >= 1; k-- {
					if 1-binomialAtMost(n, k-1, p) <= tail {
						wantHigh = k
					}
				}
				low, high := quantileRanks(n, p, tail)
				if low != wantLow || high != wantHigh {
					t.Errorf("n %d, p %v, tail %v: ranks %d to %d, want %d to %d", n, p, tail, low, high, wantLow, wantHigh)
				}
			}
		}
	}
}

func TestRelativeError(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct{ estimate, truth, want float64 }{
		{1, 1, 0}, {0, 0, 0}, {1.5, 1, 0.5}, {0.5, 1, 0.5}, {-1, 1, 2}, {-1.5, -1, 0.5},
		{1, 0, inf}, {0, 1, 1}, {nan, 1, inf}, {1, nan, inf}, {nan, 0, inf}, {inf, inf, 0}, {inf, 1, inf}, {1, inf, inf},
	} {
		if got := RelativeError(c.estimate, c.truth); got != c.want {
			t.Errorf("%v for %v: %v, want %v", c.estimate, c.truth, got, c.want)
		}
	}
}

func FuzzEmpirical(f *testing.F) {
	f.Add(1.0, 2.0, 3.0, 0.5, 0.9)
	f.Add(math.NaN(), math.Inf(1), math.Inf(-1), 0.07, 0.999)
	f.Add(0.0, math.Copysign(0, -1), 5e-324, 1.0, math.NaN())
	f.Fuzz(func(t *testing.T, a, b, c, p, confidence float64) {
		e := NewEmpirical([]float64{a, b, c, a, b})
		if q, err := e.Quantile(p); math.IsNaN(q) || err == nil && e.CDF(q) == 0 {
			t.Errorf("quantile %v of %v: %v, %v", p, e.sorted, q, err)
		}
		if i := e.QuantileInterval(p, confidence); !(i.Low <= i.High) {
			t.Errorf("interval of %v at %v of %v: %+v", p, confidence, e.sorted, i)
		}
		if r := RelativeError(a, b); !(r >= 0) {
			t.Errorf("relative error of %v for %v: %v", a, b, r)
		}
	})
}
