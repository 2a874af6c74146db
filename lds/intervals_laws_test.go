package lds

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hoplag/hoplag/hashing"
)

// A law draws a flow's packets, and then delays of each.
type law func(r *rand.Rand) (packets int, delay func() float64)

// around is uniform within a fifth of a mean.
func around(r *rand.Rand, mean float64) func() float64 {
	return func() float64 { return mean * (0.8 + 0.4*r.Float64()) }
}

func paretoPackets(r *rand.Rand) int { return int(min(2*math.Pow(1-r.Float64(), -1/0.8), 1e5)) }

// laws are delays and sizes that nothing was fitted to.
var laws = map[string]law{
	"lognormal packets": func(r *rand.Rand) (int, func() float64) {
		return paretoPackets(r), func() float64 { return 1e5 * math.Exp(2*r.NormFloat64()) }
	},
	"lognormal flows": func(r *rand.Rand) (int, func() float64) {
		return paretoPackets(r), around(r, 1e5*math.Exp(2*r.NormFloat64()))
	},
	"one in 10,000 a thousand times slower": func(r *rand.Rand) (int, func() float64) {
		usual := around(r, 1e5*math.Exp(r.NormFloat64()/2))
		return paretoPackets(r), func() float64 {
			if r.Float64() < 1e-4 {
				return 1000 * usual()
			}
			return usual()
		}
	},
	"large flows are slow": func(r *rand.Rand) (int, func() float64) {
		n := paretoPackets(r)
		return n, around(r, 2e4*math.Pow(float64(n), 0.4))
	},
	"large flows are fast": func(r *rand.Rand) (int, func() float64) {
		n := paretoPackets(r)
		return n, around(r, 1e6*math.Pow(float64(n), -0.4))
	},
	"one flow in twenty is slow": func(r *rand.Rand) (int, func() float64) {
		if r.Float64() < 0.05 {
			return paretoPackets(r), around(r, 2e6)
		}
		return paretoPackets(r), around(r, 5e4)
	},
	"lognormal sizes": func(r *rand.Rand) (int, func() float64) {
		return 1 + int(min(math.Exp(3+1.5*r.NormFloat64()), 1e5)), around(r, 1e5*math.Exp(r.NormFloat64()/2))
	},
}

// obey fills sketches with flows by a law, and returns their packets and the
// means of those that arrived.
func (l law) obey(seed uint64, up, down []*Sketch, flows int, loss float64) (keys []hashing.Flow, packets []int, means []float64) {
	r := rand.New(rand.NewPCG(seed, 77))
	for i := range flows {
		n, delay := l(r)
		f := hashing.Flow(hashing.Word(seed, uint64(i)))
		var sum, arrived float64
		for range n {
			p, d := hashing.Packet(r.Uint64()), math.Trunc(delay())
			arrives := r.Float64() >= loss
			for i := range up {
				up[i].Update(f, p, 0)
				if arrives {
					down[i].Update(f, p, int64(d))
				}
			}
			if arrives {
				sum += d
				arrived++
			}
		}
		if arrived > 0 {
			keys, packets, means = append(keys, f), append(packets, n), append(means, sum/arrived)
		}
	}
	return keys, packets, means
}

// A width is what the intervals of a class of flows were.
type width struct {
	flows, covered float64
	ratios, halves []float64 // errors by half of the interval, and that by the mean
}

// narrowed is the part of their width at which 95 % would still be covered.
func (w *width) narrowed() float64 {
	slices.Sort(w.ratios)
	return w.ratios[int(0.95*float64(len(w.ratios)))]
}

// MeanInterval holds under laws that it was not made for, in every class of
// sizes; and is no wider than so many times what would do, nor than a part of the
// mean where flows of 100 packets and more have a cell each.
func TestMeanIntervalOfOtherLaws(t *testing.T) {
	skipShort(t)
	roomy, crowded, two, sampled := lossless, lossless, lossless, DefaultConfig
	roomy.Columns, crowded.Columns, sampled.Columns = 4000, 1000, 1000
	two.Rows, two.Rates, two.Columns = 2, [MaxRows]float64{1, 1}, 2000
	spread := lossless
	spread.Columns, spread.Spread = 5000, 5
	const enough = 30 // flows of a class
	names, configs := []string{"roomy", "crowded", "two rows", "default", "spread"}, []Config{roomy, crowded, two, sampled, spread}
	for law, l := range laws {
		for _, loss := range []float64{0, 0.01} {
			if loss > 0 && law != "lognormal packets" && law != "lognormal flows" {
				continue // losses do not depend on the law
			}
			var ups, downs []*Sketch
			for _, c := range configs {
				ups, downs = append(ups, mustNew(t, c)), append(downs, mustNew(t, c))
			}
			keys, packets, means := l.obey(31, ups, downs, 4000, loss)
			for at, name := range names {
				c, up, down := configs[at], ups[at], downs[at]
				var classes [4]width // up to 9, 99, 999 packets, and beyond
				for i, f := range keys {
					r, err := Estimate(up, down, f)
					if err != nil {
						continue
					}
					w := &classes[min(int(math.Log10(float64(packets[i]))), 3)]
					half, off := r.MeanInterval(0.95).High-r.Mean, math.Abs(r.Mean-means[i])
					w.flows++
					if off <= half+1e-9*means[i] {
						w.covered++
					}
					if half > 0 && !math.IsInf(half, 1) {
						w.ratios, w.halves = append(w.ratios, off/half), append(w.halves, half/means[i])
					}
				}
				for k := range classes {
					w := &classes[k]
					if w.flows < enough {
						continue
					}
					share := w.covered / w.flows
					if least := 0.95 - 4*math.Sqrt(0.05*0.95/w.flows); share < least {
						t.Errorf("%s, %s, loss %g, class %d: %.3f of %.0f covered", name, law, loss, k, share, w.flows)
					}
					if k < 2 || loss > 0 || c.Spread > 1 || len(w.ratios) < enough {
						continue
					}
					slices.Sort(w.halves)
					middle, rest := w.halves[len(w.halves)/2], w.narrowed()
					t.Logf("%s, %s, class %d: ± %.3g of the mean, %.2f of it would do", name, law, k, middle, rest)
					// Where few flows are slow, hardly a mean is off, and some are by much.
					if rest < 0.1 && law != "one flow in twenty is slow" {
						t.Errorf("%s, %s, class %d: a tenth of the interval would do", name, law, k)
					}
				}
			}
		}
	}
}
