package rli_test

import (
	"testing"

	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/rli"
)

// TestMissing: packets that were lost are counted, and duplicates and what the
// injector was not told of are seen.
func TestMissing(t *testing.T) {
	events := pass(t, queue.RLIConfig, adaptive(), 20000, source(t, "poisson", 0.5, 4), nil)
	var lossy, doubled []event
	lost, twice := uint64(0), uint64(0)
	last := 0
	for i := range events {
		if events[i].kind == reference {
			last = i
		}
	}
	for i, e := range events[:last+1] {
		if i > 0 && i%97 == 0 && e.kind == measured {
			lost++
		} else {
			lossy = append(lossy, e)
		}
		doubled = append(doubled, e)
		if i > 1 && i%97 == 0 && e.kind == measured {
			doubled = append(doubled, e)
			twice++
		}
	}
	if c := receive(t, config(rli.Linear), lossy).Counts(); c.Missing != lost || c.Overtaken != 0 {
		t.Errorf("%d missing and %d overtaken, want %d and 0", c.Missing, c.Overtaken, lost)
	}
	if c := receive(t, config(rli.Linear), doubled).Counts(); c.Missing != 0 || c.Overtaken != twice {
		t.Errorf("%d missing and %d overtaken, want 0 and %d", c.Missing, c.Overtaken, twice)
	}
	// An injector that begins anew has lost nothing.
	again := append([]event(nil), events...)
	for _, e := range events {
		e.time += 1e9
		e.ref.Sent += 1e9
		again = append(again, e)
	}
	if c := receive(t, config(rli.Linear), again).Counts(); c.Missing != 0 || c.Overtaken != 0 {
		t.Errorf("%+v", c)
	}
}
