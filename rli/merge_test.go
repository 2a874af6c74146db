package rli_test

import (
	"errors"
	"math"
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

// same reports whether two delays differ by rounding at most.
func same(a, b estimate.Delay) bool {
	return a.N == b.N && math.Abs(a.Mean-b.Mean) <= 1e-12*math.Abs(b.Mean) && math.Abs(a.StdDev-b.StdDev) <= 1e-6*b.StdDev+1e-3
}

// TestMergeOrder: in whatever order receivers are merged, they say the same of the
// delays, though each has another delay as its origin.
func TestMergeOrder(t *testing.T) {
	events := pass(t, queue.RLIConfig, adaptive(), 10000, source(t, "flows", 0.7, 2), nil)
	c := config(rli.Auto)
	var parts []*rli.Receiver
	for k, mine := range shards(events, 3) {
		parts = append(parts, receive(t, c, mine[100*k:]))
	}
	merged := func(order ...int) *rli.Receiver {
		r := newReceiver(t, c)
		for _, k := range order {
			if err := r.Merge(parts[k]); err != nil {
				t.Fatal(err)
			}
		}
		return r
	}
	want := merged(0, 1, 2)
	for _, order := range [][]int{{2, 1, 0}, {1, 0, 2}} {
		r := merged(order...)
		if !same(must(r.Total()).Delay, must(want.Total()).Delay) || r.Counts() != want.Counts() {
			t.Errorf("merged in order %v: %+v", order, must(r.Total()))
		}
		for f, res := range want.All() {
			if got, err := r.Estimate(f); err != nil || !same(got.Delay, res.Delay) {
				t.Errorf("merged in order %v: flow %#x: %+v, %v", order, f, got, err)
			}
		}
	}
	other := c
	other.Identity++
	if err := parts[0].Merge(newReceiver(t, other)); !errors.Is(err, estimate.ErrMismatch) {
		t.Errorf("other configuration: %v", err)
	}
}

// TestMerge: receivers that measure parts of the flows say together what each says
// of its own.
func TestMerge(t *testing.T) {
	events := pass(t, queue.RLIConfig, adaptive(), 5000, source(t, "flows", 0.7, 2), nil)
	whole := receive(t, config(rli.Auto), events)
	merged := newReceiver(t, config(rli.Auto))
	var parts []*rli.Receiver
	for _, mine := range shards(events, 4) {
		parts = append(parts, receive(t, config(rli.Auto), mine))
		if err := merged.Merge(parts[len(parts)-1]); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	for _, part := range parts {
		for f, want := range part.All() {
			n++
			got, err := merged.Estimate(f)
			if err != nil || !same(got.Delay, want.Delay) {
				t.Fatalf("%+v, %v; want %+v", got, err, want)
			}
		}
	}
	got, _ := merged.Total()
	// They learn from different packets how packets wait between references, so
	// that the mean is another, in the interval.
	want, _ := whole.Total()
	if n != flowsOf(whole) || got.N != want.N || !want.MeanInterval(0.95).Contains(got.Mean) {
		t.Errorf("%d flows, total %+v, want %d and %+v", n, got, flowsOf(whole), want)
	}
	// Every shard was told of every packet and reference.
	counts, one := merged.Counts(), whole.Counts()
	if counts.Packets != one.Packets || counts.References != 4*one.References {
		t.Errorf("counts %+v, want those of 4 shards of %+v", counts, one)
	}
}
