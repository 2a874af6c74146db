package rli_test

import (
	"errors"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/rli"
)

// shards splits the measured packets of events by flow; each shard is told of
// the others as cross traffic.
func shards(events []event, n uint64) [][]event {
	all := make([][]event, n)
	for k := range all {
		all[k] = append(all[k], events...)
		for i := range all[k] {
			if e := &all[k][i]; e.kind == measured && uint64(e.flow)%n != uint64(k) {
				e.kind = cross
			}
		}
	}
	return all
}

// TestMergeOrder: in whatever order receivers are merged, the encoding is the
// same to the last byte, though each has another delay as its origin.
func TestMergeOrder(t *testing.T) {
	events, _ := pass(t, queue.RLIConfig, adaptive(), 10000, source(t, "flows", 0.7, 2), nil)
	c := config(rli.BusyAware)
	c.Buckets, c.Floor = 100, 16
	var parts []*rli.Receiver
	for k, mine := range shards(events, 3) {
		parts = append(parts, receive(t, c, mine[100*k:]))
	}
	encode := func(order ...int) string {
		r := newReceiver(t, c)
		for _, k := range order {
			if err := r.Merge(parts[k]); err != nil {
				t.Fatal(err)
			}
		}
		b, err := r.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	want := encode(0, 1, 2)
	for _, order := range [][]int{{2, 1, 0}, {1, 0, 2}} {
		if encode(order...) != want {
			t.Errorf("merged in order %v it is another encoding", order)
		}
	}
	other := c
	other.Identity++
	if err := parts[0].Merge(newReceiver(t, other)); !errors.Is(err, estimate.ErrMismatch) {
		t.Errorf("other configuration: %v", err)
	}
}

// TestMerge: receivers that measure parts of the flows say together what one
// says of all.
func TestMerge(t *testing.T) {
	events, _ := pass(t, queue.RLIConfig, adaptive(), 5000, source(t, "flows", 0.7, 2), nil)
	whole := receive(t, config(rli.BusyAware), events)
	merged := newReceiver(t, config(rli.BusyAware))
	for _, mine := range shards(events, 4) {
		if err := merged.Merge(receive(t, config(rli.BusyAware), mine)); err != nil {
			t.Fatal(err)
		}
	}
	for f, want := range whole.All() {
		// Parts know less of how far off they are.
		if got, err := merged.Estimate(f); err != nil || got.Delay != want.Delay || got.Bytes != want.Bytes || got.First != want.First || got.Last != want.Last {
			t.Fatalf("%+v, %v; want %+v", got, err, want)
		}
	}
	got, _ := merged.Total()
	if want, _ := whole.Total(); got.Delay != want.Delay || got.Bytes != want.Bytes {
		t.Errorf("total %+v, want %+v", got, want)
	}
	// Every shard was told of every packet and reference.
	counts, one := merged.Counts(), whole.Counts()
	if counts.Packets != one.Packets || counts.Passed != 3*one.Packets+4*one.Passed || counts.References != 4*one.References {
		t.Errorf("counts %+v, want those of 4 shards of %+v", counts, one)
	}
}
