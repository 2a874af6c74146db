package rli_test

import (
	"math"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/rli"
)

// meanError is how far the mean of all delays is off, in proportion to the
// mean time that packets waited.
func meanError(t testing.TB, r *rli.Receiver, events []event) float64 {
	t.Helper()
	var truth, waited estimate.Moments
	for i := range events {
		if e := &events[i]; e.kind == measured {
			truth.Add(float64(e.delay))
			waited.Add(float64(e.delay) - float64(e.bytes)*8e9/linkRate)
		}
	}
	total, err := r.Total()
	if err != nil {
		t.Fatal(err)
	}
	return (total.Mean - truth.Mean()) / waited.Mean()
}

// TestNoReferenceFollows: where the buffer is full, or was flushed, inside a
// busy period, the waiting time stays where it was, and does not fall to
// nothing.
func TestNoReferenceFollows(t *testing.T) {
	for _, utilisation := range []float64{0.85, 0.95} {
		c := rli.InjectorConfig{Every: 300, ReferenceBytes: referenceBytes}
		events, _ := pass(t, queue.RLIConfig, c, 300_000, source(t, "poisson", utilisation, 9), nil)
		whole := config(rli.BusyAware)
		full := whole
		full.Buffer = 100
		plain := meanError(t, receive(t, whole, events), events)
		overflowed := receive(t, full, events)
		flushed := newReceiver(t, whole)
		for i := range events {
			tell(flushed, events[i:i+1])
			if i%100 == 99 {
				flushed.Flush()
			}
		}
		for name, r := range map[string]*rli.Receiver{"overflowed": overflowed, "flushed": flushed} {
			got := meanError(t, r, events)
			t.Logf("utilisation %v: %s %.4f, buffered %.4f of the mean wait", utilisation, name, got, plain)
			if math.Abs(got) > 0.08 || !r.Trusted() {
				t.Errorf("utilisation %v, %s: the mean is off by %.3f of the mean wait", utilisation, name, got)
			}
		}
	}
}

// TestLineThroughThePacketBehind: a reference tells the delay of the packet
// that it was sent with, if that departed right before it, and else its own.
func TestLineThroughThePacketBehind(t *testing.T) {
	for _, test := range []struct {
		name   string
		behind uint16
		gap    int64 // between the packet's departure and the reference's
		rate   int64
		mean   float64
	}{
		{"right behind", 1000, 512, 1e9, 5000 - 512},
		{"no packet named", 0, 512, 1e9, 5000 + 936*8},
		{"of another size", 999, 512, 1e9, 5000 + 936*8},
		{"much later", 1000, 2000, 1e9, 5000 + 936*8},
		{"no rate known", 1000, 512, 0, 5000},
	} {
		r := small(t, func(c *rli.Config) { c.Rate, c.Method, c.ReferenceBytes = test.rate, rli.Linear, 64 })
		r.Update(1, 1000, 10000)
		r.Reference(rli.ReferencePacket{Sent: 5000 + test.gap, Behind: test.behind}, 10000+test.gap)
		wantMean(t, r, 1, test.mean, 1)
	}
	// Where the rate is not known, how closely they follow is learned.
	r := small(t, func(c *rli.Config) { c.Method = rli.Linear })
	for i := range 3 {
		at := int64(i+1) * 100_000
		r.Update(1, 1000, at)
		r.Reference(rli.ReferencePacket{Sequence: uint64(i), Sent: at - 700, Behind: 1000}, at+500)
	}
	// The first reference's own delay, and then the packets'.
	wantMean(t, r, 1, (1200+700+700)/3.0, 3)
}
