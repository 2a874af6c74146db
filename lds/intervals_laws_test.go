package lds

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
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

// obey fills sketches with flows by a law, and returns their packets and the mean delays of those received.
func (l law) obey(seed uint64, up, down []*Sketch, flows int, loss float64) (keys []hashing.Flow, packets []int, means []float64) {
	r := rand.New(rand.NewPCG(seed, 77))
	for i := range flows {
		n, delay := l(r)
		f := hashing.Flow(hashing.Word(seed, uint64(i)))
		var sum, arrived float64
		for range n {
			p, d := hashing.Packet(r.Uint64()), math.Trunc(delay())
			arrives, at := r.Float64() >= loss, int64(p>>34) // within a second
			for i := range up {
				up[i].Update(f, p, at)
				if arrives {
					down[i].Update(f, p, at+int64(d))
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

// A width says how many intervals of a class of flows held and, if they are bounded, errors and half-widths
// relative to the mean, and errors relative to half-widths.
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

// at returns the value below which a share of all lies.
func at(share float64, x []float64) float64 {
	x = slices.Sorted(slices.Values(x))
	return x[int(share*float64(len(x)))]
}

// MeanInterval holds under laws that it was not made for, in every class of sizes, also where large flows are slow; is no wider
// than ten times what would do; and no wider than a few errors where rows tell how much is the flow's own.
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
					continue // little is known beyond the total
				}
				ups, downs, names = append(ups, mustNew(t, c)), append(downs, mustNew(t, c)), append(names, name)
			}
			keys, packets, means := l.obey(31, ups, downs, 2000, loss)
			for at, name := range names {
				var classes [4]width // up to 9, 99, 999 packets, and beyond
				for i, f := range keys {
					class := min(int(math.Log10(float64(packets[i]))), 3)
					if i%[]int{16, 4, 1, 1}[class] > 0 { // few of the small ones, which are most
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
	// Where few flows are slow, hardly any mean is off, but some are off by much.
	if rest < 0.1 && !strings.Contains(name, "spread") && !strings.Contains(name, "one flow in twenty is slow") {
		t.Errorf("%s: a tenth of the interval would do", name)
	}
	most := map[string]float64{"crowded": 5.5, "default": 10}[strings.TrimSuffix(name, ", lognormal packets, loss 0, class 2")]
	if most > 0 && wide > most || strings.Contains(name, "large flows are slow") && rest > 1.2 {
		t.Errorf("%s: half-width %.3g times the error, %.2f of it would do", name, wide, rest)
	}
}

// What Estimate says of itself allows no narrower intervals for flows of 100 to 999 packets where two rows sample: were 95 % to
// hold of the flows of each size in each fifth of these answers, by how sure they say to be, the median would be wider.
func TestNoOtherWidthsAreNarrower(t *testing.T) {
	c := DefaultConfig
	c.Columns = 1200
	up, down := mustNew(t, c), mustNew(t, c)
	keys, packets, means := laws["lognormal packets"].obey(5, []*Sketch{up}, []*Sketch{down}, 10_000, 0)
	var classes [6][][3]float64 // half-width by the mean that was told, and by the true one; the error by the half-width
	for i, f := range keys {
		if packets[i] < 10 {
			continue
		}
		if r, err := Estimate(up, down, f); err == nil && r.MeanError > 1 {
			half, class := r.MeanInterval(0.95).High-r.Mean, int(math.Log10(float64(packets[i])))
			classes[class] = append(classes[class], [3]float64{half / math.Abs(r.Mean), half / means[i], math.Abs(r.Mean-means[i]) / half})
		}
	}
	flows := classes[2]
	slices.SortFunc(flows, func(a, b [3]float64) int { return cmp.Compare(a[0], b[0]) })
	var now, other, errs []float64
	for n, factor := len(flows)/5, 0.0; len(flows) >= n; flows, factor = flows[n:], 0 {
		for _, class := range classes {
			var ratios []float64
			for _, x := range class {
				if flows[0][0] <= x[0] && x[0] <= flows[n-1][0] {
					ratios = append(ratios, x[2])
				}
			}
			if len(ratios) >= 20 {
				factor = max(factor, at(0.95, ratios))
			}
		}
		for _, x := range flows[:n] {
			now, other, errs = append(now, x[1]), append(other, factor*x[1]), append(errs, x[1]*x[2])
		}
	}
	is, may := at(0.5, now)/at(0.5, errs), at(0.5, other)/at(0.5, errs)
	if t.Logf("half-width %.3g times the error, %.3g to hold for flows of each size", is, may); is > 1.1*may {
		t.Errorf("half-widths are %.3g times the error, and might be %.3g", is, may)
	}
}

// TestZeroWidthIsExact: where cells are half empty, an interval without a width means that the flow is alone in its cells, and nearly all
// of few flows have one. A single row proves nothing. The control: some answers with a width are wrong, near empty cells too.
func TestZeroWidthIsExact(t *testing.T) {
	one := lossless
	one.Rows, one.Rates = 1, [MaxRows]float64{1}
	for _, test := range []struct {
		c     Config
		exact float64 // of 20 flows, at least
	}{{lossless, 0.99}, {DefaultConfig, 0.9}, {one, 0}} {
		test.c.Columns = 600
		off := 0
		for _, flows := range []int{20, 60, 300} {
			exact, all := 0.0, 0.0
			for seed := range uint64(1200 / flows) {
				up, down := mustNew(t, test.c), mustNew(t, test.c)
				keys, _, means := laws["lognormal sizes"].obey(seed, []*Sketch{up}, []*Sketch{down}, flows, 0)
				for k, want := range means {
					r, err := Estimate(up, down, keys[k])
					i, wrong := r.MeanInterval(0.95), math.Abs(r.Mean-want) > 1e-9*want
					switch narrow := i.High-i.Low < 1e-6*want; {
					case err != nil || narrow && wrong:
						t.Errorf("%d rows, %d flows: %v, %v, want %v", test.c.Rows, flows, i, err, want)
					case narrow:
						exact++
					case wrong:
						off++
					}
					all++
				}
			}
			if t.Logf("%d rows, %d flows: %.3f exact", test.c.Rows, flows, exact/all); flows == 20 && exact < test.exact*all {
				t.Errorf("%d rows: %.3f exact, want %v", test.c.Rows, exact/all, test.exact)
			}
		}
		if off == 0 {
			t.Errorf("%d rows: no answer was wrong", test.c.Rows)
		}
	}
}

// In one row the forty cells on either side are all that is known of others: one flow in 81 is beyond them. Its
// interval of 99.9 % knows, and Student's from MeanError does not. With eight flows a cell the small ones are
// farther from their cells than any neighbour is, and intervals half as wide would miss too many.
func TestIntervalsWhereOthersAreUnknown(t *testing.T) {
	one, crowded := lossless, lossless
	one.Rows, one.Rates, one.Columns, crowded.Columns = 1, [MaxRows]float64{1}, 2000, 500
	ups, downs := []*Sketch{mustNew(t, one), mustNew(t, crowded)}, []*Sketch{mustNew(t, one), mustNew(t, crowded)}
	keys, packets, means := law(func(r *rand.Rand) (int, func() float64) {
		return paretoPackets(r) / 2, func() float64 { return 1e5 * r.ExpFloat64() }
	}).obey(32, ups, downs, 4000, 0)
	var far, student, small, half, n float64
	for i, f := range keys {
		r := must(Estimate(ups[0], downs[0], f))
		far += missed(r.MeanInterval(farConfidence), 1, means[i])
		r.far = 0
		student += missed(r.MeanInterval(farConfidence), 1, means[i])
		if r, err := Estimate(ups[1], downs[1], f); err == nil && packets[i] < 10 {
			n++
			small += missed(r.MeanInterval(intervalOf), 1, means[i])
			half += missed(r.MeanInterval(intervalOf), 0.5, means[i])
		}
	}
	all := float64(len(keys))
	if most := all/81/2 + 4*math.Sqrt(all/81/2); far > most || student < most {
		t.Errorf("%v of %v miss at 99.9 %%, and %v by Student's", far, all, student)
	}
	if most := (1-intervalOf)*n + 4*math.Sqrt((1-intervalOf)*n); small > most || half < most {
		t.Errorf("%v of %v miss at 95 %%, and %v if half as wide", small, n, half)
	}
}

// missed is 1 if a part of the interval, about its middle, does not hold the mean, beyond rounding.
func missed(i estimate.Interval, part, mean float64) float64 {
	if middle := (i.Low + i.High) / 2; math.Abs(mean-middle) > part*(i.High-middle)+1e-9*mean {
		return 1
	}
	return 0
}

// The interval travels, and is forgotten by Reset; merged sketches are of the earlier one.
func TestIntervalTravels(t *testing.T) {
	const number, began = 41, 1_700_000_000_000_000_000
	s, later, none := mustNew(t, lossless), mustNew(t, lossless), mustNew(t, lossless)
	s.SetInterval(number, began)
	later.SetInterval(number+1, began+1)
	var decoded Sketch
	if err := errors.Join(decoded.UnmarshalBinary(encode(t, s)), later.Merge(s), later.Merge(none), none.Merge(s)); err != nil {
		t.Fatal(err)
	}
	for what, s := range map[string]*Sketch{"set": s, "decoded": &decoded, "merged": later, "merged into none": none} {
		if n, at := s.Interval(); n != number || at != began {
			t.Errorf("%s: interval %d at %d", what, n, at)
		}
		s.Reset()
		if n, at := s.Interval(); n != 0 || at != 0 {
			t.Errorf("%s, reset: interval %d at %d", what, n, at)
		}
	}
}

// Sketches that say that they are of different intervals are not compared, and those that say nothing are.
// Those of another identity are not, such as those that someone forges with a key that has since been changed.
func TestIntervalsAreNotMixed(t *testing.T) {
	stream := alone(10, func(i int) int64 { return int64(i) })
	for _, test := range []struct {
		up, down, identity uint64
		mixed              bool
	}{{0, 0, 0, false}, {3, 0, 0, false}, {0, 3, 0, false}, {3, 3, 0, false}, {3, 4, 0, true}, {3, 3, 1, true}} {
		up, _ := fill(t, lossless, stream)
		other := lossless
		other.Identity = test.identity
		_, down := fill(t, other, stream)
		up.SetInterval(test.up, 0)
		down.SetInterval(test.down, 1) // clocks differ
		_, estimated := Estimate(up, down, stream[0].flow)
		_, decoded := Decode(t.Context(), up, down, records([]hashing.Flow{stream[0].flow}, nil), joint.Options{})
		for what, err := range map[string]error{
			"Estimate": estimated, "Decode": decoded, "Add": mustAccumulate(t, lossless).Add(0, 1, up, down),
		} {
			if errors.Is(err, estimate.ErrMismatch) != test.mixed || !test.mixed && err != nil {
				t.Errorf("%s of intervals %d and %d: %v", what, test.up, test.down, err)
			}
		}
	}
}
