package queue

import (
	"math"
	"math/rand/v2"

	"github.com/hoplag/hoplag/internal/heap"
)

// A JitterConfig sets how long packets take through a [Jitter].
type JitterConfig struct {
	Least   int64   // ns that every packet takes, 0 to 10^15
	Mean    float64 // mean ns beyond that, exponentially distributed, 0 to 10^12
	Reorder bool    // a packet may overtake others; otherwise it waits for those before it
	Seed    uint64
}

// A Jitter is a [Hop] that delays each packet independently at random, as a
// busy processor or a radio behind a queue does. It is for a single user and
// has no locks.
type Jitter struct {
	config JitterConfig
	random *rand.PCG
	now    int64
	latest int64 // when the latest packet comes out
	sent   uint64
	onWay  heap.Heap[underway]
}

// NewJitter returns an empty Jitter. The error wraps [estimate.ErrConfig].
func NewJitter(c JitterConfig) (*Jitter, error) {
	if c.Least < 0 || c.Least > maxTime {
		return nil, invalid("Least", c.Least, "0 to 10^15")
	}
	if !(c.Mean >= 0 && c.Mean <= 1e12) {
		return nil, invalid("Mean", c.Mean, "0 to 10^12")
	}
	return &Jitter{config: c, random: generator(c.Seed, 'J'), now: math.MinInt64, latest: math.MinInt64}, nil
}

// Send implements [Hop].
func (j *Jitter) Send(p *Packet) Fate {
	if p.Time < j.now {
		return Refused
	}
	j.now = p.Time
	out := *p
	out.Fate = Passed
	out.Time += j.config.Least + int64(-j.config.Mean*math.Log(uniform(j.random)))
	if !j.config.Reorder {
		j.latest = max(j.latest, out.Time)
		out.Time = j.latest
	}
	j.onWay.Push(underway{out, j.sent})
	j.sent++
	return Passed
}

// Next implements [Hop].
func (j *Jitter) Next(until int64, p *Packet) bool {
	j.now = max(j.now, until)
	if len(j.onWay) == 0 || j.onWay[0].Time > until {
		return false
	}
	*p = j.onWay.Pop().Packet
	return true
}
