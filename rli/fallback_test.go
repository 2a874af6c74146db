package rli_test

import (
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/rli"
)

// TestFallback breaks what the busy-aware method assumes in every way that its
// documentation names. It must notice, count it, and be no worse than RLI by
// more than a tenth.
func TestFallback(t *testing.T) {
	poisson := func(n int) []event {
		events := pass(t, queue.RLIConfig, adaptive(), n, source(t, "poisson", 0.7, 5), nil)
		return events
	}
	const n = 12000
	for _, test := range []struct {
		name   string
		rate   int64
		events func() []event
	}{
		{"rate 1 % too high", linkRate * 1.01, func() []event { return poisson(n) }},
		{"rate twice too high", linkRate * 2, func() []event { return poisson(n) }},
		{"rate 1 % too low", linkRate * 0.99, func() []event { return poisson(n) }},
		{"rate a half too low", linkRate / 2, func() []event { return poisson(n) }},
		{"departures not told of", linkRate, func() []event {
			events := pass(t, queue.RLIConfig, adaptive(), n, source(t, "poisson", 0.4, 6), source(t, "poisson", 0.4, 7))
			seen := events[:0]
			for _, e := range events {
				if e.kind != cross {
					seen = append(seen, e)
				}
			}
			return seen
		}},
		{"a shaper that pauses", linkRate, func() []event {
			// 8 µs of every 20 µs nothing is sent: times stretch.
			events := poisson(n)
			for i := range events {
				e := &events[i]
				busy := e.time - int64(e.bytes)*8/10
				pauses := busy / 12000 * 8000
				e.time += pauses
				if e.kind == reference {
					e.ref.Sent += busy / 12000 * 8000 * 9 / 10
				}
				e.delay += pauses - busy/12000*8000*9/10
			}
			return events
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			events := test.events()
			c := config(rli.BusyAware)
			c.Rate = test.rate
			r := receive(t, c, events)
			c.Method = rli.Linear
			linear := medianError(t, receive(t, c, events), events)
			busy := medianError(t, r, events)
			counts := r.Counts()
			t.Logf("median error %.4f, of RLI %.4f; %+v", busy, linear, counts)
			if counts.Conflicts == 0 {
				t.Errorf("nothing was noticed: %+v", counts)
			}
			if busy > 1.1*linear {
				t.Errorf("median error %.4f, of RLI %.4f", busy, linear)
			}
		})
	}
}

// TestTrustReturns: a clock that is stepped is a contradiction once; then the
// link agrees with itself again.
func TestTrustReturns(t *testing.T) {
	events := pass(t, queue.RLIConfig, adaptive(), 20000, source(t, "poisson", 0.5, 8), nil)
	const step = 1e6
	for i := len(events) / 2; i < len(events); i++ {
		events[i].ref.Sent -= step
	}
	r := receive(t, config(rli.BusyAware), events)
	c := r.Counts()
	if c.Steps != 1 || !r.Trusted() {
		t.Errorf("one step: trusted %v, %+v", r.Trusted(), c)
	}
	if least := uint64(len(events)) * 8 / 10; c.Idle+c.Busy < least {
		t.Errorf("%d packets by busy periods, want %d", c.Idle+c.Busy, least)
	}
}

// TestJitter: that stamps are up to 50 ns late is learned.
func TestJitter(t *testing.T) {
	for _, name := range []string{"poisson", "flows"} {
		events := pass(t, queue.RLIConfig, adaptive(), 40000, source(t, name, 0.55, 11), nil)
		random := rand.New(rand.NewPCG(1, 2))
		last := int64(0)
		for i := range events {
			last = max(last, events[i].time+random.Int64N(50))
			events[i].time = last
		}
		linear := medianError(t, receive(t, config(rli.Linear), events), events)
		r := receive(t, config(rli.BusyAware), events)
		if off := medianError(t, r, events); !r.Trusted() || off > 0.7*linear {
			t.Errorf("%s: %v of %v, %+v", name, off, linear, r.Counts())
		}
	}
}
