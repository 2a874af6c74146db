package queue

import (
	"fmt"
	"math"
)

// A Chain is a [Hop] made of hops, one after another. Next also returns the
// packets that later hops dropped and the wires between them lost, with their
// Fate, the Hop that did it and the time. These come out as soon as they are
// known, not in order of time with the rest. A Chain is for a single user and
// has no locks.
//
// Cross traffic can join at any hop, and leaves after it. At equal times the
// packets from the hop before go first.
type Chain struct {
	hops   []Hop
	cross  []crossing // by hop
	now    int64
	inside int // packets sent that have not come out, without cross traffic
	drops  ring[Packet]
	moving Packet // moves from one hop to the next; kept here to avoid allocating it
}

// crossing is the cross traffic that joins at one hop.
type crossing struct {
	source Source
	head   Packet // its next packet
}

// NewChain returns a chain of hops, 1 to 255 of them. The hops belong to the
// chain from then on. The error wraps [estimate.ErrConfig].
func NewChain(hops ...Hop) (*Chain, error) {
	if len(hops) < 1 || len(hops) > 255 {
		return nil, invalid("number of hops", len(hops), "1 to 255")
	}
	return &Chain{hops: hops, cross: make([]crossing, len(hops)), now: math.MinInt64}, nil
}

// Join lets the packets of a source into a hop, counted from 0, that has no
// cross traffic yet. Call it before the first Send. The source may be endless.
// The error wraps [estimate.ErrConfig].
func (c *Chain) Join(hop int, source Source) error {
	if hop < 0 || hop >= len(c.hops) {
		return invalid("hop", hop, fmt.Sprintf("0 to %d", len(c.hops)-1))
	}
	x := &c.cross[hop]
	if x.source != nil {
		return invalid("hop", hop, "one without cross traffic")
	}
	x.source = source
	x.advance()
	return nil
}

// advance takes the source's next packet. It drops a source that has ended.
func (x *crossing) advance() {
	if x.head = (Packet{}); !x.source.Next(&x.head) {
		x.source = nil
	}
	x.head.cross = true
}

// join sends a hop the cross traffic that arrives before t.
func (c *Chain) join(hop int, t int64) {
	x := &c.cross[hop]
	for x.source != nil && x.head.Time < t {
		c.hops[hop].Send(&x.head)
		x.advance()
	}
}

// run moves packets from hop to hop up to time t.
func (c *Chain) run(t int64) {
	c.now = t
	p := &c.moving
	for i, hop := range c.hops {
		for i > 0 && c.hops[i-1].Next(t, p) {
			if p.cross {
				continue
			}
			if p.Fate != Passed {
				p.Hop = uint8(i - 1)
				c.drops.push(*p)
				continue
			}
			c.join(i, p.Time)
			if fate := hop.Send(p); fate != Passed {
				p.Fate, p.Hop = fate, uint8(i)
				c.drops.push(*p)
			}
		}
		c.join(i, t)
	}
}

// Send implements [Hop]. The fate is that at the first hop.
func (c *Chain) Send(p *Packet) Fate {
	if p.Time < c.now {
		return Refused
	}
	c.run(p.Time)
	fate := c.hops[0].Send(p)
	if fate == Passed {
		c.inside++
	}
	return fate
}

// firstStep is how far, in ns, Next first looks ahead while packets are
// inside. The step doubles while none comes out.
const firstStep = 100_000

// Next implements [Hop]. It stops looking ahead when the last packet is out,
// so that endless cross traffic does not keep it forever.
func (c *Chain) Next(until int64, p *Packet) bool {
	last := len(c.hops) - 1
	for step := int64(firstStep); ; step *= 2 {
		if c.drops.len() > 0 {
			*p = *c.drops.front()
			c.drops.drop()
			c.inside--
			return true
		}
		for c.hops[last].Next(min(c.now, until), p) {
			if p.cross {
				continue
			}
			p.Hop = uint8(last)
			if p.Fate == Passed {
				p.Hop = uint8(last + 1)
			}
			c.inside--
			return true
		}
		if c.inside == 0 || c.now >= until {
			return false
		}
		if uint64(until)-uint64(c.now) <= uint64(step) { // the difference may not fit int64
			c.run(until)
		} else {
			c.run(c.now + step)
		}
	}
}
