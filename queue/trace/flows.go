package trace

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/hoplag/hoplag/queue"
)

// A FlowsConfig describes flows that begin at random, have heavy-tailed sizes, and send as TCP does: a window
// of packets back to back, then nothing until a round-trip time has passed since the first of them. The window
// begins at 2 packets and doubles every round until it first backs off or reaches its maximum; from then on it
// grows by one packet a round. Backing off happens by chance and halves the window. The loop is not closed:
// what the queue does to the packets changes nothing.
type FlowsConfig struct {
	Load  Load
	Sizes Mix
	// The number of packets of a flow is Pareto with this shape, above 0, cut to Least and Most (1 ≤ Least ≤
	// Most ≤ 2^20) and rounded down.
	Shape       float64
	Least, Most int
	RTT         float64 // mean round-trip time, ns, above 0; each flow's is uniform from half of it to three halves
	Access      int64   // rate at which a window is sent, bits per second, 1 to 10^15
	Window      int     // the largest, in packets, 1 to 2^20
	Backoff     float64 // probability that the window is halved after a round, 0 to 1
	// Warmup is how long before time 0 flows begin, ns, 0 to 10^15. Without it the load builds up from nothing.
	// NewFlows takes time in proportion to it.
	Warmup int64
	Seed   uint64
}

// DefaultFlows is traffic of a 10 Gb/s link in a data centre: mostly mice, a few elephants, round trips of 1
// ms. Set the load and the seed.
var DefaultFlows = FlowsConfig{
	Load:  Load{Rate: 10e9, Utilisation: 0.55},
	Sizes: IMIX,
	Shape: 1.2, Least: 2, Most: 10000,
	RTT: 1e6, Access: 10e9, Window: 64, Backoff: 0.02,
	Warmup: 50e6,
}

type flows struct {
	config FlowsConfig
	labels labels
	sizes  sizer
	random *rand.PCG
	counts packetCount
	gap    float64 // mean between beginnings, ns
	start  int64   // of the warm-up

	begins float64 // when the next flow begins, ns since start
	begun  uint64
	flows  []flow
	unused []int32 // places in flows
	agenda agenda  // when each flow sends next
}

type flow struct {
	number   uint64
	rtt      float64
	round    float64 // when this round began
	left     int32   // packets
	window   int32
	inRound  int32 // packets still to send in it
	avoiding bool  // past its first back-off: grows by one
}

// NewFlows returns an endless source of such flows that has completed the warm-up. Its memory grows with the
// number of current flows, which the load bounds, and is reused. It is not safe for concurrent use. The error
// wraps [estimate.ErrConfig].
func NewFlows(c FlowsConfig) (queue.Source, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	f := &flows{
		config: c,
		labels: labels{seed: c.Seed},
		sizes:  newSizer(c.Sizes, c.Seed),
		random: generator(c.Seed, 'w'),
		counts: newPacketCount(c.Least, c.Most, c.Shape),
		start:  -c.Warmup,
	}
	f.gap = c.Sizes.Mean() * f.counts.mean() / c.Load.bytesPerNS()
	if !(f.gap < maxGap) {
		return nil, invalid("Load", c.Load, fmt.Sprintf("more, or shorter flows: one would begin every %.3g ns", f.gap))
	}
	f.begins = f.gap * exponential(f.random)
	var p queue.Packet
	for f.due() < float64(c.Warmup) {
		f.Next(&p)
	}
	f.labels.sent = 0
	return f, nil
}

func (c FlowsConfig) validate() error {
	if err := c.Load.validate(); err != nil {
		return err
	}
	if err := c.Sizes.validate(); err != nil {
		return err
	}
	switch {
	case !(c.Shape > 0 && c.Shape < math.Inf(1)):
		return invalid("Shape", c.Shape, "over 0")
	case c.Least < 1 || c.Least > c.Most || c.Most > 1<<20:
		return invalid("Least", c.Least, fmt.Sprintf("1 to Most, %d, and that up to 2^20", c.Most))
	case !(c.RTT > 0 && c.RTT < 1e15):
		return invalid("RTT", c.RTT, "over 0 and below 10^15")
	case c.Access < 1 || c.Access > 1e15:
		return invalid("Access", c.Access, "1 to 10^15")
	case c.Window < 1 || c.Window > 1<<20:
		return invalid("Window", c.Window, "1 to 2^20")
	case !(c.Backoff >= 0 && c.Backoff <= 1):
		return invalid("Backoff", c.Backoff, "0 to 1")
	case c.Warmup < 0 || c.Warmup > 1e15:
		return invalid("Warmup", c.Warmup, "0 to 10^15")
	}
	return nil
}

// due returns when the next packet is sent, ns since start, once the flow it belongs to has begun.
func (f *flows) due() float64 {
	for len(f.agenda) == 0 || f.begins <= f.agenda[0].at {
		f.begin()
	}
	return f.agenda[0].at
}

// begin begins a flow.
func (f *flows) begin() {
	place := int32(len(f.flows))
	if n := len(f.unused); n > 0 {
		place = f.unused[n-1]
		f.unused = f.unused[:n-1]
	} else {
		f.flows = append(f.flows, flow{})
	}
	window := int32(min(2, f.config.Window))
	f.flows[place] = flow{
		number:  f.begun,
		rtt:     f.config.RTT * (0.5 + uniform(f.random)),
		round:   f.begins,
		left:    f.counts.draw(f.random),
		window:  window,
		inRound: window,
	}
	f.agenda.Push(event{at: f.begins, who: place})
	f.begun++
	f.begins += f.gap * exponential(f.random)
}

// Next implements [queue.Source]; it always returns true.
func (f *flows) Next(p *queue.Packet) bool {
	now := f.due()
	place := f.agenda[0].who
	w := &f.flows[place]
	bytes := f.sizes.draw()
	f.labels.fill(p, f.start+int64(now), w.number, bytes)
	w.left--
	w.inRound--
	if w.left == 0 {
		f.unused = append(f.unused, place)
		f.agenda.Pop()
		return true
	}
	sent := now + float64(bytes)*8e9/float64(f.config.Access)
	if w.inRound == 0 {
		sent = max(sent, w.round+w.rtt)
		w.round = sent
		f.adapt(w)
	}
	f.agenda.Replace(event{at: sent, who: f.agenda[0].who})
	return true
}

// adapt sets a flow's window for the next round.
func (f *flows) adapt(w *flow) {
	most := int32(f.config.Window)
	switch {
	case uniform(f.random) < f.config.Backoff:
		w.window, w.avoiding = max(w.window/2, 1), true
	case w.avoiding:
		w.window = min(w.window+1, most)
	default:
		w.window = min(2*w.window, most)
	}
	w.inRound = w.window
}

// A packetCount is the distribution of a flow's number of packets: a Pareto variable cut to [least, most+1) and
// rounded down.
type packetCount struct {
	least, most int
	shape       float64
	beyond      float64 // P(X ≥ most+1) before the cut
}

func newPacketCount(least, most int, shape float64) packetCount {
	return packetCount{
		least: least, most: most, shape: shape,
		beyond: math.Pow(float64(most+1)/float64(least), -shape),
	}
}

func (c packetCount) draw(r *rand.PCG) int32 {
	tail := c.beyond + uniform(r)*(1-c.beyond)
	n := float64(c.least) * math.Pow(tail, -1/c.shape)
	return int32(min(max(int(n), c.least), c.most))
}

// mean returns the expected number, the sum of P(N ≥ n) over n.
func (c packetCount) mean() float64 {
	sum := float64(c.least)
	for n := c.most; n > c.least; n-- {
		sum += (math.Pow(float64(n)/float64(c.least), -c.shape) - c.beyond) / (1 - c.beyond)
	}
	return sum
}
