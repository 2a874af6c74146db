package estimate

import (
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// A cell of the tests: the sum of the delays of count packets.
type cell struct {
	sum   float64
	count uint64
}

func collect(cells []cell) Cells {
	var c Cells
	for _, x := range cells {
		c.Add(x.sum, x.count)
	}
	return c
}

// randomCells throws packets, whose delays draw makes, into cells.
func randomCells(rng *rand.Rand, packets, cells int, draw func() float64) []cell {
	out := make([]cell, cells)
	for range packets {
		x := &out[rng.IntN(cells)]
		x.sum += draw()
		x.count++
	}
	return out
}

// bigCells is the definition, in two passes with exact fractions.
func bigCells(cells []cell) (mean, variance float64) {
	ratio := func(x float64) *big.Rat { return new(big.Rat).SetFloat64(x) }
	sum, count, used := ratio(0), ratio(0), 0
	for _, x := range cells {
		sum.Add(sum, ratio(x.sum))
		count.Add(count, ratio(float64(x.count)))
		if x.count > 0 {
			used++
		}
	}
	d := sum.Quo(sum, count)
	total := ratio(0)
	for _, x := range cells {
		if x.count > 0 {
			n := ratio(float64(x.count))
			r := ratio(x.sum)
			r.Sub(r, new(big.Rat).Mul(n, d))
			total.Add(total, r.Quo(r.Mul(r, r), n))
		}
	}
	mean, _ = d.Float64()
	variance, _ = total.Quo(total, ratio(float64(used-1))).Float64()
	return mean, variance
}

func TestCellsAreTheFormula(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, offset := range []float64{0, 1e3, -1e6, 1e9, 1e12} {
		cells := randomCells(rng, 300, 60, func() float64 { return offset + math.Round(200+10*rng.NormFloat64()) })
		c := collect(cells)
		mean, variance := bigCells(cells)
		ulp := math.Nextafter(math.Abs(mean), math.Inf(1)) - math.Abs(mean)
		if e := math.Abs(c.Mean() - mean); !(e <= 8*ulp) {
			t.Errorf("offset %g: mean %v, want %v", offset, c.Mean(), mean)
		}
		// The mean's rounding, times a cell's count, against the cell's deviation.
		tolerance := 1e-13 + 100*ulp/math.Sqrt(variance)
		if e := off(c.Variance(), variance); !(e <= tolerance) {
			t.Errorf("offset %g: variance %v, want %v, off by %.2g", offset, c.Variance(), variance, e)
		}
	}
}

// slowDegrees is Satterthwaite's rule for squares that are weighted class by class, in two passes.
func slowDegrees(cells []cell, kurtosis, variance float64) float64 {
	mean, _ := bigCells(cells)
	type class struct {
		squares []float64
		inverse float64
	}
	classes := map[int]*class{}
	all := 0
	for _, x := range cells {
		if n := float64(x.count); n > 0 {
			k := int(math.Floor(math.Log2(n) / 2))
			if classes[k] == nil {
				classes[k] = new(class)
			}
			r := x.sum - n*mean
			classes[k].squares = append(classes[k].squares, r*r/n)
			classes[k].inverse += 1 / n
			all++
		}
	}
	var by, spread, normal float64
	for _, k := range classes {
		m := float64(len(k.squares))
		w := 1 / (2 + kurtosis*k.inverse/m)
		var squares Moments
		for _, y := range k.squares {
			squares.Add(y)
		}
		by, normal = by+w*m, normal+2*w*w*m
		spread += w * w * m * squares.PopulationVariance()
	}
	return 2 * by * by / max(normal, spread/(variance*variance)*float64(all)/float64(all-1))
}

func TestEffectiveDegrees(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	fewer := 0
	for range 200 {
		offset := float64(rng.IntN(1e9))
		drawn := randomCells(rng, 300, 2+rng.IntN(100), func() float64 { return offset + 1e3*rng.ExpFloat64() })
		c := collect(drawn)
		most := float64(c.DegreesOfFreedom())
		_, kurtosis := c.fit()
		want, got := min(max(slowDegrees(drawn, kurtosis, c.Variance()), 1), most), c.EffectiveDegrees(0)
		if want < most {
			fewer++
		}
		// A whole number is taken below it; rounding may take one away.
		if d := want - float64(got); !(d > -1e-3 && d < 1+1e-3) {
			t.Errorf("%d cells: %v degrees, want %v", c.Cells(), got, want)
		}
	}
	if fewer < 80 {
		t.Errorf("only %d of 200 had less than one degree a cell", fewer)
	}
}

func TestFewCells(t *testing.T) {
	var c Cells
	c.Add(123, 0)
	if c != (Cells{}) {
		t.Errorf("a cell without packets left %+v", c)
	}
	if _, err := c.Delay(); !errors.Is(err, ErrNoSamples) {
		t.Errorf("no cells: %v", err)
	}
	c.Add(30, 3)
	if d, err := c.Delay(); err != nil || d != (Delay{Mean: 10, N: 3}) || c.DegreesOfFreedom() != 0 {
		t.Errorf("one cell: %+v, %v", d, err)
	}
	if c.StdDev() != 0 || c.EffectiveDegrees(0) != 0 {
		t.Errorf("one cell: deviation %v, %d degrees", c.StdDev(), c.EffectiveDegrees(0))
	}
}

// laws are delays whose tails differ, of mean about 1.
var laws = map[string]func(*rand.Rand) float64{
	"constant":    func(*rand.Rand) float64 { return 1 },
	"exponential": (*rand.Rand).ExpFloat64,
	"Weibull 0.6": func(r *rand.Rand) float64 { return math.Pow(r.ExpFloat64(), 1/0.6) },
	"Pareto 3":    func(r *rand.Rand) float64 { return math.Pow(1-r.Float64(), -1.0/3) },
	"lognormal 2": func(r *rand.Rand) float64 { return math.Exp(2 * r.NormFloat64()) },
	"one in 10⁴ 1,000 times slower": func(r *rand.Rand) float64 {
		if r.IntN(10_000) == 0 {
			return 1000 * r.ExpFloat64()
		}
		return r.ExpFloat64()
	},
}

// From banks whose densities differ by thousands of times all packets' deviation is found. With equal weights it is not.
func TestDeviationOverUnequalDensities(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine, for long under the race detector")
	}
	const packets, rows, runs = 50_000, 1024, 8
	worstEqual := 0.0
	for name, law := range laws {
		var ours, equal Moments
		for seed := range uint64(runs) {
			rng := rand.New(rand.NewPCG(seed, 21))
			cells := make([]cell, 4*rows)
			var truth Moments
			for range packets {
				delay := law(rng)
				truth.Add(delay)
				bank := min(3, int(rng.ExpFloat64()/math.Ln2/4)) // 16 times thinner each
				x := &cells[bank*rows+rng.IntN(rows)]
				x.sum += delay
				x.count++
			}
			want := math.Sqrt(truth.PopulationVariance())
			if want == 0 {
				want = 1
			}
			c := collect(cells)
			_, variance := bigCells(cells)
			ours.Add(math.Abs(c.StdDev()-math.Sqrt(truth.PopulationVariance())) / want)
			equal.Add(math.Abs(math.Sqrt(variance)-math.Sqrt(truth.PopulationVariance())) / want)
		}
		// The sums vary no more than squares of normal variables: by 1/√(2·1024) from the fullest bank alone. The
		// mean of 8 exceeds 1.5 times that once in 10⁴.
		if got, most := ours.Mean(), 1.5/math.Sqrt(2*rows); !(got <= most) {
			t.Errorf("%s: deviation off by %.2f %%, want at most %.2f %%", name, 100*got, 100*most)
		}
		worstEqual = max(worstEqual, equal.Mean())
	}
	if worstEqual < 0.1 {
		t.Errorf("equal weights are off by %.1f %% at most: the test is blunt", 100*worstEqual)
	}
}

// Cells as registers hold them, of any sign and size, never make NaN.
func FuzzCells(f *testing.F) {
	f.Add(int64(1), uint64(1), int64(2), uint64(3), int64(4), uint64(0))
	f.Add(int64(math.MaxInt64), uint64(1), int64(math.MinInt64), uint64(math.MaxUint32), int64(-1), uint64(1))
	f.Add(int64(0), uint64(5), int64(0), uint64(5), int64(0), uint64(5))
	f.Fuzz(func(t *testing.T, x int64, nx uint64, y int64, ny uint64, z int64, nz uint64) {
		// Hardware counts packets in 32 bits.
		nx, ny, nz = nx>>32, ny>>32, nz>>32
		c := collect([]cell{{float64(x), nx}, {float64(y), ny}, {float64(z), nz}})
		d, err := c.Delay()
		if (err != nil) != (nx+ny+nz == 0) {
			t.Errorf("%d packets: %v", nx+ny+nz, err)
		}
		if i := DeviationInterval(d.StdDev, c.EffectiveDegrees(0), 0.9); !finite(d.Mean) || !(d.StdDev >= 0) || !(i.Low <= i.High) {
			t.Errorf("%+v: %+v, %+v", c, d, i)
		}
	})
}
