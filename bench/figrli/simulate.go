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

// simulate sends packets through the queue. step, if not nil, is called now and
// then, and ends it with its error.
func simulate(run *experiment.Run, s setting, step func() error) (*passage, error) {
	source, err := s.kind.source(run, s.utilisation)
	if err != nil {
		return nil, err
	}
	link, err := queue.NewLink(queue.RLIConfig)
	if err != nil {
		return nil, err
	}
	var injector *rli.Injector
	if s.injector != (rli.InjectorConfig{}) {
		if injector, err = rli.NewInjector(s.injector); err != nil {
			return nil, err
		}
	}
	random := run.Rand("probes")
	p := &passage{sent: make([]int64, 0, s.packets), events: make([]departure, 0, s.packets*11/10)}
	numbers := map[hashing.Flow]int32{}
	next := math.Inf(1) // probe
	refer := func(stamp rli.ReferencePacket, now int64) {
		if out, fate := link.Send(now, referenceBytes); fate == queue.Passed {
			p.events = append(p.events, departure{flow: -1, bytes: referenceBytes, stamp: int32(len(p.stamps)), out: out, delay: out - now})
			p.stamps = append(p.stamps, stamp)
		}
	}
	var packet queue.Packet
	for i := 0; i < s.packets && source.Next(&packet); i++ {
		if i%(1<<14) == 0 && step != nil {
			if err := step(); err != nil {
				return nil, err
			}
		}
		now := packet.Time
		if i == 0 && s.probes > 0 {
			next = float64(now) + random.ExpFloat64()*s.probes
		}
		for next < float64(now) {
			refer(rli.ReferencePacket{}, int64(next))
			next += random.ExpFloat64() * s.probes
		}
		var stamp rli.ReferencePacket
		due := false
		if injector != nil {
			stamp, due = injector.Packet(int(packet.Bytes), now)
		}
		if due && s.ahead {
			stamp.Behind = 0
			refer(stamp, now)
		}
		p.sent = append(p.sent, now)
		if out, fate := link.Send(now, int(packet.Bytes)); fate == queue.Passed {
			number, ok := numbers[packet.Flow]
			if !ok {
				number = int32(len(p.flows))
				numbers[packet.Flow] = number
				p.flows = append(p.flows, flow{key: packet.Flow})
			}
			p.events = append(p.events, departure{number: int32(i), flow: number, bytes: packet.Bytes, out: out, delay: out - now})
			p.flows[number].delays.Add(float64(out - now))
			p.all.Add(float64(out - now))
		} else {
			p.lost++
		}
		if due && !s.ahead {
			refer(stamp, now)
		}
	}
	if injector != nil {
		p.cost = injector.Overhead()
	}
	return p, nil
}
