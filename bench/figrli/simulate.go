package figrli

import (
	"math"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/rli"
)

// referenceBytes is the paper's reference packet: 8 bytes of time after 40 of header (section III-C).
const referenceBytes = 48

// adaptive is the paper's injector.
var adaptive = rli.PaperInjector

// everyNth returns an injector of one reference every n packets.
func everyNth(n int) rli.InjectorConfig { return rli.InjectorConfig{Every: n} }

// everyTau returns an injector of references with a mean distance of ns nanoseconds.
func everyTau(ns float64) rli.InjectorConfig { return rli.InjectorConfig{Interval: int64(ns)} }

// A setting is one run of the queue.
type setting struct {
	kind        kind
	utilisation float64
	packets     int
	injector    rli.InjectorConfig // the zero value: no references
	ahead       bool               // references go before their packet instead of behind it
	link        queue.LinkConfig   // the zero value: the paper's
	late        int64              // ns by which a reference is sent after its packet; what follows waits
	again       int                // which of several runs of the setting
}

// A departure is a packet or reference that arrived.
type departure struct {
	flow  int32 // of a packet; -1 if it is not measured
	bytes int32
	stamp int32 // of a reference, in passage.stamps; -1 of cross traffic
	out   int64
	delay int64
}

func (d *departure) regular() bool { return d.flow >= 0 }

// A flow holds the truth about a flow: the delays of its packets that arrived.
type flow struct {
	key    hashing.Flow
	delays estimate.Moments
}

func (f *flow) mean() float64      { return f.delays.Mean() }
func (f *flow) deviation() float64 { return math.Sqrt(f.delays.PopulationVariance()) }

// A passage is the result of a setting.
type passage struct {
	sent   []int64 // when the packets were sent, by number
	events []departure
	stamps []rli.ReferencePacket
	flows  []flow // in the order of their first packets that arrived
	all    estimate.Moments
	lost   int // regular packets
}

// references returns the number of references per packet.
func (p *passage) references() float64 { return float64(len(p.stamps)) / float64(len(p.sent)) }

func (p *passage) loss() float64 { return float64(p.lost) / float64(len(p.sent)) }

// simulate sends packets through the queue.
func simulate(run *experiment.Run, s setting) *passage {
	source := s.kind.source(run, s.utilisation, s.again)
	if s.link == (queue.LinkConfig{}) {
		s.link = queue.RLIConfig
	}
	w := &wire{setting: s, queue: experiment.Try(queue.NewLink(s.link)), numbers: map[hashing.Flow]int32{}}
	w.sent, w.events = make([]int64, 0, s.packets), make([]departure, 0, s.packets*11/10)
	if s.injector != (rli.InjectorConfig{}) {
		w.injector = experiment.Try(rli.NewInjector(s.injector))
	}
	var packet queue.Packet
	for len(w.sent) < s.packets && source.Next(&packet) {
		w.send(&packet)
	}
	return &w.passage
}

// A wire sends packets and references, and records what arrives.
type wire struct {
	passage
	setting
	queue    *queue.Link
	injector *rli.Injector
	numbers  map[hashing.Flow]int32
	free     int64 // when the sender may send
}

// What a packet is, by its Tag.
const (
	measured  uint8 = iota // ID is its number
	reference              // ID is that of its stamp
)

func (w *wire) send(packet *queue.Packet) {
	w.free = max(w.free, packet.Time)
	packet.Time, packet.Sent = w.free, w.free
	now := packet.Time
	var stamp rli.ReferencePacket
	due := false
	if w.injector != nil {
		stamp, due = w.injector.Packet(int(packet.Bytes), now)
	}
	if due && w.ahead {
		stamp.Behind = 0
		w.refer(stamp, now)
	}
	packet.ID = hashing.Packet(len(w.sent))
	w.sent = append(w.sent, now)
	w.put(packet)
	if due && !w.ahead {
		stamp.Sent, stamp.After, w.free = now+w.late, uint32(w.late), now+w.late
		w.refer(stamp, now+w.late)
	}
}

// refer sends a reference.
func (w *wire) refer(stamp rli.ReferencePacket, now int64) {
	w.put(&queue.Packet{Sent: now, Time: now, Bytes: referenceBytes, Tag: reference, ID: hashing.Packet(len(w.stamps))})
	w.stamps = append(w.stamps, stamp)
}

// put sends a packet into the link.
func (w *wire) put(p *queue.Packet) {
	p.Time, p.Fate = w.queue.Send(p.Time, int(p.Bytes))
	w.note(p)
}

// note records what became of a packet.
func (w *wire) note(p *queue.Packet) {
	d := departure{flow: -1, stamp: -1, bytes: p.Bytes, out: p.Time, delay: p.Time - p.Sent}
	switch {
	case p.Fate != queue.Passed:
		if p.Tag == measured {
			w.lost++
		}
		return
	case p.Tag == reference:
		d.stamp = int32(p.ID)
	case p.Tag == measured:
		d.stamp, d.flow = 0, w.flow(p.Flow)
		w.flows[d.flow].delays.Add(float64(d.delay))
		w.all.Add(float64(d.delay))
	}
	w.events = append(w.events, d)
}

// flow returns a flow's number.
func (w *wire) flow(key hashing.Flow) int32 {
	number, ok := w.numbers[key]
	if !ok {
		number = int32(len(w.flows))
		w.numbers[key] = number
		w.flows = append(w.flows, flow{key: key})
	}
	return number
}
