package rli_test

import (
	"errors"
	"testing"

	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/rli"
)

// classes are departures of a link with two classes, of which the second waits
// for 20 µs more than the first: every other packet is of it, and no reference.
func classes(t *testing.T) []event {
	events := pass(t, queue.RLIConfig, adaptive(), 20000, source(t, "poisson", 0.3, 4), nil)
	var high, low []event
	for _, e := range events {
		if e.kind == measured && e.flow%2 == 1 {
			e.time += 20_000
			e.delay += 20_000
			low = append(low, e)
		} else {
			high = append(high, e)
		}
	}
	merged := make([]event, 0, len(events))
	for len(high)+len(low) > 0 {
		from := &high
		if len(high) == 0 || len(low) > 0 && low[0].time < high[0].time {
			from = &low
		}
		merged = append(merged, (*from)[0])
		*from = (*from)[1:]
	}
	return merged
}

// TestOtherClass: packets of a class that references are not of are noticed, and
// nothing is said of the delays then. The negative control is what the references
// say if they do not tell how many packets were sent.
func TestOtherClass(t *testing.T) {
	events := classes(t)
	truth := 0.0
	for i := range events {
		truth += float64(events[i].delay) / 20000
	}
	for _, m := range []rli.Method{rli.BusyAware, rli.Linear, rli.Left} {
		r := receive(t, config(m), events)
		if total, err := r.Total(); !errors.Is(err, rli.ErrUntrusted) {
			t.Errorf("%v: %+v, %v", m, total.Delay, err)
		}
		if n := flowsOf(r); n > 10 {
			t.Errorf("%v: answers for %d flows", m, n)
		}
		silent := append([]event(nil), events...)
		for i := range silent {
			silent[i].ref.Packets = 0
		}
		if total := must(receive(t, config(m), silent).Total()); total.MeanInterval(0.99).Contains(truth) {
			t.Errorf("%v: without the number, the interval also holds the truth", m)
		}
	}
}

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
