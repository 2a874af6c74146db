package lds

import (
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/truth"
)

// TestAccumulatorIsTheTruth holds reports after 2, 5, 16 and 40 intervals to a list of all packets: of flows
// of 100 an interval, so that cells are mostly empty or never. Intervals hold the mean delay of the packets received. Those a tenth as
// wide, the control, miss a third of all: only packets that are received in a report count, so those that are not do not widen it.
func TestAccumulatorIsTheTruth(t *testing.T) {
	narrow := 0
	for name, way := range ways() {
		for _, loss := range []float64{0, 0.01, 0.05} {
			if name == "a queue that drops its tail" && loss > 0 {
				continue
			}
			answers, in, tenths := againstTruth(t, way, loss)
			t.Logf("%s, loss %g: %d of %d in their intervals, %d in a tenth", name, loss, in, answers, tenths)
			if answers < 50 || estimate.ProportionInterval(in, answers, 0.999).High < 0.95 {
				t.Errorf("%s, loss %g: %d of %d in their intervals", name, loss, in, answers)
			}
			narrow += int(answers - tenths)
		}
	}
	if narrow < 1200 {
		t.Errorf("intervals a tenth as wide miss %d times", narrow)
	}
}

// A way says how many intervals a packet takes, by how long after the one before it is sent, in parts of the
// usual time, and when the next one is sent.
type way func(r *rand.Rand, step float64) (took, next float64, lost bool)

func ways() map[string]way {
	exponential := func(mean float64) way {
		return func(r *rand.Rand, _ float64) (float64, float64, bool) {
			return mean * r.ExpFloat64(), r.ExpFloat64(), false
		}
	}
	queue, busy := 0.0, 1.0
	return map[string]way{
		"a thirtieth of an interval": exponential(0.03), "a third": exponential(0.3), "one": exponential(1),
		"three": exponential(3),
		"one in 500 thirty intervals": func(r *rand.Rand, _ float64) (float64, float64, bool) {
			if r.IntN(500) == 0 {
				return 30, r.ExpFloat64(), false
			}
			return 0.05 * r.ExpFloat64(), r.ExpFloat64(), false
		},
		// It holds 300 packets, a tenth of an interval.
		"a queue that drops its tail": func(r *rand.Rand, step float64) (float64, float64, bool) {
			if r.IntN(1000) == 0 {
				busy = 0.6 + 0.8*r.Float64()
			}
			queue = max(0, queue-step)
			lost := queue > 300
			if !lost {
				queue++
			}
			return (queue + 1) / 3000, r.ExpFloat64() / busy, lost
		},
	}
}

// againstTruth counts the answers of 30 flows, read and decoded, those in their intervals and in a tenth of them.
func againstTruth(t *testing.T, way way, loss float64) (answers, in, tenths uint64) {
	const flows, packets, intervals, length, start = 30, 100, 40, int64(1e9), int64(1e15)
	c := DefaultConfig
	c.Columns = 600
	x := newTimeline(t, c, intervals, length)
	x.start = start
	random := rand.New(rand.NewPCG(3, 14))
	var all []truth.Packet
	step, now := 0.0, 0.0
	for now < flows*packets*intervals {
		took, next, lost := way(random, step)
		sent, f := int64(now*float64(length)/(flows*packets)), hashing.Flow(hashing.Word(50, uint64(random.IntN(flows))))
		p := truth.Packet{Sent: start + sent, Lost: lost || random.Float64() < loss, Flow: uint64(f)}
		p.Received = p.Sent + int64(took*float64(length))
		x.pass(f, hashing.Word(7, uint64(len(all))), p.Sent, p.Received, p.Lost)
		all = append(all, p)
		step = next
		now += step
	}
	count := func(mean, want float64, within estimate.Interval) {
		if !within.Bounded() {
			return
		}
		answers++
		if within.Low-1 <= want && want <= within.High+1 {
			in++
			if far := mean + 10*(want-mean); within.Low-10 <= far && far <= within.High+10 {
				tenths++
			}
		}
	}
	a := mustAccumulate(t, c)
	for i := range intervals {
		end := start + int64(i+1)*length
		x.add(t, a, i)
		if i != 1 && i != 4 && i != 15 && i != 39 {
			continue
		}
		known := truth.Between(all, start, end, truth.ByFlow)
		var records []joint.FlowRecord
		for f, want := range known {
			records = append(records, joint.FlowRecord{Flow: hashing.Flow(f), Packets: float64(want.Sent)})
		}
		decoded := must(a.Decode(t.Context(), records, joint.Options{}))
		for k, f := range records {
			want := known[uint64(f.Flow)]
			count(decoded.Mean[k], want.MeanDelay(), decoded.MeanInterval(k, 0.95))
			r, err := a.Estimate(f.Flow)
			// By three deviations of what rows sample.
			if 1.1*float64(r.Sent+3) < float64(want.Sent) || 1.1*float64(r.Received+3) < float64(want.Received) || int(r.Lost)+3 < want.Lost {
				t.Fatalf("%+v, want at least %+v", r, want)
			}
			if err == nil {
				count(r.Mean, want.MeanDelay(), r.MeanInterval(0.95))
			}
		}
	}
	return answers, in, tenths
}

// Reports of ten intervals hold the mean delays of the packets that were received in them, however much of their time passed before, and
// however much passed of the time of others that come later; and they are not much wider than delays are long. Without this, the control,
// constant delays would be missed. Reports that receive fewer packets than were on their way at their ends are refused.
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

// The ends of a report owe more where a flow takes seconds in the last 0.3 s of each second, while the others,
// which are all fast, are silent.
func TestEndsOweMoreThanOthersTake(t *testing.T) {
	const intervals, length = 40, int64(3e8)
	random, c, f := rand.New(rand.NewPCG(3, 7)), lossless, nth(0)
	c.Columns = 500
	x, a := newTimeline(t, c, intervals, length), mustAccumulate(t, c)
	var all []truth.Packet
	for now := int64(0); now < intervals*length; now += int64(random.ExpFloat64() * 5e5) {
		p := truth.Packet{Flow: uint64(nth(random.IntN(300))), Sent: now, Received: now + int64(random.ExpFloat64()*5e7)}
		if now%1e9 > 7e8 {
			p.Flow, p.Received = uint64(f), now+50*(p.Received-now)
		}
		if now%1e9 < 7e8 || random.IntN(10) == 0 {
			x.pass(hashing.Flow(p.Flow), hashing.Packet(random.Uint64()), now, p.Received, false)
			all = append(all, p)
		}
	}
	x.addAll(t, a)
	of := truth.Between(all, 0, intervals*length, truth.ByFlow)[uint64(f)]
	want := of.MeanDelay()
	r, err := a.Estimate(f)
	d, failed := a.Decode(t.Context(), []joint.FlowRecord{{Flow: f, Packets: float64(of.Sent)}}, joint.Options{})
	if err != nil || failed != nil || !r.MeanInterval(0.95).Contains(want) || !d.MeanInterval(0, 0.95).Contains(want) {
		t.Errorf("%+v, %v, %+v, %v: want %.3f ms", r, err, d, failed, want/1e6)
	}
	if r.less, r.more = a.slowest*float64(r.Lost)/float64(r.Received), r.more/2; r.MeanInterval(0.95).Contains(want) {
		t.Error("nothing owed is more than the slowest that is known takes")
	}
}

// An owing counts answers, and those whose intervals hold.
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
	decoded := must(a.Decode(t.Context(), records, joint.Options{}))
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
