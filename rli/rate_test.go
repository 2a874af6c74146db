package rli_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/rli"
)

// TestRate: the link's rate is learned if the Config lacks it or has a wrong one, even if sizes leave something
// out, and then the method is as good as with the right one.
func TestRate(t *testing.T) {
	long(t)
	for _, kind := range []string{"poisson", "flows"} {
		for _, load := range []float64{0.2, 0.88} {
			events := pass(t, queue.RLIConfig, adaptive(), 40_000, source(t, kind, load, 11), nil)
			for _, missing := range []int{0, 24} {
				uncounted(events, missing)
				c := config(rli.Auto)
				c.ReferenceBytes -= missing
				told := receive(t, c, events)
				right := medianError(t, told, events)
				if told.Rate() != linkRate {
					t.Errorf("%s, %v: %v bit/s although it was told", kind, load, told.Rate())
				}
				for _, rate := range []int64{0, linkRate / 2, linkRate * 0.99, linkRate * 2} {
					c.Rate = rate
					r := receive(t, c, events)
					where := fmt.Sprintf("%s, %v, %d bytes missing, told %d bit/s", kind, load, missing, rate)
					off := math.Abs(r.Rate()/linkRate - 1)
					if off > 1e-3 || believed(r) < 0.7 {
						t.Errorf("%s: %v bit/s, %v of the packets by busy periods", where, r.Rate(), believed(r))
					}
					if got := medianError(t, r, events); got > 1.1*right+0.04 {
						t.Errorf("%s: median error %.4f, if told %.4f", where, got, right)
					}
				}
			}
			uncounted(events, -24)
		}
	}
}

// TestRateOfLateReferences: software sends references some time after their packets, and says so. The rate is learned
// all the same, and soon if they come while packets are being sent. The negative control does not say so.
func TestRateOfLateReferences(t *testing.T) {
	for _, most := range []uint64{1, 200, 5000} {
		events := late(t, queue.RLIConfig, 3, 40_000, 20, 0.5, func(i int) int64 {
			return int64(uint64(hashing.Word(1, uint64(i))) % (most + 1))
		})
		c := config(rli.Auto)
		c.Rate = 0
		r := receive(t, c, events)
		if off := math.Abs(r.Rate()/linkRate - 1); off > 1e-3 || most < 1000 && believed(r) < 0.8 {
			t.Errorf("up to %d ns late: %v bit/s, %.2f of the packets by busy periods", most, r.Rate(), believed(r))
		}
		for i := range events {
			events[i].ref.Sent, events[i].ref.After = events[i].ref.Sent-int64(events[i].ref.After), 0
		}
		if r := receive(t, c, events); most > 1000 && r.Rate() != 0 {
			t.Errorf("up to %d ns late and not told: %v bit/s", most, r.Rate())
		}
	}
}

// TestNoRate: no rate is believed if no link keeps to one, or if the receiver does not see everything that it
// sends.
func TestNoRate(t *testing.T) {
	passed := func(link queue.LinkConfig, cross float64) []event {
		var other queue.Source
		if cross > 0 {
			other = source(t, "poisson", cross, 7)
		}
		events := pass(t, link, adaptive(), 40_000, source(t, "flows", 0.4, 6), other)
		return events
	}
	pausing := passed(queue.RLIConfig, 0)
	for i := range pausing {
		pause := pausing[i].time / 10_000 * 1000
		pausing[i].time += pause
		pausing[i].delay += pause
	}
	untold := passed(queue.RLIConfig, 0.4)
	seen := untold[:0]
	for _, e := range untold {
		if e.kind != cross {
			seen = append(seen, e)
		}
	}
	for name, events := range map[string][]event{
		"a shaper":             passed(queue.LinkConfig{Rate: linkRate, Burst: 20_000}, 0),
		"a pausing link":       pausing,
		"departures not told":  seen,
		"a shaper of a packet": passed(queue.LinkConfig{Rate: linkRate, Burst: 1600}, 0),
	} {
		for _, rate := range []int64{0, linkRate} {
			c := config(rli.Auto)
			c.Rate = rate
			r := receive(t, c, events)
			if believed(r) > 0.01 {
				t.Errorf("%s, told %d bit/s: %v of the packets by busy periods at %v bit/s; %+v", name, rate, believed(r), r.Rate(), r.Counts())
			}
		}
	}
}

// TestRateOfShortSpans: seven senders are as regular as clocks, so that nothing but references of 153.6 ns is seen to
// depart back to back. Taken for 153 ns, they give a rate at which every large packet seems to find the link idle.
func TestRateOfShortSpans(t *testing.T) {
	link, injector := must(queue.NewLink(queue.LinkConfig{Rate: linkRate / 4})), must(rli.NewInjector(rli.InjectorConfig{Every: 10}))
	next := []int64{0, 3000, 11_000, 33_000, 42_000, 48_000, 68_000}
	var events []event
	send := func(at int64, e event) {
		out, _ := link.Send(at, e.bytes)
		e.time, e.delay = out, out-at
		events = append(events, e)
	}
	for i := range 20_000 {
		at := next[i%7] + int64(i/7)*112_000
		send(at, event{flow: hashing.Flow(i % 7), bytes: 1500})
		if ref, ok := injector.Packet(1500, at); ok {
			send(at, event{bytes: referenceBytes, kind: reference, ref: ref})
		}
	}
	c := config(rli.Auto)
	c.Rate = 0
	r := receive(t, c, events)
	if off := meanError(t, r, events); math.Abs(off) > 0.2 || r.Rate() != 0 && math.Abs(r.Rate()*4/linkRate-1) > 1e-3 {
		t.Errorf("%v bit/s, and the mean is off by %.2f of the wait", r.Rate(), off)
	}
}
