package figrli

import (
	"math"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/rli"
)

// referenceBytes is the paper's reference packet: 8 bytes of time behind 40 of
// header (section III-C).
const referenceBytes = 48

// adaptive is the paper's injector.
var adaptive = rli.InjectorConfig{Adaptive: rli.PaperAdaptation, ReferenceBytes: referenceBytes}

// everyNth is the injector of one reference in so many packets.
func everyNth(n int) rli.InjectorConfig {
	return rli.InjectorConfig{Every: n, ReferenceBytes: referenceBytes}
}

// A setting is one run of the queue.
type setting struct {
	kind        kind
	utilisation float64
	packets     int
	injector    rli.InjectorConfig // the zero value: no references
	ahead       bool               // references go before their packet, and not behind
	probes      float64            // ns between Poisson probes on average; 0 for none
}

// A departure is a packet, reference or probe that arrived.
type departure struct {
	number int32 // of a packet: how many were sent before
	flow   int32 // of a packet; -1 of a reference or probe
	bytes  int32
	stamp  int32 // of a reference, in passage.stamps
	out    int64
	delay  int64
}

func (d *departure) regular() bool { return d.flow >= 0 }

// A flow is what is true of a flow: the delays of its packets that arrived.
type flow struct {
	key    hashing.Flow
	delays estimate.Moments
}

func (f *flow) mean() float64      { return f.delays.Mean() }
func (f *flow) deviation() float64 { return math.Sqrt(f.delays.PopulationVariance()) }

// A passage is what came of a setting.
type passage struct {
	sent   []int64 // when the packets were sent, by number
	events []departure
	stamps []rli.ReferencePacket
	flows  []flow // in the order of their first packets that arrived
	all    estimate.Moments
	lost   int // regular packets
	cost   rli.Overhead
}

func (p *passage) deviation() float64 { return math.Sqrt(p.all.PopulationVariance()) }

func (p *passage) loss() float64 { return float64(p.lost) / float64(len(p.sent)) }

// simulate sends packets through the queue.
func simulate(run *experiment.Run, s setting) *passage {
	source := s.kind.source(run, s.utilisation)
	w := &wire{setting: s, link: experiment.Try(queue.NewLink(queue.RLIConfig)), numbers: map[hashing.Flow]int32{}}
	w.sent, w.events = make([]int64, 0, s.packets), make([]departure, 0, s.packets*11/10)
	if s.injector != (rli.InjectorConfig{}) {
		w.injector = experiment.Try(rli.NewInjector(s.injector))
	}
	random := run.Rand("probes")
	next := math.Inf(1) // probe
	var packet queue.Packet
	for i := 0; i < s.packets && source.Next(&packet); i++ {
		if i%(1<<14) == 0 {
			run.Alive()
		}
		if i == 0 && s.probes > 0 {
			next = float64(packet.Time) + random.ExpFloat64()*s.probes
		}
		for next < float64(packet.Time) {
			w.refer(rli.ReferencePacket{}, int64(next))
			next += random.ExpFloat64() * s.probes
		}
		w.send(&packet)
	}
	if w.injector != nil {
		w.cost = w.injector.Overhead()
	}
	return &w.passage
}

// A wire sends packets, references and probes, and writes down what arrives.
type wire struct {
	passage
	setting
	link     *queue.Link
	injector *rli.Injector
	numbers  map[hashing.Flow]int32
}

func (w *wire) send(packet *queue.Packet) {
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
	if out, fate := w.link.Send(now, int(packet.Bytes)); fate == queue.Passed {
		w.arrive(packet, out)
	} else {
		w.lost++
	}
	w.sent = append(w.sent, now)
	if due && !w.ahead {
		w.refer(stamp, now)
	}
}

func (w *wire) arrive(packet *queue.Packet, out int64) {
	number, ok := w.numbers[packet.Flow]
	if !ok {
		number = int32(len(w.flows))
		w.numbers[packet.Flow] = number
		w.flows = append(w.flows, flow{key: packet.Flow})
	}
	delay := out - packet.Time
	w.events = append(w.events, departure{number: int32(len(w.sent)), flow: number, bytes: packet.Bytes, out: out, delay: delay})
	w.flows[number].delays.Add(float64(delay))
	w.all.Add(float64(delay))
}

// refer sends a reference or a probe.
func (w *wire) refer(stamp rli.ReferencePacket, now int64) {
	if out, fate := w.link.Send(now, referenceBytes); fate == queue.Passed {
		w.events = append(w.events, departure{flow: -1, bytes: referenceBytes, stamp: int32(len(w.stamps)), out: out, delay: out - now})
		w.stamps = append(w.stamps, stamp)
	}
}
