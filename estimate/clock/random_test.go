package clock

import (
	"math"
	"math/rand/v2"
	"testing"
)

// somewhere makes a world of any laws, floors, drift and length of intervals, in whose interval number 25
// something of a kind happens to the clock.
func somewhere(seed uint64, kind string) (w *world, length float64) {
	rng := rand.New(rand.NewPCG(seed, 5))
	length = math.Pow(10, 8+2*rng.Float64())
	rate := math.Pow(10, 2+rng.Float64()) * 1e9 / length
	law := func() law {
		return independent([]func(*rand.Rand) float64{lognormal, rare, hops(1), hops(2), hops(3), hops(4)}[rng.IntN(6)])
	}
	floors := [2]float64{math.Pow(10, 5+2*rng.Float64()), 0}
	floors[1] = floors[0] * math.Exp(float64(rng.IntN(2))*rng.NormFloat64())
	drift := 2e-4 * (rng.Float64() - 0.5)
	at := (25 + 0.9*rng.Float64()) * length
	jump := math.Copysign(floors[0]+floors[1], rng.Float64()-0.5) * math.Pow(10, 2*rng.Float64()-1)
	theta := func(now float64) float64 {
		x := 1e8 + drift*now
		switch {
		case now > at && kind == "step":
			x += jump
		case now > at && kind == "slew":
			x += math.Copysign(5e-4, jump) * min(now-at, math.Abs(jump)/5e-4)
		}
		return x
	}
	return newWorld(seed, theta, floors, rate, law(), law()), length
}

// If packets come often enough, the certain interval always holds the truth, whatever the path and the clock
// do. A path that gets longer or shorter is not taken for a clock that steps.
func TestCertainAnywhere(t *testing.T) {
	for _, kind := range []string{"nothing", "step", "slew", "path"} {
		readings, narrow := 0, 0
		for seed := range uint64(12) {
			w, length := somewhere(seed, kind)
			tracker := must(New(DefaultConfig))
			for i := range 45 {
				if i == 25 && kind == "path" {
					w.links[seed%2].floor *= 0.5 + w.rng.Float64()
				}
				s := w.interval(length)
				if _, err := tracker.Add(s[there], s[back]); err != nil {
					continue
				}
				last := min(s[there][len(s[there])-1].Time, s[back][len(s[back])-1].Time)
				for at := w.now - int64(length); at <= last; at += int64(length / 10) {
					r, err := tracker.At(at)
					if err != nil {
						continue
					}
					readings++
					truth := w.theta(float64(at - epoch))
					if r.Stepped && (kind == "path" || kind == "nothing") {
						t.Errorf("%s, seed %d: taken for a step in interval %d", kind, seed, i)
					}
					if !r.Certain.Contains(truth) {
						t.Errorf("%s, seed %d, interval %d: %.0f not in %+v", kind, seed, i, truth, r.Certain)
					}
					// Negative control: an eighth of the interval.
					if half := (r.Certain.High - r.Certain.Low) / 16; math.Abs(truth-(r.Certain.Low+r.Certain.High)/2) > half {
						narrow++
					}
				}
			}
		}
		if readings < 4_500 || narrow < readings/10 {
			t.Errorf("%s: of %d readings, %d would not be held by an eighth of the interval", kind, readings, narrow)
		}
	}
}
