// Package flowsim provides traffic for experiments that measure delay per flow: an interval of flows of very
// different sizes, in which a packet's delay is independent of its neighbours in time. It imitates the trace on
// which section 5 of the LDS paper was measured (J. Sanjuàs-Cuxart, P. Barlet-Ros, N. Duffield and R. Kompella,
// IMC 2011), which was not published.
//
// Sizes are Pareto from one packet on, cut off at the size at which they add up to the requested number of
// packets. A delay has two modes, as in Fig. 8 of that paper: a fast path, at 200 µs in the median of the
// flows, and a slow one, at 800 µs. The modes of a flow are log-normal around these, 30 % apart. Each packet
// takes one of the two, independently. Three flows of five take the slow one for 5 to 15 % of their packets,
// the others for 85 to 95 %. An exponential delay of 30 µs on average is added. A flow begins at any time, and
// sends its packets at even distances for 20 s on average (exponential), or until the interval ends.
//
// A Traffic holds its flows but not their packets, which are drawn again, always the same ones, each time they
// are requested. It is read-only after New, and several goroutines may use it.
package flowsim

import (
	"iter"
	"math"
	"math/rand/v2"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// The modes of delays, in ns and fractions.
const (
	fastDelay  = 200e3 // in the median of the flows
	slowDelay  = 800e3
	apart      = 0.3 // deviation of the logarithms of modes, over flows
	jitter     = 30e3
	rarely     = 0.05 // least fraction of packets that take a flow's rarer path
	sometimes  = 0.15 // greatest fraction
	slowFlows  = 0.4  // fraction of flows for which that is the fast path
	flowLength = 20.0 // seconds, on average
)

// A Config says how much traffic there is.
type Config struct {
	Flows   int     // 1 to 2^31 - 1
	Packets int     // of all flows together, at least Flows; see Traffic.Packets
	Shape   float64 // of the Pareto distribution of sizes, above 0
	Seconds float64 // length of the interval, above 0
	Seed    uint64  // of everything random, including keys
}

// Paper is the scale of the LDS paper: its inbound trace, and the shape that
// its section 3 fits to it. Set the seed.
var Paper = Config{Flows: 146_000, Packets: 7_760_000, Shape: 0.8, Seconds: 287}

// Scaled returns a Config with this fraction of the flows and packets, in an interval of the same length.
func (c Config) Scaled(part float64) Config {
	c.Flows = int(math.Round(part * float64(c.Flows)))
	c.Packets = int(math.Round(part * float64(c.Packets)))
	return c
}

// A Flow is one flow of the interval.
type Flow struct {
	Key  hashing.Flow
	Size int // packets

	Mean float64 // the truth over all its packets, ns

	Start, Gap         float64 // of its packets, seconds
	fast, slow, slowly float64 // modes in ns, and the fraction of the slow one
	seed, index        uint64
}

// A Packet is one packet of a flow.
type Packet struct {
	ID    hashing.Packet
	Sent  int64 // ns from the beginning of the interval
	Delay int64 // ns
}

// Traffic holds the flows of an interval.
type Traffic struct {
	Config Config // it was made with this
	Flows  []Flow

	// Packets is the number of packets. It is below the Config's by less than
	// one for each flow that is cut off, or by more if none is.
	Packets int
	Cut     int     // packets of the largest flow possible
	Mean    float64 // delay of all packets, ns
}

// New makes the traffic of a Config.
func New(c Config) *Traffic {
	random := rand.New(rand.NewPCG(c.Seed, 1))
	sizes := make([]float64, c.Flows)
	for i := range sizes {
		sizes[i] = math.Pow(1-random.Float64(), -1/c.Shape)
	}
	t := &Traffic{Config: c, Flows: make([]Flow, c.Flows), Cut: cut(sizes, c.Packets)}
	var total float64
	for i := range t.Flows {
		f := &t.Flows[i]
		f.seed, f.index = c.Seed, uint64(i)
		f.Key = hashing.Flow(hashing.Word(c.Seed, f.index))
		f.Size = int(min(sizes[i], float64(t.Cut)))
		f.fast = fastDelay * math.Exp(apart*random.NormFloat64())
		f.slow = slowDelay * math.Exp(apart*random.NormFloat64())
		f.slowly = rarely + (sometimes-rarely)*random.Float64()
		if random.Float64() < slowFlows {
			f.slowly = 1 - f.slowly
		}
		f.Gap = min(random.ExpFloat64()*flowLength, c.Seconds) / float64(f.Size)
		f.Start = random.Float64() * (c.Seconds - f.Gap*float64(f.Size))
		var delays estimate.Moments
		for p := range f.Packets() {
			delays.Add(float64(p.Delay))
		}
		f.Mean = delays.Mean()
		t.Packets += f.Size
		total += f.Mean * float64(f.Size)
	}
	t.Mean = total / float64(t.Packets)
	return t
}

// cut returns the largest size of a flow at which all flows together have at most the given number of packets.
func cut(sizes []float64, packets int) int {
	low, high := 1, 1<<31-1 // packets of a flow: fit, and do not
	for high-low > 1 {
		middle := low + (high-low)/2
		sum := 0.0
		for _, x := range sizes {
			sum += math.Floor(min(x, float64(middle)))
		}
		if sum > float64(packets) {
			high = middle
		} else {
			low = middle
		}
	}
	return low
}

// A cursor draws a flow's packets, one after another.
type cursor struct {
	flow   *Flow
	random *rand.Rand
	sent   int // packets
}

func (f *Flow) cursor() cursor {
	return cursor{flow: f, random: rand.New(rand.NewPCG(f.seed, f.index+2))}
}

// next returns the flow's next packet. There is one while more says so.
func (c *cursor) next() Packet {
	f := c.flow
	mode := f.fast
	if c.random.Float64() < f.slowly {
		mode = f.slow
	}
	p := Packet{
		ID:    hashing.Word(^f.seed, f.index<<32|uint64(c.sent)),
		Sent:  int64(1e9 * (f.Start + float64(c.sent)*f.Gap)),
		Delay: int64(mode + jitter*c.random.ExpFloat64()),
	}
	c.sent++
	return p
}

func (c *cursor) more() bool { return c.sent < c.flow.Size }

// Packets returns the packets of the flow, in the order in which they are sent.
func (f *Flow) Packets() iter.Seq[Packet] {
	return func(yield func(Packet) bool) {
		for c := f.cursor(); c.more(); {
			if !yield(c.next()) {
				return
			}
		}
	}
}
