package rli_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/rli"
)

// uncounted returns departures as reported by someone who counts some bytes of each packet too few.
func uncounted(events []event, bytes int) {
	for i := range events {
		e := &events[i]
		e.bytes -= bytes
		if e.kind == reference {
			e.ref.Behind -= uint16(bytes)
		}
	}
}

// drifting lets the injector's clock gain part of the time, and more so over the first 20 ms; delays are by
// these clocks.
func drifting(part, more float64) func(events []event) {
	gain := func(t int64) int64 {
		x := float64(t)
		return int64(math.Round(x * (part + more/2*min(x/20e6, 1))))
	}
	return func(events []event) {
		for i := range events {
			e := &events[i]
			e.ref.Sent -= gain(e.ref.Sent)
			e.delay += gain(e.time - e.delay)
		}
	}
}

// TestRobustBelief: what sizes leave out, and how far off timestamps are, is learned from references, so that Auto works
// even where Config tells it too little, or no longer the truth. The negative control is a link that does not always send.
func TestRobustBelief(t *testing.T) {
	long(t)
	for _, test := range []struct {
		name     string
		missing  int
		change   func(events []event)
		believed bool
	}{
		{"24 bytes of preamble, checksum and gap", 24, func([]event) {}, true},
		{"noise of 2 ns", 0, func(events []event) {
			random := rand.New(rand.NewPCG(1, 2))
			last := int64(math.MinInt64)
			for i := range events {
				last = max(last, events[i].time+int64(math.Round(2*random.NormFloat64())))
				events[i].time = last
			}
		}, true},
		{"a drift of 10 ppm the other way", 0, drifting(-1e-5, 0), true},
		{"a drift of 200 ppm", 0, drifting(2e-4, 0), true},
		{"a drift from -10 to 10 ppm", 0, drifting(-1e-5, 2e-5), true},
		{"a rate that halves midway", 0, func(events []event) {
			mid := events[len(events)/2].time
			slow := func(at int64) int64 { return at + max(at-mid, 0) }
			for i := range events {
				e := &events[i]
				sent := slow(e.time - e.delay)
				e.time, e.ref.Sent = slow(e.time), slow(e.ref.Sent)
				e.delay = e.time - sent
			}
		}, true},
		{"pauses of 1 µs every 10 µs", 0, func(events []event) {
			for i := range events {
				events[i].time += events[i].time / 10_000 * 1000
			}
		}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			events := pass(t, queue.RLIConfig, adaptive(), 60000, source(t, "poisson", 0.55, 11), nil)
			uncounted(events, test.missing)
			test.change(events)
			c := config(rli.Auto)
			c.ReferenceBytes -= test.missing
			busy := receive(t, c, events)
			c.Method = rli.Linear
			linear := receive(t, c, events)
			k := busy.Counts()
			share := believed(busy)
			ours, theirs := medianError(t, busy, events), medianError(t, linear, events)
			if believed := share > 0.8 && ours < 0.8*theirs; believed != test.believed {
				t.Errorf("%.3f of the packets by busy periods, median error %.4f, of RLI %.4f; %+v", share, ours, theirs, k)
			}
		})
	}
}
