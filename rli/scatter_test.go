package rli

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/estimate"
)

// TestScatter: draws have the mean that a bridge says, and the mean square of a
// Bessel bridge. The negative control draws both ends in one direction.
func TestScatter(t *testing.T) {
	const n = 100_000
	r := &Receiver{tracker: &tracker{random: rand.New(rand.NewPCG(3, 4))}}
	s := newSpread()
	s.height.learn(cellOf(500, 500), 100, 4, 1)
	for _, c := range []struct{ from, to, at float64 }{
		{0, 300, 0.5}, {300, 0, 0.2}, {100, 100, 0.5}, {20, 500, 0.7}, {400, 400, 0.5}, {5, 5, 0.1},
	} {
		b := s.bridge(end{point{0, c.from}, true}, end{point{1000, c.to}, true})
		since, left := 1000*c.at, 1000*(1-c.at)
		m, plain, v := b.plain(since, left, 0)
		square := m*m + 3*v
		if x := b.product * since * left / 1e6 / v; x > 0 {
			square = m*m + v + 2*v*x/math.Expm1(x)
		}
		var drawn, squares, control estimate.Moments
		for range n {
			w := r.distance(b.middle(since, left, v, r.random.Float64()), v)
			drawn.Add(w)
			squares.Add(w * w)
			control.Add(math.Pow(r.distance(m, v), 2))
		}
		six := func(m *estimate.Moments) float64 { return 6 * math.Sqrt(m.Variance()/n) }
		if off := math.Abs(squares.Mean() - square); off > six(&squares) {
			t.Errorf("%+v: a mean square of %v, want %v ± %v", c, squares.Mean(), square, six(&squares))
		}
		if off := math.Abs(drawn.Mean() - plain); off > six(&drawn)+0.003*plain {
			t.Errorf("%+v: a mean of %v, the bridge says %v", c, drawn.Mean(), plain)
		}
		if mean := exactMean(&b, since, left, v); math.Abs(plain-mean) > 0.003*mean {
			t.Errorf("%+v: the bridge says %v, its mean is %v", c, plain, mean)
		}
		if c.from*c.to > 1000 && math.Abs(control.Mean()-square) <= six(&control) {
			t.Errorf("%+v: in one direction %v, want %v as well", c, control.Mean(), square)
		}
	}
}

// exactMean is that of a Bessel bridge by its density, which is that of a Brownian
// motion that is killed at zero:
//
//	E[w] = (h(m) − h(d)·e⁻ˣ) / (1 − e⁻ˣ),  x = 2ab/σ²T
//
// where h(m) is the mean of |m + √v·N|, and m and d are (1−u)·a ± u·b.
func exactMean(b *bridge, since, left, variance float64) float64 {
	folded := func(m float64) float64 {
		return math.Sqrt(2*variance/math.Pi)*math.Exp(-m*m/2/variance) + m*math.Erf(m/math.Sqrt(2*variance))
	}
	near, far := b.from.wait*left/b.length, b.to.wait*since/b.length
	if near*far == 0 {
		near, far = max(near, 1e-3*math.Sqrt(variance)), max(far, 1e-3*math.Sqrt(variance))
	}
	x := 2 * near * far / variance
	return (folded(near+far) - folded(near-far)*math.Exp(-x)) / -math.Expm1(-x)
}
