package clock

import (
	"math"
	"math/rand/v2"
	"testing"
)

type law = func(*rand.Rand, float64) float64

func exponential(r *rand.Rand) float64 { return r.ExpFloat64() }

// hops returns what n queues in a row add, 20 µs each on average.
func hops(n int) func(*rand.Rand) float64 {
	return func(r *rand.Rand) (sum float64) {
		for range n {
			sum += 20e3 * r.ExpFloat64()
		}
		return sum
	}
}

func lognormal(r *rand.Rand) float64 { return 20e3 * math.Exp(2*r.NormFloat64()) }

// rare makes one packet in 10⁴ take a thousand times longer.
func rare(r *rand.Rand) float64 {
	x := 20e3 * r.ExpFloat64()
	if r.IntN(1e4) == 0 {
		x *= 1000
	}
	return x
}

var laws = []struct {
	name string
	law  func() law
	rate float64
}{
	{"loaded by 80 %", func() law { return queueing(0.8, 2e4, exponential) }, 370},
	{"loaded by 95 %", func() law { return queueing(0.95, 2e4, exponential) }, 100},
	{"lognormal", func() law { return independent(lognormal) }, 370},
	{"one hop", func() law { return independent(hops(1)) }, 370},
	{"two hops", func() law { return independent(hops(2)) }, 100},
	{"four hops", func() law { return independent(hops(4)) }, 370},
	{"rare", func() law { return independent(rare) }, 370},
	{"sparse", func() law { return independent(hops(2)) }, 6},
}

// tally counts how often the intervals of readings held the truth.
type tally struct{ n, certain, likely, certainDrift, likelyDrift, narrow int }

func (c *tally) add(r Reading, offset, drift float64) {
	c.n++
	for _, x := range []struct {
		misses *int
		held   bool
	}{
		{&c.certain, r.Certain.Contains(offset)},
		{&c.likely, r.Likely.Contains(offset)},
		{&c.certainDrift, r.CertainDrift.Contains(drift)},
		{&c.likelyDrift, r.LikelyDrift.Contains(drift)},
		{&c.narrow, math.Abs(offset-r.Offset) <= 0.03*(r.Likely.High-r.Likely.Low)/2},
	} {
		if !x.held {
			*x.misses++
		}
	}
}

// The certain intervals never exclude the truth, and the likely ones no more often than they say, for laws of delay that they were not
// made for. Readings of one run share samples, so only every fourth window counts; the tolerance is 4 standard errors.
func TestIntervalsHold(t *testing.T) {
	config := DefaultConfig
	config.Window, config.Asymmetry = 4, 0 // the worlds have none
	for _, c := range laws {
		t.Run(c.name, func(t *testing.T) {
			var got tally
			for seed := range uint64(18) {
				drift := (float64(seed) - 9) * 4e-6
				w := newWorld(seed, steady(1e8, drift), [2]float64{5e5, 5e5}, c.rate, c.law(), c.law())
				tracker := must(New(config))
				for i := range 20 {
					s := w.interval(1e9)
					r, err := tracker.Add(s[there], s[back])
					if err == nil && i%4 == 3 {
						got.add(r, w.theta(float64(r.Time-epoch)), drift)
					}
				}
			}
			if got.n < 80 {
				t.Fatalf("%d readings", got.n)
			}
			if got.certain > 0 || got.certainDrift > 0 {
				t.Errorf("certain intervals missed %d offsets and %d drifts of %d", got.certain, got.certainDrift, got.n)
			}
			most := 0.05*float64(got.n) + 4*math.Sqrt(0.05*0.95*float64(got.n))
			if float64(got.likely) > most || float64(got.likelyDrift) > most {
				t.Errorf("likely intervals missed %d offsets and %d drifts of %d", got.likely, got.likelyDrift, got.n)
			}
			// Negative control: an interval of 3 % of the width.
			if float64(got.narrow) <= most {
				t.Errorf("the check accepts an interval a thirtieth as wide, which missed %d of %d", got.narrow, got.n)
			}
		})
	}
}

func must(t *Tracker, err error) *Tracker {
	if err != nil {
		panic(err)
	}
	return t
}

// Where the least delays differ, the offset is off by half of the difference and no more. The certain interval
// holds, and so does the likely one if Config.Asymmetry covers the difference.
func TestAsymmetry(t *testing.T) {
	for _, told := range []float64{0, 600e3} {
		config := DefaultConfig
		config.Asymmetry = told
		w := newWorld(1, steady(-3e9, 1e-5), [2]float64{2e5, 8e5}, 370, independent(hops(1)), independent(hops(1)))
		tracker := must(New(config))
		for range 10 {
			s := w.interval(1e9)
			r, err := tracker.Add(s[there], s[back])
			if err != nil {
				t.Fatal(err)
			}
			truth := w.theta(float64(r.Time - epoch))
			if e := truth - r.Offset; math.Abs(e-300e3) > 5e3 {
				t.Errorf("off by %.0f ns, want half of the asymmetry of 600 µs", e)
			}
			if !r.Certain.Contains(truth) || r.Likely.Contains(truth) != (told > 0) {
				t.Errorf("told %v: truth %.0f, certain %v, likely %v", told, truth, r.Certain, r.Likely)
			}
		}
	}
}
