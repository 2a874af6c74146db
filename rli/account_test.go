package rli_test

import (
	"testing"

	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/rli"
)

// TestMissing: lost packets are counted, and duplicates and packets that the injector did not see are noticed.
func TestMissing(t *testing.T) {
	events := pass(t, queue.RLIConfig, adaptive(), 20000, source(t, "poisson", 0.5, 4), nil)
	for events[len(events)-1].kind != reference {
		events = events[:len(events)-1]
	}
	var lossy, doubled, again []event
	n := uint64(0)
	for i, e := range events {
		doubled = append(doubled, e)
		if i > 1 && i%97 == 0 && e.kind == measured {
			doubled = append(doubled, e)
			n++
		} else {
			lossy = append(lossy, e)
		}
	}
	for _, later := range []int64{0, 1e9} { // an injector that begins anew has lost nothing
		for _, e := range events {
			e.time, e.ref.Sent = e.time+later, e.ref.Sent+later
			again = append(again, e)
		}
	}
	for i, test := range []struct {
		events             []event
		missing, overtaken uint64
	}{{lossy, n, 0}, {doubled, 0, n}, {again, 0, 0}} {
		if c := receive(t, config(rli.Linear), test.events).Counts(); c.Missing != test.missing || c.Overtaken != test.overtaken {
			t.Errorf("%d: %d missing and %d overtaken, want %d and %d", i, c.Missing, c.Overtaken, test.missing, test.overtaken)
		}
	}
}
