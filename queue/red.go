package queue

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// A QueueConfig says which packets may join a queue.
type QueueConfig struct {
	Packets int       // largest number of packets, 0: no limit
	RED     REDConfig // random early detection; the zero value: drop-tail alone
}

// A REDConfig sets random early detection. Names in parentheses are those of the 1993 paper.
type REDConfig struct {
	Min, Max    float64 // thresholds of the average (min_th, max_th), in packets, 0 ≤ Min < Max
	Weight      float64 // of a new backlog in the average (w_q), above 0, at most 1
	Probability float64 // of a drop as the average reaches Max (max_p), above 0, at most 1
	// Typical is the size in bytes of the packets that could have been sent while the queue was empty, at least
	// 1. The average decays once for each of them (the paper's s is the transmission time of one).
	Typical int
}

func (c QueueConfig) validate() error {
	r := &c.RED
	switch {
	case c.Packets < 0:
		return invalid("Queue.Packets", c.Packets, "0 (no limit) or more")
	case *r == REDConfig{}:
		return nil
	case !(r.Min >= 0 && r.Min < math.Inf(1)):
		return invalid("RED.Min", r.Min, "0 or more")
	case !(r.Max > r.Min && r.Max < math.Inf(1)):
		return invalid("RED.Max", r.Max, fmt.Sprintf("more than Min, %v", r.Min))
	case !(r.Weight > 0 && r.Weight <= 1):
		return invalid("RED.Weight", r.Weight, "over 0, up to 1")
	case !(r.Probability > 0 && r.Probability <= 1):
		return invalid("RED.Probability", r.Probability, "over 0, up to 1")
	case r.Typical < 1 || r.Typical > math.MaxInt32:
		return invalid("RED.Typical", r.Typical, "1 to 2^31-1")
	}
	return nil
}

// A gate decides which packets join a queue.
type gate struct {
	limit int // 0: no limit
	red   bool

	config    REDConfig
	typical   float64 // ns to transmit config.Typical bytes (s)
	logKeep   float64 // ln(1-Weight)
	random    *rand.PCG
	average   float64 // of the backlog (avg)
	since     int     // packets since the last drop, -1 below Min (count)
	emptiedAt int64   // when the queue last fell empty (q_time),
	part      float64 // plus this fraction of a ns
}

func newGate(c QueueConfig, rate int64, seed uint64) gate {
	g := gate{limit: c.Packets, since: -1}
	if c.RED != (REDConfig{}) {
		g.red, g.config = true, c.RED
		g.typical = float64(c.RED.Typical) * 8e9 / float64(rate)
		g.logKeep = math.Log1p(-c.RED.Weight)
		g.random = generator(seed, 'R')
	}
	return g
}

// idle records that the queue is empty from t, plus a fraction of a ns.
func (g *gate) idle(t int64, part float64) { g.emptiedAt, g.part = t, part }

// admit decides about a packet that arrives at time t to a backlog.
func (g *gate) admit(t int64, backlog int) Fate {
	if g.red {
		if fate := g.early(t, float64(backlog), backlog == 0); fate != Passed {
			return fate
		}
	}
	if g.limit > 0 && backlog >= g.limit {
		return Full
	}
	return Passed
}

// early is RED: figure 2 of the 1993 paper.
func (g *gate) early(t int64, backlog float64, empty bool) Fate {
	if empty {
		// As if m packets had come to an empty queue while it was idle: avg ← (1-w_q)^m·avg. If the packet that
		// ended the idle time is dropped, the paper does not restart it, and would count it twice; the caller
		// of idle restarts it.
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
	// Count-corrected: drops are spread evenly instead of clustered, since with p_a = p_b/(1-count·p_b) the
	// gaps between them are uniform.
	g.since++
	left := 1 - float64(g.since)*chance // nothing left: drop whatever is drawn
	if uniform(g.random)*left < chance {
		g.since = 0
		return Early
	}
	return Passed
}

// chance returns the drop probability for an average of Min or more, before the correction by count (p_b). It
// is 1 if every packet is dropped.
func (g *gate) chance() float64 {
	c := &g.config
	if g.average >= c.Max {
		return 1
	}
	return c.Probability * (g.average - c.Min) / (c.Max - c.Min)
}
