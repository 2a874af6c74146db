package rli_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/queue/trace"
	"github.com/hoplag/hoplag/rli"
)

// An event is a departure from a link.
type event struct {
	flow     hashing.Flow
	bytes    int
	time     int64
	delay    int64 // the true one
	kind     kind
	ref      rli.ReferencePacket
	estimate float64 // by a slow reference; NaN if none
}

type kind uint8

const (
	measured kind = iota
	cross
	reference
)

const (
	linkRate       = 10e9
	referenceBytes = 48
)

// source is Poisson traffic or heavy-tailed flows at a utilisation of the link.
func source(t testing.TB, name string, utilisation float64, seed uint64) queue.Source {
	t.Helper()
	load := trace.Load{Rate: linkRate, Utilisation: utilisation}
	if name == "poisson" {
		return must(trace.NewPoisson(trace.PoissonConfig{Load: load, Sizes: trace.IMIX, Flows: 5000, Seed: seed}))
	}
	c := trace.DefaultFlows
	c.Load, c.Seed = load, seed
	return must(trace.NewFlows(c))
}

func adaptive() rli.InjectorConfig {
	c := rli.PaperInjector
	c.Rate = linkRate
	return c
}

// pass sends n packets of a source and the references behind them through a link, together with cross traffic
// if there is any.
func pass(t testing.TB, c queue.LinkConfig, in rli.InjectorConfig, n int, src, other queue.Source) []event {
	t.Helper()
	return passLossy(t, c, in, n, src, other, 0)
}

// passLossy loses a share of the packets and references between injector and link.
func passLossy(t testing.TB, c queue.LinkConfig, in rli.InjectorConfig, n int, src, other queue.Source, share float64) []event {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 6))
	link, injector := must(queue.NewLink(c)), must(rli.NewInjector(in))
	events := make([]event, 0, n+n/8)
	send := func(e event, at int64) {
		if share > 0 && random.Float64() < share {
			return
		}
		if out, fate := link.Send(at, e.bytes); fate == queue.Passed {
			e.time, e.delay = out, out-at
			events = append(events, e)
		}
	}
	var p, q queue.Packet
	more := other != nil && other.Next(&q)
	for i := 0; i < n && src.Next(&p); i++ {
		for more && q.Time < p.Time {
			send(event{bytes: int(q.Bytes), kind: cross}, q.Time)
			more = other.Next(&q)
		}
		send(event{flow: p.Flow, bytes: int(p.Bytes)}, p.Time)
		if ref, ok := injector.Packet(int(p.Bytes), p.Time); ok {
			send(event{bytes: referenceBytes, kind: reference, ref: ref}, p.Time)
		}
	}
	return events
}

func config(m rli.Method) rli.Config {
	c := rli.DefaultConfig
	c.Rate, c.ReferenceBytes, c.Method, c.Flows = linkRate, referenceBytes, m, 1<<16
	if m == rli.Left {
		c.Buffer = 0
	}
	return c
}

func newReceiver(t testing.TB, c rli.Config) *rli.Receiver {
	t.Helper()
	return must(rli.NewReceiver(c))
}

func tell(r *rli.Receiver, events []event) {
	for i := range events {
		switch e := &events[i]; e.kind {
		case measured:
			r.Update(e.flow, e.bytes, e.time)
		case cross:
			r.Pass(e.bytes, e.time)
		case reference:
			r.Reference(e.ref, e.time)
		}
	}
}

func receive(t testing.TB, c rli.Config, events []event) *rli.Receiver {
	t.Helper()
	r := newReceiver(t, c)
	tell(r, events)
	r.Flush()
	return r
}

// markOf is the point that a line passes at a reference: the packet that it was sent behind, if that departed
// right before it, with the delay of a packet of the reference's size, and otherwise the reference itself.
func markOf(events []event, ref int) event {
	e := events[ref]
	e.estimate = float64(e.time - e.ref.Sent)
	if ref == 0 || events[ref-1].kind == reference || events[ref-1].bytes != int(e.ref.Behind) {
		return e
	}
	gap := e.time - events[ref-1].time
	longer := float64(events[ref-1].bytes-referenceBytes) * 8e9 / linkRate
	return event{time: events[ref-1].time, estimate: e.estimate - float64(gap) - math.Round(longer)}
}

// slowPaper sets the estimates to those of eq. (1), or, if left, of RLI-L, with all packets in memory. Packets
// outside all references take the delay of the nearest.
func slowPaper(events []event, left bool) {
	var refs []int
	for i := range events {
		if events[i].kind == reference {
			refs = append(refs, i)
		}
	}
	next := 0 // of refs
	for i := range events {
		e := &events[i]
		for next < len(refs) && refs[next] <= i {
			next++
		}
		e.estimate = math.NaN()
		if e.kind != measured {
			continue
		}
		sizes := float64(e.bytes-referenceBytes) * 8e9 / linkRate // (b_j − b)/l_c in ns
		at := func(ref int) int64 { return markOf(events, ref).time }
		delay := func(ref int) float64 { return markOf(events, ref).estimate }
		switch {
		case next > 0 && (left || next == len(refs)):
			e.estimate = delay(refs[next-1]) + sizes
		case next > 0:
			l, r := refs[next-1], refs[next]
			share := float64(e.time-at(l)) / float64(at(r)-at(l))
			e.estimate = delay(l) + share*(delay(r)-delay(l)) + sizes
		case !left && len(refs) > 0:
			e.estimate = delay(refs[0]) + sizes
		}
	}
}

// compare holds flows to a slow reference's estimates. Delays are rounded, so a mean may differ by half a nanosecond.
func compare(t *testing.T, r *rli.Receiver, events []event) {
	t.Helper()
	type sums struct{ n, sum, squares float64 }
	flows := map[hashing.Flow]*sums{}
	n, all := 0, 0
	for i := range events {
		e := &events[i]
		if e.kind != measured {
			continue
		}
		if all++; math.IsNaN(e.estimate) {
			continue
		}
		n++
		s := flows[e.flow]
		if s == nil {
			s = &sums{}
			flows[e.flow] = s
		}
		s.n++
		s.sum += e.estimate
		s.squares += e.estimate * e.estimate
	}
	if n < all/2 {
		t.Fatalf("the reference estimated %d of %d packets", n, all)
	}
	if n := flowsOf(r); n > len(flows) || n < len(flows)*19/20 {
		t.Errorf("%d flows, want %d", n, len(flows))
	}
	const half = 0.5 + 1e-3
	for f, s := range flows {
		got, err := r.Estimate(f)
		if errors.Is(err, rli.ErrUntrusted) {
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		mean := s.sum / s.n
		dev := math.Sqrt(max(s.squares/s.n-mean*mean, 0))
		if got.N != uint64(s.n) || math.Abs(got.Mean-mean) > half || math.Abs(got.StdDev-dev) > 2*half {
			t.Fatalf("flow %#x: %+v, want mean %v, deviation %v of %v", f, got, mean, dev, s.n)
		}
	}
}

func TestPaperEstimators(t *testing.T) {
	for _, name := range []string{"poisson", "flows"} {
		for _, m := range []rli.Method{rli.Linear, rli.Left} {
			t.Run(fmt.Sprint(name, m), func(t *testing.T) {
				events := pass(t, queue.RLIConfig, adaptive(), 20000, source(t, name, 0.7, 1), nil)
				slowPaper(events, m == rli.Left)
				compare(t, receive(t, config(m), events), events)
			})
		}
	}
}

// flowsOf is the number of flows that have an answer.
func flowsOf(r *rli.Receiver) (n int) {
	for range r.All() {
		n++
	}
	return n
}

// believed is the share of packets that were estimated within busy periods.
func believed(r *rli.Receiver) float64 {
	k := r.Counts()
	return float64(k.Idle+k.Busy) / float64(k.Packets)
}
