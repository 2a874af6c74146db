package rli

import (
	"math"
	"testing"
)

// TestBridge: the mean of a bridge is that of its density to within 0.3 %, and its predicted error lies between
// 0 and that of a packet without bounds. The negative control is the straight line.
func TestBridge(t *testing.T) {
	s := newSpread()
	unknown := s.bridge(end{}, end{point: point{place: 1000}})
	if _, error, _ := unknown.at(0, 300, 0); math.Abs(error-300/math.Sqrt(12)) > 1e-6 {
		t.Errorf("anywhere from 0 to 300: off by %v", error)
	}
	s.height.learn(cellOf(0, 500, 500), 100, 4, 1)
	for _, c := range []struct{ from, to, at float64 }{
		{0, 300, 0.5}, {300, 0, 0.2}, {100, 100, 0.5}, {20, 500, 0.7}, {400, 400, 0.5}, {5, 5, 0.1},
	} {
		b := s.bridge(end{point{wait: c.from}, true}, end{point{place: 1000, wait: c.to}, true})
		since, left := 1000*c.at, 1000*(1-c.at)
		line, plain, known := b.plain(cellOf(0, since, left), since, left, b.to.wait)
		v := math.Pow(s.height.at(cellOf(0, since, left))*scale(since, left), 2) * math.Pi / 8
		if mean := exactMean(&b, since, left, v); math.Abs(plain-mean) > 0.003*mean || math.Abs(line-mean) <= 0.003*mean {
			t.Errorf("%+v: the bridge says %v, the line %v, its mean is %v", c, plain, line, mean)
		}
		wait, error, _ := b.at(0, since, 0)
		if error < math.Sqrt(known)/2 && error < c.from+since || math.Abs(wait-min(plain, c.from+since)) > 1e-9 {
			t.Errorf("%+v: %v ± %v, plain %v", c, wait, error, plain)
		}
		for place, want := range map[float64]float64{0: c.from, 1000: c.to} {
			if wait, error, _ := b.at(0, place, 0); wait != want || error != 0 {
				t.Errorf("%+v: %v ± %v at the end", c, wait, error)
			}
		}
	}
}

// TestBeforeThePeriod: coarse timestamps may put a packet before the busy period that it belongs to. Nothing is
// learned from such packets, one of which once made all estimates NaN.
func TestBeforeThePeriod(t *testing.T) {
	c := DefaultConfig
	c.Rate = 1e9
	r, err := NewReceiver(c)
	if err != nil {
		t.Fatal(err)
	}
	r.spread.height.learn(cellOf(0, 500, 500), 100, 4, 1)
	course := r.spread.bridge(end{point{place: -3900, wait: 384}, true}, end{point: point{place: 10_320}})
	r.compare(&course, []held{{time: -1000, bytes: 85}}, &period{whole: true}, 10)
	if wait, error, _ := course.at(0, 5000, 0); !(wait >= 0) || !(error >= 0) {
		t.Errorf("%v ± %v", wait, error)
	}
}

// exactMean is that of a Bessel bridge by its density, which is that of a Brownian motion that is killed at
// zero:
//
//	E[w] = (h(m) − h(d)·e⁻ˣ) / (1 − e⁻ˣ),  x = 2ab/σ²T
//
// where h(m) is the mean of |m + √v·N|, and m and d are (1−u)·a ± u·b.
func exactMean(b *bridge, since, left, variance float64) float64 {
	folded := func(m float64) float64 {
		return math.Sqrt(2*variance/math.Pi)*math.Exp(-m*m/2/variance) + m*math.Erf(m/math.Sqrt(2*variance))
	}
	near, far := b.from.wait*left/(since+left), b.to.wait*since/(since+left)
	if near*far == 0 {
		near, far = max(near, 1e-3*math.Sqrt(variance)), max(far, 1e-3*math.Sqrt(variance))
	}
	x := 2 * near * far / variance
	return (folded(near+far) - folded(near-far)*math.Exp(-x)) / -math.Expm1(-x)
}
