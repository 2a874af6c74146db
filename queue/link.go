package queue

import (
	"math"
	"math/rand/v2"

	"github.com/hoplag/hoplag/estimate"
)

// A LinkConfig describes a link and the queue before it.
type LinkConfig struct {
	Rate  int64       // drain rate, bits per second, 1,000 to 10^15
	Queue QueueConfig // which packets may join the queue; the zero value: all
	Seed  uint64      // for RED

	// Burst makes the link a shaper: a token bucket of this many bytes, full at first, that fills at Rate. A
	// packet leaves as soon as all packets before it have left and the bucket holds as many bytes as it has.
	// Sending it takes no time. A packet larger than the bucket is Refused. 0 to 2^31-1; 0 means a link.
	Burst int32
}

// RLIConfig is the queue of RLI's evaluation (section IV-A): RED with room for 10,000 packets, thresholds 4,000
// and 9,000, weight 0.002, drop probability up to 1/50, before a link of 10 Gb/s. The paper sets the
// utilisation by the drain rate. It does not give the packet size for idle times; 125 bytes is the average from
// which it sizes the queue.
var RLIConfig = LinkConfig{
	Rate: 10e9,
	Queue: QueueConfig{
		Packets: 10000,
		RED:     REDConfig{Min: 4000, Max: 9000, Weight: 0.002, Probability: 1.0 / 50, Typical: 125},
	},
}

// invalid returns the error for a field out of range.
func invalid(field string, got any, want string) error {
	return estimate.Invalid("queue", field, got, want)
}

func (c LinkConfig) validate() error {
	if c.Rate < 1000 || c.Rate > 1e15 {
		return invalid("Rate", c.Rate, "1000 to 10^15")
	}
	if c.Burst < 0 {
		return invalid("Burst", c.Burst, "0 to 2^31-1")
	}
	return c.Queue.validate()
}

// A Link is a first-come, first-served link. It is work-conserving unless it is a shaper. Send allocates only
// when the backlog is longer than ever before. A Link is not safe for concurrent use, and the zero value
// panics.
type Link struct {
	gate    gate
	server  server
	now     int64   // the latest arrival
	leaving []int64 // of the backlog, from head on: the first whole ns at which each has completely left
	head    int
}

// NewLink returns an idle link. The error wraps [estimate.ErrConfig].
func NewLink(c LinkConfig) (*Link, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &Link{gate: newGate(c.Queue, c.Rate, c.Seed), server: newServer(c.Rate, c.Burst), now: math.MinInt64}, nil
}

// Send puts a packet into the link's queue at time t. It returns when the packet's last bit has left, or t if
// it was dropped, and its fate. Times must not decrease. A packet earlier than the one before it, or of less
// than one byte, is Refused and changes nothing.
func (l *Link) Send(t int64, bytes int) (egress int64, fate Fate) {
	if t < l.now || bytes < 1 || uint64(bytes) > l.server.largest() {
		return t, Refused
	}
	l.settle(t)
	fate = l.gate.admit(t, l.backlog())
	if fate != Passed {
		if l.backlog() == 0 {
			l.gate.idle(t, 0)
		}
		return t, fate
	}
	done, gone := l.server.serve(t, int32(bytes))
	l.leaving = append(l.leaving, gone)
	return done, Passed
}

func (l *Link) backlog() int { return len(l.leaving) - l.head }

// settle brings the backlog to time t.
func (l *Link) settle(t int64) {
	l.now = t
	for l.backlog() > 0 && l.leaving[l.head] <= t {
		if l.head++; l.backlog() == 0 {
			l.gate.idle(l.server.emptied())
		}
	}
	if 2*l.head >= len(l.leaving) { // no more are moved than have left
		l.leaving, l.head = l.leaving[:copy(l.leaving, l.leaving[l.head:])], 0
	}
}

// generator returns the generator for one purpose of an element.
func generator(seed, purpose uint64) *rand.PCG {
	return rand.NewPCG(seed, purpose)
}

// uniform returns a number in (0, 1), never 0 and never 1.
func uniform(r *rand.PCG) float64 {
	return (float64(r.Uint64()>>11) + 0.5) / (1 << 53)
}
