package estimate

import (
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// bigMoments returns mean and sum of squared deviations by the definition, in two passes with 400 bits.
func bigMoments(samples []float64) (mean, squares float64) {
	number := func(x float64) *big.Float { return new(big.Float).SetPrec(400).SetFloat64(x) }
	sum := number(0)
	for _, x := range samples {
		sum.Add(sum, number(x))
	}
	m := number(0).Quo(sum, number(float64(len(samples))))
	total := number(0)
	for _, x := range samples {
		d := number(0).Sub(number(x), m)
		total.Add(total, d.Mul(d, d))
	}
	mean, _ = m.Float64()
	squares, _ = total.Float64()
	return mean, squares
}

// farSamples are delays of 200 ± 10 ns seen across clocks that are offset.
func farSamples(n int, offset float64) []float64 {
	rng := rand.New(rand.NewPCG(1, 2))
	samples := make([]float64, n)
	for i := range samples {
		samples[i] = offset + math.Round(200+10*rng.NormFloat64())
	}
	return samples
}

func TestMomentsAreStable(t *testing.T) {
	for _, offset := range []float64{0, 1e6, -1e9, 1e12, 1e15} {
		samples := farSamples(20_000, offset)
		wantMean, wantSquares := bigMoments(samples)
		n := float64(len(samples))

		// The running mean is off by at most an ulp of itself per sample; each deviation by as much. So to first order is their sum.
		ulp := math.Nextafter(math.Abs(wantMean), math.Inf(1)) - math.Abs(wantMean)
		variance := wantSquares / (n - 1)
		tolerance := 4*ulp/math.Sqrt(variance) + n*0x1p-52
		if tolerance > 0.1 {
			t.Fatalf("offset %g: a tolerance of %g shows nothing", offset, tolerance)
		}

		var m Moments
		naive := 0.0
		for _, x := range samples {
			m.Add(x)
			naive += x * x
		}
		if e := off(m.Variance(), variance); !(e <= tolerance) {
			t.Errorf("offset %g: variance %v, want %v", offset, m.Variance(), variance)
		}
		if e := off(m.PopulationVariance(), wantSquares/n); !(e <= tolerance) {
			t.Errorf("offset %g: population variance %v", offset, m.PopulationVariance())
		}
		if e := math.Abs(m.Mean() - wantMean); !(e <= 4*ulp*math.Sqrt(n)) {
			t.Errorf("offset %g: mean off by %g, ulp %g", offset, e, ulp)
		}
		// Negative control: sums of squares, which the same check rejects.
		naive = (naive - n*wantMean*wantMean) / (n - 1)
		if math.Abs(offset) >= 1e9 && off(naive, variance) <= tolerance {
			t.Errorf("offset %g: the check accepts the difference of large sums, %v", offset, naive)
		}
	}
}

func TestMomentsMergeInAnyOrder(t *testing.T) {
	samples := farSamples(1_000, 1e9)
	var whole, left, right Moments
	for i, x := range samples {
		whole.Add(x)
		if i%3 == 0 {
			left.Add(x)
		} else {
			right.Add(x)
		}
	}
	// Deviations of 10 from a mean that is itself rounded to 2^-23.
	const tolerance = 4 * 0x1p-23 / 10
	for _, pair := range [][2]Moments{{left, right}, {right, left}, {whole, {}}, {{}, whole}} {
		m := pair[0]
		m.Merge(pair[1])
		if m.N() != whole.N() || off(m.Mean(), whole.Mean()) > 1e-14 || off(m.Variance(), whole.Variance()) > tolerance {
			t.Errorf("merged %+v, want %+v", m, whole)
		}
	}
}

func TestMomentsOfFewSamples(t *testing.T) {
	var m Moments
	if _, err := m.Delay(); !errors.Is(err, ErrNoSamples) {
		t.Errorf("no samples: %v", err)
	}
	if m.Mean() != 0 || m.Variance() != 0 || m.PopulationVariance() != 0 {
		t.Errorf("no samples: %+v", m)
	}
	m.Add(-7)
	if d, err := m.Delay(); err != nil || d != (Delay{Mean: -7, N: 1}) {
		t.Errorf("one sample: %+v, %v", d, err)
	}
	m.Add(-9)
	if d, err := m.Delay(); err != nil || d != (Delay{Mean: -8, StdDev: math.Sqrt2, N: 2}) {
		t.Errorf("two samples: %+v, %v", d, err)
	}
}

func TestSignExtend(t *testing.T) {
	for _, c := range []struct {
		v    uint64
		bits int
		want int64
	}{
		{0, 1, 0}, {1, 1, -1}, {2, 1, 0},
		{0x7f, 8, 127}, {0x80, 8, -128}, {0xff, 8, -1}, {0x1ff, 8, -1}, {0x100, 8, 0},
		{0x7f_ffff_ffff, 40, 1<<39 - 1}, {0x80_0000_0000, 40, -1 << 39},
		{1<<63 - 1, 64, math.MaxInt64}, {1 << 63, 64, math.MinInt64}, {math.MaxUint64, 64, -1},
	} {
		if got := SignExtend(c.v, c.bits); got != c.want {
			t.Errorf("%#x of %d bits: got %d, want %d", c.v, c.bits, got, c.want)
		}
	}
}
