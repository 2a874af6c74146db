package rli_test

import (
	"errors"
	"testing"

	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/rli"
)

// small is a receiver whose rate is not known, so that estimates are plain.
func small(t testing.TB, f func(*rli.Config)) *rli.Receiver {
	c := rli.DefaultConfig
	c.Buffer, c.Flows = 4, 16
	if f != nil {
		f(&c)
	}
	return newReceiver(t, c)
}

func ref(sequence int, sent int64) rli.ReferencePacket {
	return rli.ReferencePacket{Sequence: uint64(sequence), Sent: sent}
}

// TestOverflow: four packets fill the buffer, and at the fifth they are estimated, without a reference behind them.
func TestOverflow(t *testing.T) {
	r := small(t, nil)
	r.Reference(ref(0, 0), 100)
	for i := range 5 {
		r.Update(1, 100, 200+int64(i))
	}
	r.Reference(ref(1, 900), 1204)
	if _, err := r.Estimate(1); !errors.Is(err, rli.ErrUntrusted) || r.Counts().Linear != 5 {
		t.Errorf("%v, %+v", err, r.Counts())
	}
}

// TestAllocations: only iterators and encoders allocate.
func TestAllocations(t *testing.T) {
	events := pass(t, queue.RLIConfig, adaptive(), 20000, source(t, "flows", 0.7, 3), nil)
	c := config(rli.Auto)
	r := newReceiver(t, c)
	other := receive(t, c, events)
	flow := events[0].flow
	i := 0
	for name, f := range map[string]func(){
		"tell": func() {
			for range 100 {
				tell(r, events[i:i+1])
				i = (i + 1) % len(events)
			}
		},
		"estimate": func() { _, _ = other.Estimate(flow) },
		"total":    func() { _, _ = other.Total() },
		"merge":    func() { _ = r.Merge(other) },
		"flush":    r.Flush,
		"reset":    r.Reset,
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

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
