package lds

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/truth"
)

// Reports of ten intervals hold the mean delays of the packets that were received in
// them, however much of their time passed before, and however much passed of the time of
// others that come later; and they are not much wider than delays are long. Were this left
// out, the control, constant delays would be missed. Reports that receive fewer packets than
// were on their way at their ends are refused.
func TestIntervalHoldsWhatEndsOwe(t *testing.T) {
	skipShort(t)
	missed := 0.0
	for _, test := range []struct{ fixed, random, loss float64 }{
		{20e6, 0, 0}, {50e6, 0, 0}, {300e6, 0, 0}, {950e6, 0, 0}, {1500e6, 0, 0}, {0, 20e6, 0}, {0, 20e6, 0.01},
	} {
		o := owing{in: map[string]float64{}}
		for seed := range uint64(3) {
			o.run(t, rand.New(rand.NewPCG(seed, 5)), test.fixed, test.random, test.loss)
		}
		if test.fixed+test.random > 0.5e9 {
			if o.answers > 0 {
				t.Errorf("%+v: %v answers", test, o.answers)
			}
			continue
		}
		slices.Sort(o.wide)
		slices.Sort(o.narrow)
		t.Logf("%+v: %v of %v in intervals; half as wide as %.3g ms by the median, and %.3g without what ends owe",
			test, o.in, o.answers, o.wide[len(o.wide)/2]/2e6, o.narrow[len(o.narrow)/2]/2e6)
		for _, name := range []string{"Estimate", "Decode"} {
			if o.in[name] < 0.94*o.answers {
				t.Errorf("%+v: %s: %v of %v in their intervals", test, name, o.in[name], o.answers)
			}
		}
		if wide := o.wide[len(o.wide)/2] / 2; wide > 2*(test.fixed+test.random) {
			t.Errorf("%+v: half as wide as %.3g ms", test, wide/1e6)
		}
		if o.in["neither"] < 0.94*o.answers {
			missed++
		}
	}
	if missed < 3 {
		t.Errorf("without what ends owe, intervals miss in %v cases", missed)
	}
}

// An owing counts the answers that are in their intervals.
type owing struct {
	answers      float64
	in           map[string]float64
	wide, narrow []float64
}

// run passes 50 flows of 40 packets a second for eight seconds.
func (o *owing) run(t *testing.T, random *rand.Rand, fixed, mean, loss float64) {
	const flows, intervals, length = 50, 80, int64(1e8)
	c := DefaultConfig
	c.Columns = 3500
	x := newTimeline(t, c, intervals, length)
	var all []truth.Packet
	for now := int64(0); now < intervals*length; now += int64(random.ExpFloat64() * 5e5) {
		f, id := hashing.Flow(hashing.Word(9, random.Uint64N(flows))), hashing.Packet(random.Uint64())
		p := truth.Packet{Flow: uint64(f), Sent: now, Received: now + int64(fixed+mean*random.ExpFloat64()), Lost: random.Float64() < loss}
		x.pass(f, id, now, p.Received, p.Lost)
		all = append(all, p)
	}
	a := mustAccumulate(t, c)
	for k := range int64(intervals) {
		x.add(t, a, int(k))
		if k%10 != 9 {
			continue
		}
		if k > 29 {
			o.report(t, a, all, (k-9)*length, (k+1)*length)
		}
		a.Reset()
	}
}

func (o *owing) report(t *testing.T, a *Accumulator, all []truth.Packet, from, to int64) {
	known := truth.Between(all, from, to, truth.ByFlow)
	var records []joint.FlowRecord
	for f, of := range known {
		if of.Sent > 0 {
			records = append(records, joint.FlowRecord{Flow: hashing.Flow(f), Packets: float64(of.Sent)})
		}
	}
	decoded, err := a.Decode(t.Context(), records, joint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range records {
		want := known[uint64(x.Flow)].MeanDelay()
		r, err := a.Estimate(x.Flow)
		if err != nil && r.Sent > 0 && decoded.Usable[i] > 0 {
			t.Errorf("flow %#x: %v, but decoded", x.Flow, err)
		}
		if err != nil || decoded.Usable[i] == 0 {
			continue
		}
		o.answers++
		within := r.MeanInterval(0.95)
		o.wide = append(o.wide, within.High-within.Low)
		if within.Low-1 <= want && want <= within.High+1 {
			o.in["Estimate"]++
		}
		if w := decoded.MeanInterval(i, 0.95); w.Low-1 <= want && want <= w.High+1 {
			o.in["Decode"]++
		}
		r.less, r.more = 0, 0
		within = r.MeanInterval(0.95)
		o.narrow = append(o.narrow, within.High-within.Low)
		if within.Low-1 <= want && want <= within.High+1 {
			o.in["neither"]++
		}
	}
}
