package rli_test

import (
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/rli"
)

// TestStampedTogether: where packets are stamped a millisecond's worth at a time,
// as by a card that interrupts rarely or behind a link that stalls, the interval of all holds the truth.
func TestStampedTogether(t *testing.T) {
	for name, late := range map[string]func(at int64) int64{
		"stamps of every 50 µs": func(at int64) int64 { return (at/50_000 + 1) * 50_000 },
		"a stall of 1 ms every 7": func(at int64) int64 {
			if since := at % 7_000_000; since < 1_000_000 {
				return at - since + 1_000_000
			}
			return at
		},
	} {
		for _, kind := range []string{"poisson", "flows"} {
			in := rli.InjectorConfig{Every: 30}
			events := pass(t, queue.RLIConfig, in, 100_000, source(t, kind, 0.5, 9), nil)
			var all estimate.Moments
			for i := range events {
				e := &events[i]
				to := late(e.time)
				e.delay += to - e.time
				e.time = to
				if e.kind == measured {
					all.Add(float64(e.delay))
				}
			}
			for _, m := range []rli.Method{rli.Linear, rli.Auto} {
				total := must(receive(t, config(m), events).Total())
				if in := total.MeanInterval(0.95); !in.Contains(all.Mean()) || in.High-in.Low > 0.8*all.Mean() {
					t.Errorf("%s, %s, %v: %v of %v", name, kind, m, in, all.Mean())
				}
			}
		}
	}
}
