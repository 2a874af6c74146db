package rli_test

import (
	"errors"
	"math"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/rli"
)

// shards splits the measured packets of events by flow; each shard sees the others' as cross traffic.
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

// TestMerge: receivers that measure parts of the flows give the same answers when merged.
func TestMerge(t *testing.T) {
	c, events := slow(t, 2, 40_000, 1000, 30, 0.5, func(hashing.Flow) uint64 { return 660 })
	_, truth := truths(events)
	whole, merged := receive(t, c, events), newReceiver(t, c)
	var parts []*rli.Receiver
	for _, mine := range shards(events, 4) {
		parts = append(parts, receive(t, c, mine))
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
	other := c
	other.Identity++
	if err := merged.Merge(newReceiver(t, other)); !errors.Is(err, estimate.ErrMismatch) {
		t.Errorf("other configuration: %v", err)
	}
	// They learn from different packets how packets wait between references, so that the mean is another, in
	// an interval that is right, and no wider: references also name packets of others.
	got, want := must(merged.Total()), must(whole.Total())
	within, of := want.MeanInterval(0.999), got.MeanInterval(0.999)
	if n != flowsOf(whole) || got.N != want.N || !of.Contains(truth.Mean()) || of.High-of.Low > within.High-within.Low {
		t.Errorf("%d flows, total %+v, want %d and %+v; %.0f in truth", n, got, flowsOf(whole), want, truth.Mean())
	}
	// Every shard was told of every packet and reference.
	counts, one := merged.Counts(), whole.Counts()
	if counts.Packets != one.Packets || counts.References != 4*one.References {
		t.Errorf("counts %+v, want those of 4 shards of %+v", counts, one)
	}
}

// TestRotation: receivers that take turns give the same answers as one receiver that is reset between
// intervals, whoever reads them meanwhile.
func TestRotation(t *testing.T) {
	events := pass(t, queue.RLIConfig, adaptive(), 60000, source(t, "poisson", 0.5, 4), nil)
	for _, m := range []rli.Method{rli.Auto, rli.Linear, rli.Left} {
		r := must(rli.NewRotation(config(m)))
		one := newReceiver(t, config(m))
		var read chan estimate.Delay
		var want estimate.Delay
		for part := range 6 {
			mine := events[part*len(events)/6 : (part+1)*len(events)/6]
			tell(r.Active(), mine)
			tell(one, mine)
			if part%2 == 0 { // else what waits is of the next interval
				r.Active().Flush()
				one.Flush()
			}
			if read != nil && <-read != want {
				t.Errorf("%v, interval %d is another", m, part-1)
			}
			want, read = must(one.Total()).Delay, make(chan estimate.Delay, 1)
			one.Reset()
			done := must(r.Rotate())
			go func(read chan estimate.Delay) {
				total, _ := done.Total()
				_, err := done.MarshalBinary()
				if err = errors.Join(err, r.Release(done)); err != nil {
					t.Error(err)
				}
				read <- total.Delay
			}(read)
		}
		r.Active().Flush() // only what waited, without any reference
		total, err := r.Active().Total()
		if <-read != want || err == nil && !(total.MeanInterval(0.95).High > total.Mean) {
			t.Errorf("%v, the last interval is another, or what waited has a mean of %+v", m, total)
		}
	}
	if _, err := rli.NewRotation(rli.Config{}); err == nil {
		t.Error("a rotation of nothing")
	}
}
