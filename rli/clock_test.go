package rli_test

import (
	"math"
	"testing"

	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/rli"
)

// TestOffset: an offset between the clocks is added to every mean, exactly, and changes nothing else.
func TestOffset(t *testing.T) {
	events := pass(t, queue.RLIConfig, adaptive(), 10000, source(t, "flows", 0.7, 2), nil)
	for _, m := range []rli.Method{rli.Auto, rli.Linear, rli.Left} {
		plain := receive(t, config(m), events)
		for _, offset := range []int64{-5, 1 << 20, -1 << 40} {
			moved := make([]event, len(events))
			copy(moved, events)
			for i := range moved {
				moved[i].ref.Sent -= offset
			}
			r := receive(t, config(m), moved)
			if r.Counts() != plain.Counts() {
				t.Fatalf("%v: %+v, want %+v", m, r.Counts(), plain.Counts())
			}
			for f, want := range plain.All() {
				got, err := r.Estimate(f)
				in, wanted := got.MeanInterval(0.9), want.MeanInterval(0.9)
				same := in.Bounded() == wanted.Bounded() && !(math.Abs((in.High-in.Low)-(wanted.High-wanted.Low)) >= 1e-2)
				want.Mean += float64(offset)
				// The means are sums of an integer and a fraction: their error is that of one addition of
				// numbers of the offset's size.
				exact := math.Abs(got.Mean-want.Mean) <= math.Abs(want.Mean)*0x1p-51
				got.Mean = want.Mean
				if err != nil || !exact || got.Delay != want.Delay || !same {
					t.Fatalf("%v, offset %d: %+v, want %+v", m, offset, got, want)
				}
			}
		}
	}
}

// TestClockStepped: a clock that is stepped by years spoils the interval in which that happens, and no later
// one.
func TestClockStepped(t *testing.T) {
	for _, m := range []rli.Method{rli.Auto, rli.Linear, rli.Left} {
		for _, step := range []int64{0, 1 << 52, -1 << 52} { // of which two thousand do not fit
			r := small(t, func(c *rli.Config) {
				c.Method, c.Rate = m, 1e9
				if m == rli.Left {
					c.Buffer = 0
				}
			})
			at, sequence, offset := int64(0), uint64(0), int64(0)
			interval := func() {
				r.Reset()
				for range 5000 {
					at += 1e6
					r.Update(1, r.Config().ReferenceBytes, at)
					at += 1e6
					r.Reference(rli.ReferencePacket{Sequence: sequence, Sent: at - 777 - offset}, at)
					sequence++
				}
				r.Flush()
			}
			interval()
			offset = step
			interval()
			interval()
			total, err := r.Total()
			flow, errFlow := r.Estimate(1)
			if err != nil || errFlow != nil || total.Delay != flow.Delay || flow.N < 4999 || flow.Mean != float64(777+offset) || flow.StdDev != 0 {
				t.Errorf("%v, step %d: %+v, %v; %+v, %v", m, step, flow, errFlow, total, err)
			}
		}
	}
}

// TestDriftIsNoStep: on a slow link it takes so long to find the base delay again that two quartz clocks have
// drifted apart. That is not taken for a step.
func TestDriftIsNoStep(t *testing.T) {
	for seed := range uint64(3) {
		for _, drift := range []float64{5e-6, 5e-5} {
			events := pass(t, queue.LinkConfig{Rate: linkRate / 100}, rli.InjectorConfig{Every: 50}, 100_000,
				source(t, "flows", 0.007, seed), nil)
			drifting(drift, 0)(events)
			c := config(rli.Auto)
			c.Rate /= 100
			r := receive(t, c, events)
			if _, err := r.Total(); err != nil || r.Counts().Steps > 0 {
				t.Errorf("a drift of %v, seed %d: %v, %+v", drift, seed, err, r.Counts())
			}
		}
	}
}

// TestDriftOfExactDelays: where clocks drift, delays that departures tell are off by as much as references show, which is more
// than stamps are. The negative control has a quarter of the width.
func TestDriftOfExactDelays(t *testing.T) {
	events := pass(t, queue.RLIConfig, rli.InjectorConfig{Every: 10}, 40_000, source(t, "poisson", 0.1, 1), nil)
	drifting(1e-5, 0)(events)
	if n := misses(t, config(rli.Auto), events, 1.0/4); n[0] > 250+3*16 || n[1] < 250+3*16 {
		t.Errorf("of 5000 flows %d are outside, and %d if a quarter as wide", n[0], n[1])
	}
}
