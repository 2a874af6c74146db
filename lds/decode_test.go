package lds

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
)

// interval is traffic of the paper's kind, a twentieth of it: flow sizes are Pareto, and each flow's delays have two modes.
type interval struct {
	flows   []hashing.Flow
	packets []float64
	means   []float64
	mean    float64 // over all packets
}

func newInterval(seed uint64, up, down *Sketch) (v interval) {
	twoModes := law(func(r *rand.Rand) (int, func() float64) {
		fast, slow, share := 2e5*math.Exp(0.3*r.NormFloat64()), 8e5*math.Exp(0.3*r.NormFloat64()), 0.1
		if r.Float64() < 0.4 {
			share = 0.9
		}
		return int(min(math.Pow(1-r.Float64(), -1/0.8), 20000)), func() float64 {
			if r.Float64() < share {
				return slow + 3e4*r.ExpFloat64()
			}
			return fast + 3e4*r.ExpFloat64()
		}
	})
	var sizes []int
	v.flows, sizes, v.means = twoModes.obey(seed, []*Sketch{up}, []*Sketch{down}, 7300, 0)
	sum, packets := 0.0, 0.0
	for i, n := range sizes {
		v.packets = append(v.packets, float64(n))
		sum, packets = sum+v.means[i]*float64(n), packets+float64(n)
	}
	v.mean = sum / packets
	return v
}

// records are flows with their packets, or with none known where those are nil.
func records(flows []hashing.Flow, packets []float64) []joint.FlowRecord {
	all := make([]joint.FlowRecord, len(flows))
	for i, f := range flows {
		all[i].Flow = f
		if packets != nil {
			all[i].Packets = packets[i]
		}
	}
	return all
}

func mustDecode(t *testing.T, up, down *Sketch, flows []joint.FlowRecord) joint.Result {
	return must(Decode(t.Context(), up, down, flows, joint.Options{}))
}

// median is the median relative error of the means of flows of low to high packets.
func (v interval) median(means []float64, low, high float64) float64 {
	var errs []float64
	for i, n := range v.packets {
		if n >= low && n <= high {
			errs = append(errs, estimate.RelativeError(means[i], v.means[i]))
		}
	}
	return at(0.5, errs)
}

// coverage returns by how many deviations the share of flows whose means are in their intervals, widened by a
// factor, is below 95 %, or a number below 0 if it is above.
func (v interval) uncovered(r joint.Result, factor float64) float64 {
	missed := 0.0
	for i, mean := range v.means {
		r.StdDev[i] *= factor
		if !r.MeanInterval(i, 0.95).Contains(mean) {
			missed++
		}
		r.StdDev[i] /= factor
	}
	n := float64(len(v.means))
	return (missed - 0.05*n) / math.Sqrt(0.05*0.95*n)
}

func decodeShapes() map[string]Config {
	plain := lossless
	plain.Columns /= 20
	spread := plain
	spread.Columns, spread.Spread = 5*plain.Columns, 5
	banks := spread // the paper's for lossy links (section 5.2), of rows that sample at four rates
	banks.Rates = [MaxRows]float64{1, 0.5, 0.1, 0.01}
	return map[string]Config{"plain": plain, "spread": spread, "banks": banks}
}

func TestDecode(t *testing.T) {
	skipShort(t)
	for name, c := range decodeShapes() {
		t.Run(name, func(t *testing.T) {
			up, down := mustNew(t, c), mustNew(t, c)
			v := newInterval(71, up, down)
			paper := make([]float64, len(v.flows))
			constant := make([]float64, len(v.flows))
			for i, f := range v.flows {
				if constant[i] = v.mean; v.packets[i] >= 100 { // it is compared for these
					paper[i] = must(Estimate(up, down, f)).Mean
				}
			}
			known := mustDecode(t, up, down, records(v.flows, v.packets))
			decoded := mustDecode(t, up, down, records(v.flows, nil))

			// The bars are the project's own: a quarter of Fig. 6's error where each row sees all, a little
			// more where counts are decoded, and with sampling less than all of it.
			bars := map[string]float64{"known": 0.25, "decoded": 0.3}
			if name == "banks" {
				bars = map[string]float64{"known": 1, "decoded": 1}
			}
			fig6 := v.median(paper, 100, math.Inf(1))
			for kind, r := range map[string]joint.Result{"known": known, "decoded": decoded} {
				if got := v.median(r.Mean, 100, math.Inf(1)); got > bars[kind]*fig6 {
					t.Errorf("counts %s: median error of large flows %.4f, of Fig. 6 %.4f", kind, got, fig6)
				}
				if got, mean := v.median(r.Mean, 1, 9), v.median(constant, 1, 9); got > mean {
					t.Errorf("counts %s: small flows' error %.4f, of the mean of all %.4f", kind, got, mean)
				}
				// At 4 deviations a false alarm in 30,000.
				if z := v.uncovered(r, 1); z > 4 {
					t.Errorf("counts %s: intervals miss by %.1f deviations more than 5 %%", kind, z)
				}
				// Negative control: intervals of a quarter of the width.
				if z := v.uncovered(r, 0.25); z <= 4 {
					t.Errorf("counts %s: the check does not notice intervals a quarter as wide: %.1f", kind, z)
				}
			}
			// Negative control: the counts of other flows.
			wrong := slices.Clone(v.packets)
			slices.Reverse(wrong)
			confused := mustDecode(t, up, down, records(v.flows, wrong))
			if got := v.median(confused.Mean, 100, math.Inf(1)); got <= fig6 {
				t.Errorf("wrong counts pass: %.4f", got)
			}
		})
	}
}

// Counts that no record has are decoded, far better than by the least loaded cell; a flow of dozens is not
// taken for one of a few, and one that had none is given none. With two flows to a cell, the rows leave almost
// nothing open, although half of all flows share each of their cells.
func TestDecodePackets(t *testing.T) {
	skipShort(t)
	for name, c := range decodeShapes() {
		for _, times := range []int{1, 4} {
			if c.Columns *= times; times > 1 && name != "plain" {
				continue
			}
			up, down := mustNew(t, c), mustNew(t, c)
			v := newInterval(73, up, down)
			absent := hashing.Flow(hashing.Word(74, 1))
			for i := uint64(2); up.Packets(absent) > 0 && i < 10000; i++ {
				absent = hashing.Flow(hashing.Word(74, i))
			}
			r := mustDecode(t, up, down, records(append(slices.Clone(v.flows), absent), nil))
			var errs, bounds []float64
			dozens, shrunk, off, wrong := 0, 0, 0, 0
			for i, n := range v.packets {
				got, bound := r.Packets[i], float64(up.Packets(v.flows[i]))
				if n >= 100 {
					errs, bounds = append(errs, math.Abs(got/n-1)), append(bounds, math.Abs(bound/n-1))
				}
				if n >= 30 && n < 100 {
					dozens++
					if got < n/3 {
						shrunk++
					}
				}
				if math.Abs(got-n) >= 0.5 {
					wrong++
				}
				if bound-n >= 0.5 {
					off++
				}
			}
			if name == "plain" && times == 4 && wrong > len(v.flows)/1000 {
				t.Errorf("the packets of %d flows of %d are wrong", wrong, len(v.flows))
			}
			if a, b := at(0.5, errs), at(0.5, bounds); a > b {
				t.Errorf("%s: median error %.3f of large flows, of the count-min bound %.3f", name, a, b)
			}
			if shrunk > dozens/10 {
				t.Errorf("%s: of %d flows of dozens of packets %d are taken for less than a third", name, dozens, shrunk)
			}
			if up.Packets(absent) == 0 && r.Packets[len(v.flows)] != 0 {
				t.Errorf("%s: %v packets of an absent flow", name, r.Packets[len(v.flows)])
			}
			if off < len(v.flows)/20 { // the control: there is something to be decoded
				t.Errorf("%s: the count-min bound is off for %d of %d flows only", name, off, len(v.flows))
			}
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	c := shapes()["plain"]
	up, down := fill(t, c, packets(76, 300, 20))
	flows := []hashing.Flow{hashing.Flow(hashing.Word(1, 0)), hashing.Flow(hashing.Word(1, 1))}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for what, test := range map[string]struct {
		ctx      context.Context
		up, down *Sketch
		flows    []joint.FlowRecord
		want     error
	}{
		"fewer than no packets":   {t.Context(), up, down, records(flows, []float64{1, -1}), estimate.ErrConfig},
		"a flow listed twice":     {t.Context(), up, down, records(append(flows, flows[0]), nil), estimate.ErrConfig},
		"no flows":                {t.Context(), up, down, nil, estimate.ErrNoSamples},
		"no packets":              {t.Context(), mustNew(t, c), mustNew(t, c), records(flows, nil), estimate.ErrNoSamples},
		"cancelled":               {cancelled, up, down, records(flows, nil), context.Canceled},
		"cancelled, counts known": {cancelled, up, down, records(flows, []float64{1, 1}), context.Canceled},
	} {
		if _, err := Decode(test.ctx, test.up, test.down, test.flows, joint.Options{}); !errors.Is(err, test.want) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestKnownPacketsStay: of two flows in one cell, the one that is known leaves the rest to the other.
func TestKnownPacketsStay(t *testing.T) {
	c := shapes()["one column"]
	up := mustNew(t, c)
	flows := []hashing.Flow{hashing.Flow(hashing.Word(1, 0)), hashing.Flow(hashing.Word(1, 1))}
	for i := range uint64(100) {
		up.Update(flows[i&3/3], hashing.Word(2, i), 0)
	}
	list := records(flows, []float64{75, 0})
	r, err := Decode(t.Context(), up, up, list, joint.Options{})
	if err != nil || r.Packets[0] != 75 || math.Abs(r.Packets[1]-25) > 0.5 {
		t.Errorf("%v, %v; want 75 and 25 packets", r.Packets, err)
	}
	c.Rows, c.Columns, c.Rates = 1, 20, [MaxRows]float64{1} // nothing shows how far means are off
	up, down := fill(t, c, packets(76, 300, 20))
	r, err = Decode(t.Context(), up, down, list, joint.Options{})
	if read, fail := Estimate(up, down, flows[0]); err != nil || fail != nil || read.MeanInterval(0.95).Bounded() || r.StdDev != nil {
		t.Errorf("%+v, %v, %+v, %v", read, fail, r, err)
	}
}

// Where there are so few flows that cells do not tell how far packets are apart, a flow of which some cells lost
// packets has no interval, instead of one as if the others were all of it.
func TestFewFlowsAmongLosses(t *testing.T) {
	answers, bounded, outside := 0, 0, 0
	for seed := range uint64(40) {
		for flows := 1; flows < 4; flows++ {
			c, r := DefaultConfig, rand.New(rand.NewPCG(seed, 12))
			c.Columns, c.Spread = 100, 1+4*int(seed%2)
			up, down := mustNew(t, c), mustNew(t, c)
			sums, came, list := make([]float64, flows), make([]float64, flows), make([]joint.FlowRecord, flows)
			for i := range 2000 * flows {
				f, p, took := i%flows, hashing.Packet(r.Uint64()), int64(1e6*r.ExpFloat64())
				up.Update(nth(f), p, int64(i))
				list[f] = joint.FlowRecord{Flow: nth(f), Packets: 2000}
				if r.IntN(1000) > 0 {
					down.Update(nth(f), p, int64(i)+took)
					sums[f], came[f] = sums[f]+float64(took), came[f]+1
				}
			}
			result, err := Decode(t.Context(), up, down, list, joint.Options{})
			for f := range list {
				if err != nil || result.Usable[f] == 0 {
					continue
				}
				i := result.MeanInterval(f, 0.999)
				if answers++; i.Bounded() {
					bounded++
				}
				if mean := sums[f] / came[f]; mean < i.Low-1 || mean > i.High+1 {
					outside++
				}
			}
		}
	}
	if t.Logf("%d answers, %d bounded, %d outside", answers, bounded, outside); outside > answers/50 || bounded < 10 {
		t.Errorf("%d answers, %d bounded, %d outside 99.9 %%", answers, bounded, outside)
	}
}
