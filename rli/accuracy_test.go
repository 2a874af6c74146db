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

// truths are the delays of each flow, and of all packets.
func truths(events []event) (flows map[hashing.Flow]*estimate.Moments, all estimate.Moments) {
	flows = map[hashing.Flow]*estimate.Moments{}
	for i := range events {
		if e := &events[i]; e.kind == measured {
			if flows[e.flow] == nil {
				flows[e.flow] = new(estimate.Moments)
			}
			flows[e.flow].Add(float64(e.delay))
			all.Add(float64(e.delay))
		}
	}
	return flows, all
}

// medianError is that of the flows' mean delays, relative to the truth.
func medianError(t testing.TB, r *rli.Receiver, events []event) float64 {
	t.Helper()
	truth, _ := truths(events)
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
	return must(estimate.NewEmpirical(relative).Quantile(0.5))
}

// prefixed is a source with packets before it.
type prefixed struct {
	first []queue.Packet
	queue.Source
}

func (s *prefixed) Next(p *queue.Packet) bool {
	if len(s.first) == 0 {
		return s.Source.Next(p)
	}
	*p, s.first = s.first[0], s.first[1:]
	return true
}

// TestNeverEmpty: with no packet that finds the link idle there is nothing to
// go by but the references, and the method is RLI to the last bit.
func TestNeverEmpty(t *testing.T) {
	link := queue.LinkConfig{Rate: linkRate, Queue: queue.QueueConfig{Packets: 100}}
	full := []queue.Packet{}
	for range 200 {
		full = append(full, queue.Packet{Bytes: 1500, Flow: 1})
	}
	src := &prefixed{full, source(t, "poisson", 1.3, 2)}
	events := pass(t, link, adaptive(), 30000, src, nil)
	linear, busy := receive(t, config(rli.Linear), events), receive(t, config(rli.Auto), events)
	for f, want := range linear.All() {
		if got, err := busy.Estimate(f); err != nil || got.Delay != want.Delay {
			t.Fatalf("flow %#x: %+v, %v; RLI says %+v", f, got, err, want)
		}
	}
	if c := busy.Counts(); c.Idle != 0 || c.Busy != 0 || c.Conflicts != 0 || c.Linear == 0 || busy.Trusted() {
		t.Errorf("counts %+v, trusted %v", c, busy.Trusted())
	}
}
