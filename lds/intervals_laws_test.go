package lds

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
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

// A width is what the intervals of a class of flows were: how many held, and of those that are bounded the errors
// and half-widths by the mean, and the former by the latter.
type width struct {
	flows, held          float64
	errs, halves, ratios []float64
}

func (w *width) add(r *Result, mean float64) {
	half, off := r.MeanInterval(0.95).High-r.Mean, math.Abs(r.Mean-mean)
	w.flows++
	if off <= half+1e-9*mean {
		w.held++
	}
	if half > 0 && !math.IsInf(half, 1) {
		w.errs, w.halves, w.ratios = append(w.errs, off/mean), append(w.halves, half/mean), append(w.ratios, off/half)
	}
}

// at returns the value of which a share is below.
func at(share float64, x []float64) float64 {
	x = slices.Sorted(slices.Values(x))
	return x[int(share*float64(len(x)))]
}

// MeanInterval holds under laws that it was not made for, in every class of sizes, also where large flows are slow; is
// no wider than ten times what would do; and no wider than a few errors where rows tell how much is the flow's own.
func TestMeanIntervalOfOtherLaws(t *testing.T) {
	skipShort(t)
	roomy, crowded, two, sampled, spread := lossless, lossless, lossless, DefaultConfig, lossless
	roomy.Columns, crowded.Columns, sampled.Columns = 2000, 500, 500
	two.Rows, two.Rates, two.Columns = 2, [MaxRows]float64{1, 1}, 1000
	spread.Columns, spread.Spread = 2500, 5
	const enough = 30 // flows of a class
	configs := map[string]Config{"roomy": roomy, "crowded": crowded, "two rows": two, "default": sampled, "spread": spread}
	for law, l := range laws {
		for _, loss := range []float64{0, 0.01} {
			if loss > 0 && law != "lognormal flows" {
				continue // losses do not depend on the law
			}
			var ups, downs []*Sketch
			var names []string
			for name, c := range configs {
				if c.Spread > 1 && law != "lognormal packets" {
					continue // hardly narrower than all that is known
				}
				ups, downs, names = append(ups, mustNew(t, c)), append(downs, mustNew(t, c)), append(names, name)
			}
			keys, packets, means := l.obey(31, ups, downs, 2000, loss)
			for at, name := range names {
				var classes [4]width // up to 9, 99, 999 packets, and beyond
				for i, f := range keys {
					class := min(int(math.Log10(float64(packets[i]))), 3)
					if class == 0 && i%4 > 0 { // they are most
						continue
					}
					if r, err := Estimate(ups[at], downs[at], f); err == nil {
						classes[class].add(&r, means[i])
					}
				}
				for k := range classes {
					if w := &classes[k]; w.flows >= enough {
						w.judge(t, fmt.Sprintf("%s, %s, loss %g, class %d", name, law, loss, k), k >= 2 && loss == 0 && len(w.errs) >= enough)
					}
				}
			}
		}
	}
}

func (w *width) judge(t *testing.T, name string, large bool) {
	if least := 0.95 - 4*math.Sqrt(0.05*0.95/w.flows); w.held/w.flows < least {
		t.Errorf("%s: %.3f of %.0f hold", name, w.held/w.flows, w.flows)
	}
	if !large {
		return
	}
	wide, rest := at(0.5, w.halves)/at(0.5, w.errs), at(0.95, w.ratios)
	t.Logf("%s: half-width %.3g times the error, %.2f of it would do", name, wide, rest)
	// Where few flows are slow, hardly a mean is off, and some are by much.
	if rest < 0.1 && !strings.Contains(name, "spread") && !strings.Contains(name, "one flow in twenty is slow") {
		t.Errorf("%s: a tenth of the interval would do", name)
	}
	most := map[string]float64{"crowded": 5.5, "default": 10}[strings.TrimSuffix(name, ", lognormal packets, loss 0, class 2")]
	if most > 0 && wide > most || strings.Contains(name, "large flows are slow") && rest > 1.2 {
		t.Errorf("%s: half-width %.3g times the error, %.2f of it would do", name, wide, rest)
	}
}
