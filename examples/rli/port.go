package main

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/programs"
	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/queue/trace"
	"github.com/hoplag/hoplag/rli"
)

// A port is a queue before a link, with an injector at its entrance and a receiver at its exit.
type port struct {
	options
	source   queue.Source
	next     queue.Packet // of the source
	link     *queue.Link
	injector *rli.Injector
	receiver *estimate.Rotation[*rli.Receiver]
	bytes    int        // of a reference, with its headers
	wire     []byte     // the payload of the latest one
	wires    *wire      // with -live, instead of the link
	mu       sync.Mutex // of what follows, and the receiver

	exact   map[hashing.Flow]*flow // of this second, from a table of all packets
	all     estimate.Moments
	now     second
	started time.Time
}

// A flow is the truth about a flow.
type flow struct {
	tuple  hashing.Tuple
	delays estimate.Moments
}

// kinds are the senders that -traffic names.
var kinds = map[string]func(o *options, load trace.Load) (queue.Source, error){
	"bursty": func(o *options, load trace.Load) (queue.Source, error) {
		peak := float64(load.Rate) * max(0.1, 4*load.Utilisation/float64(o.flows))
		return trace.NewOnOff(trace.OnOffConfig{
			Load: load, Sizes: trace.IMIX, Senders: o.flows, Peak: int64(peak),
			On: 20 * trace.IMIX.Mean() * 8e9 / peak, OnShape: 1.4, OffShape: 1.2, Seed: o.seed,
		})
	},
	"poisson": func(o *options, load trace.Load) (queue.Source, error) {
		return trace.NewPoisson(trace.PoissonConfig{Load: load, Sizes: trace.IMIX, Flows: o.flows, Seed: o.seed})
	},
}

func newPort(o options) (*port, error) {
	rate := int64(o.rate * 1e6)
	p := &port{options: o, bytes: 28 + rli.ReferenceSize + 8, started: time.Now(), exact: map[hashing.Flow]*flow{}}
	var err error
	if p.source, err = kinds[o.traffic](&o, trace.Load{Rate: rate, Utilisation: o.load / 100}); err != nil {
		return nil, err
	}
	p.source.Next(&p.next)
	if o.live != "" {
		if p.wires, err = newWire(&o); err != nil {
			return nil, err
		}
		p.bytes += 14 // of Ethernet
		p.wires.done.Add(1)
		defer func() { go p.receiveLive() }()
	}
	var errs [3]error
	p.link, errs[0] = queue.NewLink(queue.LinkConfig{Rate: rate, Queue: queue.QueueConfig{Packets: o.queue}, Seed: o.seed})
	when := rli.InjectorConfig{Every: o.every}
	if o.every == 0 {
		when = rli.PaperInjector
		when.Rate, when.Interval = rate, 6e6 // on a slow link, one every 6 ms is hardly any load
	}
	p.injector, errs[1] = rli.NewInjector(when)
	c := rli.DefaultConfig
	c.Identity = hashing.Fingerprint(o.seed)
	c.Rate, c.ReferenceBytes, c.Method = rate, p.bytes, rli.Method(slices.Index(methods, o.method))
	if o.live != "" {
		c.Rate = 0 // a token bucket is no link
	}
	if c.Buffer = max(c.Buffer, 2*when.Every); c.Method == rli.Left {
		c.Buffer = 0
	}
	if p.receiver, errs[2] = rli.NewRotation(c); errors.Join(errs[:]...) != nil {
		return nil, errors.Join(errs[:]...)
	}
	var secret [16]byte // in a real switch, both ends share it
	binary.LittleEndian.PutUint64(secret[:], o.seed)
	p.injector.SetKey(secret)
	p.receiver.Active().SetKey(secret)
	return p, nil
}

// pass forwards packets until a second ends, or ctx is done.
func (p *port) pass(ctx context.Context, second int) {
	for end := int64(second) * 1e9; p.next.Time < end && ctx.Err() == nil; p.source.Next(&p.next) {
		if p.wires == nil {
			p.forward()
			continue
		}
		if ahead := time.Duration(p.next.Time) - time.Since(p.started); ahead > 0 {
			select {
			case <-ctx.Done():
				return
			case <-time.After(ahead):
			}
		}
		p.forwardLive()
	}
}

// forward sends the next packet through the queue, and a reference behind it if one is due.
func (p *port) forward() {
	packet := p.next
	size, now := int(packet.Bytes), packet.Time
	packet.Time, packet.Fate = p.link.Send(now, size)
	if p.now.Packets++; packet.Fate == queue.Passed {
		p.depart(tupleOf(packet.Flow), &packet)
	} else {
		p.now.Dropped++
	}
	reference, due := p.injector.Packet(size, now)
	if !due {
		return
	}
	p.wire = p.injector.Append(p.wire[:0], reference, now)
	if received, fate := p.link.Send(now, p.bytes); fate == queue.Passed {
		p.receiver.Active().Accept(p.wire, received) // the receiver counts what it refuses
	}
}

// depart reports a packet to the receiver, and to the table for comparison.
func (p *port) depart(tuple hashing.Tuple, packet *queue.Packet) {
	key := tuple.Flow(p.seed)
	p.receiver.Active().Update(key, int(packet.Bytes), packet.Time)
	if p.exact[key] == nil {
		p.exact[key] = &flow{tuple: tuple}
	}
	delay := float64(packet.Time - packet.Sent)
	p.exact[key].delays.Add(delay)
	p.all.Add(delay)
}

// tupleOf makes up addresses for a simulated flow.
func tupleOf(f hashing.Flow) hashing.Tuple {
	from := netip.AddrFrom4([4]byte{10, byte(f >> 16), byte(f >> 24), byte(f >> 32)})
	return hashing.MakeTuple(6, netip.AddrPortFrom(from, uint16(f)|1024), netip.MustParseAddrPort("192.0.2.1:443"))
}

// take returns what the receiver found in a second, and replaces it by an empty one that keeps the
// knowledge of the link.
func (p *port) take(number int) (*second, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.receiver.Active().Flush()
	full, err := p.receiver.Rotate()
	if err != nil {
		return nil, err
	}
	k, s := full.Counts(), p.now
	s.Second, s.Missing, s.References, s.Flows = number, k.Missing, k.References, []row{}
	s.Busy = programs.Finite(float64(k.Idle+k.Busy) / float64(k.Packets))
	if total, err := full.Total(); err != nil {
		s.Refusal = err.Error()
	} else {
		s.All = p.row("all packets", &total, &p.all)
	}
	for key, r := range full.All() {
		f := p.exact[key]
		s.Flows = append(s.Flows, p.row(fmt.Sprintf("tcp %v > %v", f.tuple.Source(), f.tuple.Destination()), &r, &f.delays))
	}
	slices.SortFunc(s.Flows, func(a, b row) int { return cmp.Or(cmp.Compare(b.Mean, a.Mean), cmp.Compare(a.Flow, b.Flow)) })
	s.Refused = len(p.exact) - len(s.Flows)
	clear(p.exact)
	p.all, p.now = estimate.Moments{}, second{}
	return &s, p.receiver.Release(full)
}

// row compares what the receiver says about a flow with the truth.
func (p *port) row(name string, r *rli.Result, truth *estimate.Moments) row {
	mean := r.MeanInterval(p.confidence / 100)
	return row{
		Flow: name, Packets: r.N, Mean: r.Mean, Low: programs.Finite(mean.Low), High: programs.Finite(mean.High), Exact: truth.Mean(),
		Deviation: r.StdDev, ExactDeviation: math.Sqrt(truth.PopulationVariance()), whole: r.N == truth.N(),
	}
}
