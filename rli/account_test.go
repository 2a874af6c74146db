package rli_test

import (
	"math"
	"net/netip"
	"testing"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/rli"
)

// classes are departures of a link with two classes, of which the second waits
// for 20 µs more than the first: every other packet is of it, and no reference.
func classes(t *testing.T) []event {
	events, _ := pass(t, queue.RLIConfig, adaptive(), 20000, source(t, "poisson", 0.3, 4), nil)
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
// no interval then says that their delays are known. The negative control is
// what the references say if they do not tell how many packets were sent.
func TestOtherClass(t *testing.T) {
	events := classes(t)
	truth := 0.0
	for i := range events {
		truth += float64(events[i].delay) / 20000
	}
	for _, m := range []rli.Method{rli.BusyAware, rli.Linear, rli.Left} {
		total, err := receive(t, config(m), events).Total()
		if err != nil || total.MeanInterval(0.99).Bounded() || total.DeviationInterval(0.99).Bounded() {
			t.Errorf("%v: %+v, %v in %+v", m, total.Delay, err, total.MeanInterval(0.99))
		}
		silent := append([]event(nil), events...)
		for i := range silent {
			silent[i].ref.Packets = 0
		}
		if total, _ := receive(t, config(m), silent).Total(); total.MeanInterval(0.99).Contains(truth) {
			t.Errorf("%v: without the number, the interval also holds the truth", m)
		}
	}
}

// TestMissing: packets that were lost are counted, and duplicates and what the
// injector was not told of are seen.
func TestMissing(t *testing.T) {
	events, _ := pass(t, queue.RLIConfig, adaptive(), 20000, source(t, "poisson", 0.5, 4), nil)
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
	if c := receive(t, config(rli.Linear), again).Counts(); c.Missing != 0 || c.Overtaken != 0 || c.Restarts != 1 {
		t.Errorf("%+v", c)
	}
}

// TestTuples: records tell their 5-tuples, through eviction, merging and encoding.
func TestTuples(t *testing.T) {
	tuple := func(i int) hashing.Tuple {
		at := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), 1)
		return hashing.MakeTuple(6, at, at)
	}
	c := config(rli.Linear)
	c.Tuples, c.Flows, c.Buffer = true, 100, 64
	r := newReceiver(t, c)
	for i := range 50_000 {
		at := int64(i) * 1000
		of := tuple(i * i % 331)
		r.UpdateTuple(of.Flow(5), of, 100, at)
		if i%10 == 0 {
			r.Reference(rli.ReferencePacket{Sequence: uint64(i), Sent: at - 500}, at)
		}
	}
	r.Update(77, 100, math.MaxInt32)
	if r.Flush(); r.Counts().Evicted == 0 {
		t.Error("nothing was evicted")
	}
	merged, decoded := newReceiver(t, c), new(rli.Receiver)
	data, _ := r.MarshalBinary()
	if err := decoded.UnmarshalBinary(data); err != nil || len(data) > c.EncodedSize() {
		t.Fatal(err, len(data))
	}
	if err := merged.Merge(r); err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]*rli.Receiver{"as measured": r, "merged": merged, "decoded": decoded} {
		n := 0
		for f, res := range r.All() {
			n++
			if want := res.Tuple.Flow(5); f != want && (f != 77 || res.Tuple != hashing.Tuple{}) {
				t.Errorf("%s: the record of flow %#x has the tuple of %#x", name, f, want)
			}
		}
		if n < 90 {
			t.Errorf("%s: %d flows", name, n)
		}
	}
	c.Tuples = false
	r = newReceiver(t, c)
	r.UpdateTuple(3, tuple(3), 100, 5)
	r.Reference(rli.ReferencePacket{}, 10)
	if res, err := r.Estimate(3); err != nil || res.Tuple != (hashing.Tuple{}) {
		t.Errorf("%+v, %v", res, err)
	}
}
