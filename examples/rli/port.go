package main

import (
	"cmp"
	"context"
	"encoding/binary"
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

// A port is a queue before a link, with an injector at its entrance and a
// receiver at its exit.
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

	exact               map[hashing.Flow]*estimate.Moments // of this second, from a table of all packets
	all                 estimate.Moments
	offered             int64 // bytes, of this second
	dropped             uint64
	tuples              map[hashing.Flow]hashing.Tuple
	packets, references uint64 // of this second
	started             time.Time
}

// kinds are the senders that -traffic names.
var kinds = map[string]func(o *options, rate int64) (queue.Source, error){
	"bursty": func(o *options, rate int64) (queue.Source, error) {
		peak := max(float64(rate)/10, 4*o.load/100*float64(rate)/float64(o.flows))
		return trace.NewOnOff(trace.OnOffConfig{
			Load: o.offer(rate), Sizes: trace.IMIX, Senders: o.flows, Peak: int64(peak),
			On: 20 * trace.IMIX.Mean() * 8e9 / peak, OnShape: 1.4, OffShape: 1.2, Seed: o.seed,
		})
	},
	"poisson": func(o *options, rate int64) (queue.Source, error) {
		return trace.NewPoisson(trace.PoissonConfig{Load: o.offer(rate), Sizes: trace.IMIX, Flows: o.flows, Seed: o.seed})
	},
	"tcp": func(o *options, _ int64) (queue.Source, error) {
		return queue.NewClosed(queue.ClosedConfig{
			Senders: o.flows, Bytes: 1500, Return: 2e6, Gap: 1000, Window: 256, Transfer: 200, Pause: 20e6, Seed: o.seed,
		})
	},
}

func (o *options) offer(rate int64) trace.Load {
	return trace.Load{Rate: rate, Utilisation: o.load / 100}
}

func newPort(o options) (*port, error) {
	rate := int64(o.rate * 1e6)
	p := &port{options: o, bytes: 28 + rli.ReferenceSize + 8, started: time.Now()}
	p.exact, p.tuples = map[hashing.Flow]*estimate.Moments{}, map[hashing.Flow]hashing.Tuple{}
	var err error
	if p.source, err = kinds[o.traffic](&o, rate); err != nil {
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
	if p.link, err = queue.NewLink(queue.LinkConfig{Rate: rate, Queue: queue.QueueConfig{Packets: o.queue}, Seed: o.seed}); err != nil {
		return nil, err
	}
	when := rli.InjectorConfig{Every: o.every}
	if o.every == 0 {
		when = rli.PaperInjector
		when.Rate, when.Interval = rate, 1e7 // on a slow link, one every 10 ms is hardly any load
	}
	if p.injector, err = rli.NewInjector(when); err != nil {
		return nil, err
	}
	c := rli.DefaultConfig
	c.Identity = hashing.Fingerprint(o.seed)
	c.Rate, c.ReferenceBytes, c.Method = rate, p.bytes, rli.Method(slices.Index(methods, o.method))
	if o.live != "" {
		c.Rate = 0 // a token bucket is no link
	}
	c.Buffer = max(c.Buffer, 2*when.Every)
	if c.Method == rli.Left {
		c.Buffer = 0
	}
	if p.receiver, err = rli.NewRotation(c); err != nil {
		return nil, err
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

// forward sends the next packet through the queue, and a reference behind it
// if one is due.
func (p *port) forward() {
	packet := p.next
	size, now := int(packet.Bytes), packet.Time
	packet.Time, packet.Fate = p.link.Send(now, size)
	if closed, ok := p.source.(*queue.Closed); ok {
		closed.Tell(&packet)
	}
	if packet.Fate == queue.Passed {
		p.depart(tupleOf(packet.Flow), &packet)
	}
	reference, due := p.injector.Packet(size, now)
	if p.count(size, packet.Fate != queue.Passed, due); !due {
		return
	}
	p.wire = p.injector.Append(p.wire[:0], reference, now)
	if received, fate := p.link.Send(now, p.bytes); fate == queue.Passed {
		p.receiver.Active().Accept(p.wire, received) // the receiver counts what it refuses
	}
}

// count counts a packet that was sent.
func (p *port) count(size int, dropped, referred bool) {
	p.packets++
	p.offered += int64(size)
	if dropped {
		p.dropped++
	}
	if referred {
		p.references++
	}
}

// depart reports a packet to the receiver, and to the table for comparison.
func (p *port) depart(tuple hashing.Tuple, packet *queue.Packet) {
	flow := tuple.Flow(p.seed)
	p.receiver.Active().Update(flow, int(packet.Bytes), packet.Time)
	if p.exact[flow] == nil {
		p.exact[flow], p.tuples[flow] = new(estimate.Moments), tuple
	}
	delay := float64(packet.Time - packet.Sent)
	p.exact[flow].Add(delay)
	p.all.Add(delay)
}

// tupleOf makes up addresses for a simulated flow.
func tupleOf(f hashing.Flow) hashing.Tuple {
	from := netip.AddrFrom4([4]byte{10, byte(f >> 16), byte(f >> 24), byte(f >> 32)})
	return hashing.MakeTuple(6, netip.AddrPortFrom(from, uint16(f)|1024), netip.MustParseAddrPort("192.0.2.1:443"))
}

// take returns what the receiver found in a second, and replaces it by an
// empty one that keeps the knowledge of the link.
func (p *port) take(number int) (*second, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.receiver.Active().Flush()
	full, err := p.receiver.Rotate()
	if err != nil {
		return nil, err
	}
	k := full.Counts()
	s := &second{
		Second: number, Packets: p.packets, Missing: k.Missing, Dropped: p.dropped,
		Busy:       programs.Finite(float64(k.Idle+k.Busy) / float64(k.Packets)),
		References: p.references, Taken: float64(p.references) * float64(p.bytes) / float64(max(p.offered, 1)), Flows: []row{},
	}
	if total, err := full.Total(); err != nil {
		s.Refusal = err.Error()
	} else {
		s.All = makeRow("all packets", &total, &p.all)
	}
	for flow, r := range full.All() {
		tuple := p.tuples[flow]
		name := fmt.Sprintf("tcp %v > %v", tuple.Source(), tuple.Destination())
		s.Flows = append(s.Flows, makeRow(name, &r, p.exact[flow]))
	}
	slices.SortFunc(s.Flows, func(a, b row) int { return cmp.Or(cmp.Compare(b.Mean, a.Mean), cmp.Compare(a.Flow, b.Flow)) })
	s.Refused = len(p.exact) - len(s.Flows)
	clear(p.exact)
	clear(p.tuples)
	p.all, p.offered, p.dropped, p.packets, p.references = estimate.Moments{}, 0, 0, 0, 0
	return s, p.receiver.Release(full)
}

// makeRow compares what the receiver says about a flow with the truth.
func makeRow(name string, r *rli.Result, truth *estimate.Moments) row {
	mean := r.MeanInterval(0.95)
	return row{
		Flow: name, Packets: r.N, Mean: r.Mean, Low: programs.Finite(mean.Low), High: programs.Finite(mean.High), Exact: truth.Mean(),
		Deviation: r.StdDev, ExactDeviation: math.Sqrt(truth.PopulationVariance()),
		whole: r.N == truth.N(), holds: mean.Contains(truth.Mean()),
	}
}
