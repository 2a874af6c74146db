package rli_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/queue/trace"
	"github.com/hoplag/hoplag/rli"
)

// medianError is that of the flows' mean delays, relative to the truth.
func medianError(t testing.TB, r *rli.Receiver, events []event) float64 {
	t.Helper()
	truth := map[hashing.Flow]*estimate.Moments{}
	for i := range events {
		e := &events[i]
		if e.kind == measured {
			if truth[e.flow] == nil {
				truth[e.flow] = new(estimate.Moments)
			}
			truth[e.flow].Add(float64(e.delay))
		}
	}
	var relative []float64
	for f, m := range truth {
		got, err := r.Estimate(f)
		if errors.Is(err, rli.ErrUntrusted) {
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		relative = append(relative, math.Abs(got.Mean-m.Mean())/m.Mean())
	}
	if len(relative) < len(truth)*19/20 {
		t.Errorf("%d of %d flows are refused", len(truth)-len(relative), len(truth))
	}
	median, err := estimate.NewEmpirical(relative).Quantile(0.5)
	if err != nil {
		t.Fatal(err)
	}
	return median
}

// share is the bar: what part of RLI's median error the busy-aware method may
// have at a utilisation.
func share(utilisation float64) float64 {
	if utilisation <= 0.55 {
		return 0.7
	}
	return 1.05
}

// TestAccuracy holds the busy-aware method to seven tenths of the error of RLI
// at low load, and to no more than a twentieth above it at high load. The negative
// controls are RLI itself, and the busy-aware method at a wrong rate: what it
// falls back to must not meet the bar of low load.
func TestAccuracy(t *testing.T) {
	long(t)
	const n = 60000
	for _, name := range []string{"poisson", "flows"} {
		for _, utilisation := range []float64{0.2, 0.55, 0.7, 0.88} {
			t.Run(fmt.Sprintf("%s/%v", name, utilisation), func(t *testing.T) {
				events := pass(t, queue.RLIConfig, adaptive(), n, source(t, name, utilisation, 11), nil)
				linear := medianError(t, receive(t, config(rli.Linear), events), events)
				busy := medianError(t, receive(t, config(rli.BusyAware), events), events)
				t.Logf("median error %.4f, of RLI %.4f", busy, linear)
				bar := share(utilisation)
				if busy > bar*linear {
					t.Errorf("median error %.4f, want %.2f of RLI's %.4f", busy, bar, linear)
				}
				if bar < 1 {
					wrong := config(rli.Linear)
					wrong.Rate = linkRate * 11 / 10
					if broken := medianError(t, receive(t, wrong, events), events); broken <= bar*linear {
						t.Errorf("median error %.4f at a wrong rate also meets the bar", broken)
					}
				}
			})
		}
	}
}

// TestNeverEmpty: with no packet that finds the link idle there is nothing to
// go by but the references, and the method is RLI to the last bit.
func TestNeverEmpty(t *testing.T) {
	link := queue.LinkConfig{Rate: linkRate, Queue: queue.QueueConfig{Packets: 100}}
	full := []queue.Packet{}
	for range 200 {
		full = append(full, queue.Packet{Bytes: 1500, Flow: 1})
	}
	src := trace.Merge(trace.Replay(full), source(t, "poisson", 1.3, 2))
	events := pass(t, link, adaptive(), 30000, src, nil)
	linear, busy := receive(t, config(rli.Linear), events), receive(t, config(rli.BusyAware), events)
	for f, want := range linear.All() {
		if got, err := busy.Estimate(f); err != nil || got.Delay != want.Delay {
			t.Fatalf("flow %#x: %+v, %v; RLI says %+v", f, got, err, want)
		}
	}
	if c := busy.Counts(); c.Idle != 0 || c.Busy != 0 || c.Conflicts != 0 || c.Linear == 0 || busy.Trusted() {
		t.Errorf("counts %+v, trusted %v", c, busy.Trusted())
	}
}
