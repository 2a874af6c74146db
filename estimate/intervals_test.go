package estimate

import (
	"math"
	"math/rand/v2"
	"testing"
)

// racing tells that the race detector is watching.
var racing bool

// heavy begins a test that does a lot in one goroutine: there the race detector has nothing to find, and takes ten times as long.
func heavy(t *testing.T) {
	t.Helper()
	if racing {
		t.Skip("a lot to do in one goroutine, and nothing for the race detector")
	}
}

// covered is how often interval makes an interval that contains truth.
func covered(trials int, truth float64, interval func() Interval) float64 {
	hits := 0
	for range trials {
		if interval().Contains(truth) {
			hits++
		}
	}
	return float64(hits) / float64(trials)
}

// slack is 5 standard deviations of the coverage measured in so many trials:
// an exact interval leaves it by chance for one seed in 1.7 million.
func slack(confidence float64, trials int) float64 {
	return 5 * math.Sqrt(confidence*(1-confidence)/float64(trials))
}

// normalSample is mean 7 and deviation 3, summarised from n normal samples.
func normalSample(rng *rand.Rand, n int) Delay {
	var m Moments
	for range n {
		m.Add(7 + 3*rng.NormFloat64())
	}
	return Delay{Mean: m.Mean(), StdDev: m.StdDev(), N: m.N()}
}

// Equation (1) of the paper, evaluated at the interval's ends, gives back the confidence.
func TestHoeffdingIsTheEquation(t *testing.T) {
	for _, confidence := range []float64{0.1, 0.5, 0.9, 0.98, 0.999999} {
		d := Delay{Mean: 200, StdDev: 31, N: 777}
		i := HoeffdingInterval(d, confidence)
		for _, end := range []float64{i.Low, i.High} {
			epsilon := math.Abs(end-d.Mean) / d.Mean
			exponent := epsilon * epsilon * float64(d.N) * d.Mean * d.Mean / (2 * d.StdDev * d.StdDev)
			if e := off(2*math.Exp(-exponent), 1-confidence); e > 1e-9 {
				t.Errorf("%v: the bound at the end %v is off by %.2g", confidence, end, e)
			}
		}
	}
}

func TestDeviationCoverage(t *testing.T) {
	heavy(t)
	const trials = 20_000
	rng := rand.New(rand.NewPCG(4, 4))
	for _, n := range []int{2, 3, 30} {
		for _, confidence := range []float64{0.5, 0.9, 0.99} {
			got := covered(trials, 3, func() Interval {
				return DeviationInterval(normalSample(rng, n).StdDev, uint64(n-1), confidence)
			})
			if math.Abs(got-confidence) > slack(confidence, trials) {
				t.Errorf("%d samples, %v: covers %v", n, confidence, got)
			}
		}
	}
	// Negative control, and the limit that the documentation states: samples with a heavier tail.
	got := covered(trials, 1, func() Interval {
		var m Moments
		for range 30 {
			m.Add(rng.ExpFloat64())
		}
		return DeviationInterval(m.StdDev(), 29, 0.9)
	})
	if got >= 0.9-slack(0.9, trials) {
		t.Errorf("the check accepts exponential samples, covered %v", got)
	}
}

// The deviation's interval from many cells of few packets holds although single delays are far from normal.
func TestCellsCoverage(t *testing.T) {
	heavy(t)
	const trials, confidence = 2_000, 0.95
	rng := rand.New(rand.NewPCG(5, 5))
	low := confidence - slack(confidence, trials)
	for effective, holds := range []bool{false, true} {
		// Negative control: the squares of sums of 5 delays taken as those of normal ones.
		if got := covered(trials, 1, func() Interval {
			c := collect(randomCells(rng, 5_000, 1_000, rng.ExpFloat64))
			return DeviationInterval(c.StdDev(), []uint64{c.DegreesOfFreedom(), c.EffectiveDegrees(0)}[effective], confidence)
		}); got >= low != holds {
			t.Errorf("the interval by effective degrees %v: covers %v", holds, got)
		}
	}
	// The limit that the documentation states.
	const index = 3.0
	pareto := func() float64 { return math.Pow(1-rng.Float64(), -1/index) }
	truth := math.Sqrt(index/(index-2)) / (index - 1)
	if got := covered(trials, truth, func() Interval {
		c := collect(randomCells(rng, 500, 100, pareto))
		return DeviationInterval(c.StdDev(), c.EffectiveDegrees(0), confidence)
	}); got >= low {
		t.Errorf("delays of infinite fourth moment are covered %v: mend the documentation", got)
	}
}

// The coverage of a binomial interval is a finite sum, so it is computed, not sampled; the probabilities come from their recurrence.
func exactCoverage(trials uint64, p float64, interval func(successes uint64) Interval) float64 {
	probability, sum := math.Pow(1-p, float64(trials)), 0.0
	for k := uint64(0); k <= trials; k++ {
		if interval(k).Contains(p) {
			sum += probability
		}
		probability *= float64(trials-k) / float64(k+1) * p / (1 - p)
	}
	return sum
}

func TestProportionCoverage(t *testing.T) {
	heavy(t)
	waldFails := false
	for _, trials := range []uint64{1, 5, 20, 100} {
		for _, confidence := range []float64{0.5, 0.9, 0.99} {
			for p := 0.005; p < 1; p += 0.0101 {
				got := exactCoverage(trials, p, func(k uint64) Interval {
					return ProportionInterval(k, trials, confidence)
				})
				if got < confidence-1e-12 {
					t.Errorf("%d trials, p %.4f, %v: covers %v", trials, p, confidence, got)
				}
				// Negative control: the normal approximation.
				wald := exactCoverage(trials, p, func(k uint64) Interval {
					share := float64(k) / float64(trials)
					return StudentInterval(Delay{share, math.Sqrt(share * (1 - share)), trials}, 1e9, confidence)
				})
				waldFails = waldFails || wald < confidence-0.1
			}
		}
	}
	if !waldFails {
		t.Error("the check accepts the normal approximation")
	}
}

func TestProportionEnds(t *testing.T) {
	const tail = 0.025
	for _, n := range []uint64{1, 10, 1e6, 1e12, math.MaxUint64} {
		none, all := ProportionInterval(0, n, 1-2*tail), ProportionInterval(n, n, 1-2*tail)
		// (1−p)ⁿ = tail
		want := -math.Expm1(math.Log(tail) / float64(n))
		if none.Low != 0 || off(none.High, want) > 1e-12 {
			t.Errorf("none of %d: %+v, want up to %v", n, none, want)
		}
		want = math.Exp(math.Log(tail) / float64(n))
		if all.High != 1 || off(all.Low, want) > 1e-12 {
			t.Errorf("all of %d: %+v, want from %v", n, all, want)
		}
	}
}

// Where the iterations give way to expansions, both agree: to 2/100,000 of the deviation.
func TestLargeParametersJoin(t *testing.T) {
	const below, above = largeParameter * (1 - 1e-9), largeParameter * (1 + 1e-9)
	for _, p := range []float64{1e-6, 0.025, 0.5, 0.99} {
		for _, ratio := range []float64{1, 1000} {
			deviation := func(a, b float64) float64 { return math.Sqrt(a*b/(a+b)) / (a + b) }
			z := func(a float64) float64 {
				b := a * ratio
				return (betaQuantile(p, 1-p, a, b) - 1/(1+ratio)) / deviation(a, b)
			}
			if e := math.Abs(z(above) - z(below)); !(e < 2e-5) {
				t.Errorf("beta, p %v, 1 to %v: jumps by %.2g deviations", p, ratio, e)
			}
		}
		z := func(df float64) float64 { return (chiSquareQuantile(p, df) - df) / math.Sqrt(2*df) }
		if e := math.Abs(z(above) - z(below)); !(e < 2e-5) {
			t.Errorf("chi-square, p %v: jumps by %.2g deviations", p, e)
		}
		if e := math.Abs(StudentQuantile(p, above) - StudentQuantile(p, below)); !(e < 1e-9) {
			t.Errorf("student, p %v: jumps by %.2g", p, e)
		}
	}
}

func TestIntervalsOfNothing(t *testing.T) {
	good := Delay{Mean: 1, StdDev: 2, N: 3}
	nan, inf := math.NaN(), math.Inf(1)
	for _, confidence := range []float64{-1, 0, 1, 2, nan, inf, -inf} {
		for _, c := range []struct{ got, want Interval }{
			{HoeffdingInterval(good, confidence), anywhere},
			{StudentInterval(good, 5, confidence), anywhere},
			{DeviationInterval(1, 5, confidence), nonNegative},
			{ProportionInterval(1, 5, confidence), unit},
			{NewEmpirical([]float64{1, 2}).QuantileInterval(0.5, confidence), anywhere},
		} {
			if c.got != c.want {
				t.Errorf("confidence %v: %+v, want %+v", confidence, c.got, c.want)
			}
		}
	}
	for _, bad := range []Delay{{}, {Mean: nan, StdDev: 1, N: 1}, {Mean: inf, N: 1}, {StdDev: -1, N: 1}, {StdDev: nan, N: 1},
		{StdDev: inf, N: 1}} {
		for _, got := range []Interval{HoeffdingInterval(bad, 0.9), StudentInterval(bad, 5, 0.9)} {
			if got != anywhere {
				t.Errorf("%+v: %+v", bad, got)
			}
		}
	}
	if got := StudentInterval(good, 0, 0.9); got != anywhere {
		t.Errorf("no degrees of freedom: %+v", got)
	}
	for _, got := range []Interval{DeviationInterval(1, 0, 0.9), DeviationInterval(-1, 5, 0.9), DeviationInterval(nan, 5, 0.9),
		DeviationInterval(inf, 5, 0.9)} {
		if got != nonNegative {
			t.Errorf("bad deviation: %+v", got)
		}
	}
	for _, got := range []Interval{ProportionInterval(0, 0, 0.9), ProportionInterval(6, 5, 0.9)} {
		if got != unit {
			t.Errorf("bad proportion: %+v", got)
		}
	}
}

func FuzzIntervals(f *testing.F) {
	f.Add(1.0, 2.0, uint64(3), uint64(4), 0.9)
	f.Add(-1e300, 1e-300, uint64(1), uint64(1), 5e-324)
	f.Add(0.0, 0.0, uint64(math.MaxUint64), uint64(math.MaxUint64-1), 1-0x1p-53)
	f.Add(0.0, -3.0, uint64(math.MaxUint64), uint64(math.MaxUint64-44), 1-0x1p-53)
	f.Add(8.0, 18.0, uint64(17), uint64(4), 1-14*0x1p-53)
	f.Add(math.Inf(1), math.NaN(), uint64(0), uint64(1e9), 0.5)
	f.Add(math.MaxFloat64, math.MaxFloat64, uint64(1), uint64(1e8), 0.999)
	f.Fuzz(func(t *testing.T, mean, deviation float64, n, degrees uint64, confidence float64) {
		d := Delay{Mean: mean, StdDev: deviation, N: n}
		for name, i := range map[string]Interval{
			"Hoeffding":  HoeffdingInterval(d, confidence),
			"Student":    StudentInterval(d, degrees, confidence),
			"deviation":  DeviationInterval(deviation, degrees, confidence),
			"proportion": ProportionInterval(min(n, degrees), max(n, degrees), confidence),
		} {
			if !(i.Low <= i.High) || !(i.Confidence > 0 && i.Confidence <= 1) || between0And1(confidence) && i.Confidence < confidence {
				t.Errorf("%s of %+v, %d, %v: %+v", name, d, degrees, confidence, i)
			}
		}
	})
}

func TestQueriesDoNotAllocate(t *testing.T) {
	var m Moments
	var c Cells
	e := NewEmpirical([]float64{3, 1, 2, 5, 4, 9, 8})
	d := Delay{Mean: 1, StdDev: 2, N: 30}
	for name, f := range map[string]func(){
		"Moments": func() { m.Add(1); m.Merge(m); _, _ = m.Delay() },
		"Cells": func() {
			c.Add(1, 2)
			_, _ = c.Delay()
			c.EffectiveDegrees(0)
		},
		"Hoeffding":  func() { HoeffdingInterval(d, 0.9) },
		"Student":    func() { StudentInterval(d, 29, 0.9) },
		"deviation":  func() { DeviationInterval(2, 29, 0.9) },
		"proportion": func() { ProportionInterval(3, 1e6, 0.9) },
		"Empirical":  func() { _, _ = e.Quantile(0.5); e.QuantileInterval(0.5, 0.9); e.CDF(3) },
	} {
		if n := testing.AllocsPerRun(20, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
