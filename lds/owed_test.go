package lds

import (
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/estimate"
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
	missed := 0
	for _, test := range []struct{ fixed, random, loss float64 }{
		{20e6, 0, 0}, {50e6, 0, 0}, {300e6, 0, 0}, {950e6, 0, 0}, {1500e6, 0, 0}, {0, 20e6, 0}, {0, 20e6, 0.01},
	} {
		o := owe(t, test.fixed, test.random, test.loss)
		if test.fixed+test.random > 0.5e9 {
			if o.answers > 0 {
				t.Errorf("%+v: %v answers", test, o.answers)
			}
			continue
		}
		wide := at(0.5, o.wide) / 2
		if most := 0.94 * o.answers; o.read < most || o.decoded < most || wide > 2*(test.fixed+test.random) {
			t.Errorf("%+v: of %v in intervals %v, %v decoded, half as wide as %.3g ms", test, o.answers, o.read, o.decoded, wide/1e6)
		} else if o.without < most {
			missed++
		}
	}
	if missed < 3 {
		t.Errorf("without what ends owe, intervals miss in %v cases", missed)
	}
}

// An owing counts the answers, and those that are in their intervals.
type owing struct {
	answers, read, decoded, without float64
	wide                            []float64
}

// owe passes 50 flows of 40 packets a second for eight seconds, and reports the last five.
func owe(t *testing.T, fixed, mean, loss float64) (o owing) {
	const flows, intervals, length = 50, 80, int64(1e8)
	c, random := DefaultConfig, rand.New(rand.NewPCG(1, 5))
	c.Columns = 3500
	x, a := newTimeline(t, c, intervals, length), mustAccumulate(t, c)
	var all []truth.Packet
	for now := int64(0); now < intervals*length; now += int64(random.ExpFloat64() * 5e5) {
		f, id := nth(random.IntN(flows)), hashing.Packet(random.Uint64())
		p := truth.Packet{Flow: uint64(f), Sent: now, Received: now + int64(fixed+mean*random.ExpFloat64()), Lost: random.Float64() < loss}
		x.pass(f, id, now, p.Received, p.Lost)
		all = append(all, p)
	}
	for k := range int64(intervals) {
		x.add(t, a, int(k))
		if k%10 != 9 {
			continue
		}
		if k > 29 {
			o.report(t, a, truth.Between(all, (k-9)*length, (k+1)*length, truth.ByFlow))
		}
		a.Reset()
	}
	return o
}

func (o *owing) report(t *testing.T, a *Accumulator, known map[uint64]truth.Window) {
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
		r, err := a.Estimate(x.Flow)
		if err != nil && r.Sent > 0 && decoded.Usable[i] > 0 {
			t.Errorf("flow %#x: %v, but decoded", x.Flow, err)
		}
		if err != nil || decoded.Usable[i] == 0 {
			continue
		}
		o.answers++
		count := func(in estimate.Interval, n *float64) {
			if want := known[uint64(x.Flow)].MeanDelay(); in.Low-1 <= want && want <= in.High+1 {
				*n++
			}
		}
		within := r.MeanInterval(0.95)
		o.wide = append(o.wide, within.High-within.Low)
		count(within, &o.read)
		count(decoded.MeanInterval(i, 0.95), &o.decoded)
		r.less, r.more = 0, 0
		count(r.MeanInterval(0.95), &o.without)
	}
}
