package rli_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/queue/trace"
	"github.com/hoplag/hoplag/rli"
)

// TestBusyPeriods holds every packet to what departures alone say: one that found the link idle did not wait,
// and none waited longer than the link had been busy. The packet before a reference waited as long as the
// reference says.
func TestBusyPeriods(t *testing.T) {
	events := pass(t, queue.RLIConfig, adaptive(), 20_000, source(t, "flows", 0.55, 3), source(t, "poisson", 0.2, 4))
	r := newReceiver(t, config(rli.Auto))
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

// TestOwnPacketsAhead: senders as fast as the link send a window at a time. A packet that follows only packets
// of its own flow does not wait, and the receiver learns that. If senders are four times as fast, it does wait:
// nothing is taken for granted. The negative control is flows that take turns all the time.
func TestOwnPacketsAhead(t *testing.T) {
	for access, bar := range map[int64]float64{linkRate: 0.01, 4 * linkRate: 0.3} {
		c := trace.DefaultFlows
		c.Load, c.Seed, c.Access = trace.Load{Rate: linkRate, Utilisation: 0.2}, 8, access
		events := pass(t, queue.RLIConfig, rli.InjectorConfig{Every: 100}, 100_000, must(trace.NewFlows(c)), nil)
		if median := medianError(t, receive(t, config(rli.Auto), events), events); median > bar {
			t.Errorf("access of %d: median error %.4f, want up to %v", access, median, bar)
		}
		for i := range events {
			events[i].flow = hashing.Flow(i % 1000)
		}
		if median := medianError(t, receive(t, config(rli.Auto), events), events); median <= 0.01 {
			t.Errorf("access of %d: median error %.4f where flows take turns all the time", access, median)
		}
	}
}

// late sends packets of a source at a load and references behind them, which leave after the given time; the next
// packet waits for that. If the time is negative, it waits so long for a reference that left at once.
func late(t *testing.T, c queue.LinkConfig, seed uint64, n, every int, load float64, after func(i int) int64) []event {
	link, injector := must(queue.NewLink(c)), must(rli.NewInjector(rli.InjectorConfig{Every: every}))
	src, free := source(t, "poisson", load, seed), int64(0)
	events := make([]event, 0, n+n/every+1)
	var p queue.Packet
	for i := 0; i < n && src.Next(&p); i++ {
		at := max(p.Time, free)
		if out, fate := link.Send(at, int(p.Bytes)); fate == queue.Passed {
			events = append(events, event{flow: p.Flow, bytes: int(p.Bytes), time: out, delay: out - at})
		}
		if ref, ok := injector.Packet(int(p.Bytes), at); ok {
			pause := after(i)
			free, ref.After = at+max(pause, -pause), uint32(max(pause, 0))
			ref.Sent = at + int64(ref.After)
			if out, fate := link.Send(ref.Sent, referenceBytes); fate == queue.Passed {
				events = append(events, event{bytes: referenceBytes, kind: reference, time: out, ref: ref})
			}
		}
	}
	return events
}

// TestLateReferences: where software sends references later than their packets, the mean is right, even if the
// link was idle in between, and a nanosecond changes nothing. If it pauses for longer than packets take, there is no answer.
func TestLateReferences(t *testing.T) {
	long(t)
	var off estimate.Moments
	for seed := range uint64(4) {
		events := late(t, queue.RLIConfig, seed, 100_000, 20, 0.5, func(int) int64 { return 500 })
		off.Add(meanError(t, receive(t, config(rli.Auto), events), events))
	}
	if math.Abs(off.Mean()) > 0.02 {
		t.Errorf("the mean is off by %+.4f of the wait", off.Mean())
	}
	for _, load := range []float64{0.5, 0.99, 1.1} {
		var means [2]float64
		for after := range means {
			events := late(t, queue.RLIConfig, 1, 50_000, 20, load, func(int) int64 { return int64(after) })
			means[after] = must(receive(t, config(rli.Auto), events).Total()).Mean
		}
		if off := means[1] - means[0]; math.Abs(off) > 2 { // that nanosecond, and one of rounding
			t.Errorf("load %v: a nanosecond between packets and references changes the mean by %.1f ns", load, off)
		}
	}
	events := late(t, queue.RLIConfig, 6, 20_000, 20, 0.5, func(i int) int64 { return int64(1 + i%7*1000) })
	_, err := receive(t, config(rli.Auto), events).Total()
	if !errors.Is(err, rli.ErrUntrusted) || !strings.Contains(err.Error(), "paused") {
		t.Errorf("pauses of microseconds: %v", err)
	}
}

// TestFullQueue: a full queue has no room for a reference where its packet took the last place: intervals allow for
// that. A late one finds a queue that has emptied, and without the rate there is no answer. Errors of one run's flows
// go together: more than half miss in at most one run in ten, and in 7 of 12 with a probability of 5e-5. The negative
// control has intervals of an eighth.
func TestFullQueue(t *testing.T) {
	for rate, after := range map[int64]int64{linkRate: 0, 0: 3000} {
		var wrong [2]int
		for seed := range uint64(12) {
			full, c := queue.LinkConfig{Rate: linkRate, Queue: queue.QueueConfig{Packets: 4}}, config(rli.Linear)
			c.Rate = rate
			events := late(t, full, seed, 60_000, 20, 1.1, func(int) int64 { return after })
			for i := range events {
				events[i].flow %= 20
			}
			n := misses(t, c, events, 1.0/8)
			wrong[0], wrong[1] = wrong[0]+n[0]/11, wrong[1]+n[1]/11 // of 20
		}
		if wrong[0] >= 7 || rate > 0 && wrong[1] < 7 {
			t.Errorf("rate %d, references %d ns late: flows of %d of 12 runs miss, %d with an eighth of the width", rate, after, wrong[0], wrong[1])
		}
	}
}

// misses counts flows outside their intervals at 95 %, and outside a part of these.
func misses(t *testing.T, c rli.Config, events []event, part float64) (n [2]int) {
	truth, _ := truths(events)
	for f, res := range receive(t, c, events).All() {
		half := res.MeanInterval(0.95).High - res.Mean
		for i, most := range []float64{half, part * half} {
			if math.Abs(res.Mean-truth[f].Mean()) > most {
				n[i]++
			}
		}
	}
	return n
}

type trains struct{ n int64 } // of 37 flows, at the link's rate

func (s *trains) Next(p *queue.Packet) bool {
	*p = queue.Packet{Flow: hashing.Flow(s.n % 37), Time: 52*s.n + s.n/100*5000, Bytes: 65}
	s.n++
	return true
}

// TestHeldUp: packets of trains wait for references ahead of them, but lines go between the packets before references; and
// a sender that pauses at references holds packets up, whether references say so or not. Intervals allow for both. The
// negative control has a third of the width, or the width without a pause.
func TestHeldUp(t *testing.T) {
	events, width := pass(t, queue.LinkConfig{Rate: linkRate}, rli.InjectorConfig{Every: 100}, 60_000, new(trains), nil), 0.0
	if n := misses(t, config(rli.Linear), events, 1.0/3); n != [2]int{0, 37} {
		t.Errorf("of 37 flows of trains %d are outside, and %d if a third as wide", n[0], n[1])
	}
	for i, pause := range []int64{0, 3000, -5000, 0, 1000} {
		n, every, load := 40_000, 20, 0.5
		if i > 2 { // short pauses do most harm by ending periods: all other packets seem to wait longer
			n, every, load = 300_000, 100, 0.7
		}
		events = late(t, queue.RLIConfig, 1, n, every, load, func(int) int64 { return pause })
		_, truth := truths(events)
		total, err := receive(t, config(rli.Auto), events).Total()
		in, off := total.MeanInterval(0.95), math.Abs(total.Mean-truth.Mean())
		if pause == 0 {
			width = in.High - total.Mean
		}
		if err != nil || !in.Contains(truth.Mean()) || pause != 0 && off < width {
			t.Errorf("a pause of %d ns: %.0f, %v, want %.0f; without one ± %.0f", pause, in, err, truth.Mean(), width)
		}
	}
}
