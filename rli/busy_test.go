package rli_test

import (
	"errors"
	"math"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/queue/trace"
	"github.com/hoplag/hoplag/rli"
)

// TestBusyPeriods holds every packet to what departures alone say: one that found
// the link idle did not wait, and none waited longer than the link had been busy.
// The packet before a reference waited as long as that says.
func TestBusyPeriods(t *testing.T) {
	events := pass(t, queue.RLIConfig, adaptive(), 20_000, source(t, "flows", 0.55, 3), source(t, "poisson", 0.2, 4))
	r := newReceiver(t, config(rli.BusyAware))
	begun, idle, busy := math.Inf(-1), 0, 0
	least, most := map[hashing.Flow]float64{}, map[hashing.Flow]float64{}
	for i := range events {
		e := &events[i]
		size := float64(e.bytes) * 8e9 / linkRate
		alone := i == 0 || float64(e.time-events[i-1].time) > size+2
		if alone {
			begun = float64(e.time) - size
		}
		if e.kind == measured && r.Trusted() {
			e.flow = hashing.Flow(i) // each a flow of its own
			least[e.flow], most[e.flow] = size-2, float64(e.time)-begun+2
			if alone {
				idle++
				most[e.flow] = size + 2
			}
			if busy++; i+1 < len(events) && events[i+1].kind == reference && events[i+1].ref.Behind > 0 {
				least[e.flow], most[e.flow] = float64(e.delay)-2, float64(e.delay)+2
			}
		}
		tell(r, events[i:i+1])
	}
	r.Flush()
	if idle < 1000 || busy < 10_000 {
		t.Fatalf("%d packets, of which %d found the link idle", busy, idle)
	}
	for f := range most {
		got, err := r.Estimate(f)
		if errors.Is(err, rli.ErrUntrusted) { // after the last reference
			continue
		}
		if err != nil || got.Mean < least[f] || got.Mean > most[f] {
			t.Errorf("packet %d: %.1f ns, %v, want %.1f to %.1f", f, got.Mean, err, least[f], most[f])
		}
	}
}

// TestBusyAwareDoubts: where the link breaks its promise now and then, trust is lost
// and won again, and the mean stays in its interval.
func TestBusyAwareDoubts(t *testing.T) {
	events := pass(t, queue.RLIConfig, adaptive(), 20_000, source(t, "poisson", 0.6, 5), nil)
	var truth estimate.Moments
	n, lies := 0, uint64(0)
	for i := range events {
		if n++; events[i].kind == reference && n > 2000 { // it was sent 3 µs later than it says
			n, lies = 0, lies+1
			events[i].ref.Sent -= 3000
		} else if events[i].kind == measured && n == 1000 {
			events[i].time -= 100
			events[i].delay -= 100
		}
		if events[i].kind == measured {
			truth.Add(float64(events[i].delay))
		}
	}
	r := receive(t, config(rli.BusyAware), events)
	if c := r.Counts(); lies < 5 || c.Conflicts <= lies || c.Busy < c.Packets/2 || c.Linear == 0 {
		t.Errorf("%d lies: %+v", lies, c)
	}
	if total, err := r.Total(); err != nil {
		t.Error(err)
	} else if in := total.MeanInterval(0.999); !in.Contains(truth.Mean()) {
		t.Errorf("%.0f to %.0f ns, in truth %.0f", in.Low, in.High, truth.Mean())
	}
}

// TestOwnPacketsAhead: senders as fast as the link send a window at a time. A packet
// that follows only its own flow's does not wait, and the receiver learns it. The
// negative control are packets whose flows the receiver cannot tell apart by turns,
// and where senders are four times as fast as the link nothing is taken for granted.
func TestOwnPacketsAhead(t *testing.T) {
	for _, access := range []int64{linkRate, 4 * linkRate} {
		c := trace.DefaultFlows
		c.Load, c.Seed, c.Access = trace.Load{Rate: linkRate, Utilisation: 0.2}, 8, access
		events := pass(t, queue.RLIConfig, rli.InjectorConfig{Every: 100}, 100_000, must(trace.NewFlows(c)), nil)
		median := medianError(t, receive(t, config(rli.Auto), events), events)
		random := newReceiver(t, config(rli.Auto))
		for i := range events {
			if events[i].flow != 0 && i%2 == 1 {
				random.Update(hashing.Flow(1), events[i].bytes, events[i].time)
				continue
			}
			tell(random, events[i:i+1])
		}
		t.Logf("access of %d: median error %.4f", access, median)
		if access == linkRate && median > 0.01 || access > linkRate && median > 0.3 {
			t.Errorf("access of %d: median error %.4f", access, median)
		}
	}
}
