package queue

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/hoplag/hoplag/estimate"
)

// A QueueConfig says which packets may join a queue. The unit of its backlog,
// and so of RED's thresholds and average, is bytes if Bytes is set, else
// packets.
type QueueConfig struct {
	Packets int       // the most packets, 0: no limit
	Bytes   int64     // the most bytes, 0: no limit; not both
	RED     REDConfig // random early detection; the zero value: drop-tail alone
}

// A REDConfig sets random early detection. Names in parentheses are the 1993
// paper's.
type REDConfig struct {
	Min, Max    float64 // thresholds of the average (min_th, max_th), in the queue's unit, 0 ≤ Min < Max
	Weight      float64 // of a new backlog in the average (w_q), over 0, at most 1
	Probability float64 // of a drop as the average comes to Max (max_p), over 0, at most 1
	// Typical is the size in bytes of the packets that could have been sent
	// while the queue was empty, at least 1: the average decays once for each
	// (the paper's s is its transmission time).
	Typical int
	// Gentle lets the drop probability rise from Probability to 1 between Max
	// and 2·Max, where the paper drops every packet above Max.
	Gentle bool
}

func (c QueueConfig) validate() error {
	if c.Packets < 0 || c.Bytes < 0 {
		return fmt.Errorf("%w: queue of %d packets, %d bytes, want 0 (no limit) or more", estimate.ErrConfig, c.Packets, c.Bytes)
	}
	if c.Packets > 0 && c.Bytes > 0 {
		return fmt.Errorf("%w: queue limited both to %d packets and to %d bytes, want one", estimate.ErrConfig, c.Packets, c.Bytes)
	}
	if c.RED == (REDConfig{}) {
		return nil
	}
	r := c.RED
	if !(r.Min >= 0 && r.Min < r.Max && r.Max < math.Inf(1)) {
		return fmt.Errorf("%w: RED thresholds %v and %v, want 0 ≤ Min < Max", estimate.ErrConfig, r.Min, r.Max)
	}
	if !(r.Weight > 0 && r.Weight <= 1) {
		return fmt.Errorf("%w: RED weight %v, want over 0 and at most 1", estimate.ErrConfig, r.Weight)
	}
	if !(r.Probability > 0 && r.Probability <= 1) {
		return fmt.Errorf("%w: RED probability %v, want over 0 and at most 1", estimate.ErrConfig, r.Probability)
	}
	if r.Typical < 1 || r.Typical > math.MaxInt32 {
		return fmt.Errorf("%w: RED typical packet of %d bytes, want 1 to 2^31-1", estimate.ErrConfig, r.Typical)
	}
	return nil
}

// A gate decides which packets join a queue.
type gate struct {
	limit   int64 // in units; MaxInt64 where there is none
	inBytes bool
	red     bool

	config    REDConfig
	typical   float64 // ns to transmit config.Typical bytes (s)
	logKeep   float64 // ln(1-Weight)
	random    *rand.PCG
	average   float64 // of the backlog (avg)
	since     int     // packets since the last drop, -1 below Min (count)
	emptiedAt int64   // when the queue last fell empty (q_time),
	part      float64 // and this part of a ns later
}

func newGate(c QueueConfig, rate int64, seed uint64) gate {
	g := gate{limit: math.MaxInt64, since: -1}
	switch {
	case c.Packets > 0:
		g.limit = int64(c.Packets)
	case c.Bytes > 0:
		g.limit, g.inBytes = c.Bytes, true
	}
	if c.RED != (REDConfig{}) {
		g.red, g.config = true, c.RED
		g.typical = float64(c.RED.Typical) * 8e9 / float64(rate)
		g.logKeep = math.Log1p(-c.RED.Weight)
		g.random = generator(seed, 'R')
	}
	return g
}

// idle notes that the queue is empty as of t, and a part of a ns.
func (g *gate) idle(t int64, part float64) { g.emptiedAt, g.part = t, part }

// admit decides about a packet that arrives at time t to a backlog of so many
// packets and bytes.
func (g *gate) admit(t int64, packets int, bytes int64, size int32) Fate {
	backlog, room := int64(packets), int64(1)
	if g.inBytes {
		backlog, room = bytes, int64(size)
	}
	if g.red {
		if fate := g.early(t, float64(backlog), packets == 0); fate != Passed {
			return fate
		}
	}
	if backlog > g.limit-room {
		return Full
	}
	return Passed
}

// early is RED: figure 2 of the 1993 paper.
func (g *gate) early(t int64, backlog float64, empty bool) Fate {
	if empty {
		// As if m packets had come to an empty queue while it was idle:
		// avg ← (1-w_q)^m·avg. The paper does not start the idle time afresh
		// when the packet that ended it is dropped, and would count it twice;
		// whoever calls idle does.
		if m := (float64(t-g.emptiedAt) - g.part) / g.typical; g.average > 0 && m > 0 {
			g.average *= math.Exp(m * g.logKeep)
		}
	} else {
		g.average += g.config.Weight * (backlog - g.average)
	}
	if g.average < g.config.Min {
		g.since = -1
		return Passed
	}
	chance := g.chance()
	if chance >= 1 {
		g.since = 0
		return Forced
	}
	// Count-corrected: drops are spread evenly instead of clustered, since
	// with p_a = p_b/(1-count·p_b) the gaps between them are uniform.
	g.since++
	left := 1 - float64(g.since)*chance // none left: drop whatever is drawn
	if uniform(g.random)*left < chance {
		g.since = 0
		return Early
	}
	return Passed
}

// chance is the drop probability, from Min up, before the correction by count
// (p_b): 1 where every packet is dropped.
func (g *gate) chance() float64 {
	c := &g.config
	switch avg := g.average; {
	case avg < c.Max:
		return c.Probability * (avg - c.Min) / (c.Max - c.Min)
	case c.Gentle && avg < 2*c.Max:
		return c.Probability + (1-c.Probability)*(avg-c.Max)/c.Max
	}
	return 1
}
