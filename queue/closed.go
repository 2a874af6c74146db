package queue

import (
	"math"
	"math/rand/v2"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/heap"
)

// A ClosedConfig describes senders that heed what becomes of their packets, as
// TCP does.
type ClosedConfig struct {
	Senders  int     // 1 to 2^20
	Bytes    int32   // of each packet, 1 to 2^31-1
	Return   int64   // ns from when a packet comes out, or is dropped, until its sender knows, 0 to 10^15
	Gap      int64   // ns between a sender's packets at least, 0 to 10^15
	Window   int     // the most packets that a sender has under way, 1 to 2^20
	Transfer float64 // packets of a transfer on average, geometrically distributed, 1 to 10^12; each is a flow
	Pause    float64 // ns between a sender's transfers on average, exponentially distributed, 0 to 10^12
	Start    int64   // ns
	Seed     uint64
}

func (c *ClosedConfig) validate() error {
	switch {
	case c.Senders < 1 || c.Senders > 1<<20:
		return invalid("Senders", c.Senders, "1 to 2^20")
	case c.Bytes < 1:
		return invalid("Bytes", c.Bytes, "1 to 2^31-1")
	case c.Return < 0 || c.Return > maxTime:
		return invalid("Return", c.Return, "0 to 10^15")
	case c.Gap < 0 || c.Gap > maxTime:
		return invalid("Gap", c.Gap, "0 to 10^15")
	case c.Window < 1 || c.Window > 1<<20:
		return invalid("Window", c.Window, "1 to 2^20")
	case !(c.Transfer >= 1 && c.Transfer <= 1e12):
		return invalid("Transfer", c.Transfer, "1 to 10^12")
	case !(c.Pause >= 0 && c.Pause <= 1e12):
		return invalid("Pause", c.Pause, "0 to 10^12")
	}
	return nil
}

// Closed is a [Source] of packets whose senders slow down. Each sends transfers
// one after another, with pauses between, and has no more packets of one under
// way than its window: of 2 at first, a packet more for each that arrives, once
// it was halved a packet more for each window that arrives. A packet that is
// dropped, lost or marked halves it, but not twice for packets that were sent
// before it was halved. Nothing is sent again. Single user, no locks.
//
//	for source.Next(&p) {
//		p.Time, p.Fate = link.Send(p.Time, int(p.Bytes))
//		p.Marked = link.Marked()
//		source.Tell(&p)
//	}
type Closed struct {
	config  ClosedConfig
	random  *rand.PCG
	senders []sender
	of      map[hashing.Flow]int32 // who sends a flow that is under way
	agenda  heap.Heap[occasion]
	noted   uint64
	begun   uint64 // flows
	sent    uint64 // packets
}

// A sender is one of a Closed's.
type sender struct {
	flow     hashing.Flow
	left     int64 // packets of the transfer that are still to be sent
	underway int
	window   float64
	steep    bool  // the window was never halved
	halved   int64 // when it last was
	free     int64 // when the next packet may be sent
	waking   bool  // there is an occasion for it
}

// An occasion is when a sender learns something, or may send.
type occasion struct {
	at     int64
	number uint64 // in the order that they were noted
	who    int32
	what   news
	sent   int64 // the packet that it is about
}

type news uint8

const (
	begins    news = iota // a transfer
	maySend               // another packet
	arrived               // a packet did
	congested             // a packet was dropped, lost or marked
)

// Before orders occasions by time, and then as they were noted.
func (o occasion) Before(p occasion) bool {
	return o.at < p.at || o.at == p.at && o.number < p.number
}

// NewClosed returns a source whose senders begin with a pause each. The error
// wraps [estimate.ErrConfig].
func NewClosed(c ClosedConfig) (*Closed, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	s := &Closed{config: c, random: generator(c.Seed, 'C'), senders: make([]sender, c.Senders), of: map[hashing.Flow]int32{}}
	for who := range s.senders {
		s.note(occasion{at: c.Start + s.pause(), who: int32(who), what: begins})
	}
	return s, nil
}

func (c *Closed) note(o occasion) {
	o.number = c.noted
	c.noted++
	c.agenda.Push(o)
}

func (c *Closed) pause() int64 { return int64(-c.config.Pause * math.Log(uniform(c.random))) }

// Next implements [Source]. It needs to know what became of all packets before:
// see Tell. It returns false while all senders wait to be told.
func (c *Closed) Next(p *Packet) bool {
	for len(c.agenda) > 0 {
		o := c.agenda.Pop()
		s := &c.senders[o.who]
		switch o.what {
		case begins:
			c.begin(s, o.who)
		case maySend:
			s.waking = false
		case arrived, congested:
			c.learn(s, &o)
		}
		if s.left == 0 && s.underway == 0 {
			delete(c.of, s.flow)
			c.note(occasion{at: o.at + c.pause(), who: o.who, what: begins})
			continue
		}
		sends := s.may(o.at)
		if sends {
			c.send(s, o.at, p)
		}
		if !s.waking && s.left > 0 && s.underway < int(s.window) {
			s.waking = true
			c.note(occasion{at: s.free, who: o.who, what: maySend})
		}
		if sends {
			return true
		}
	}
	return false
}

// begin begins a transfer.
func (c *Closed) begin(s *sender, who int32) {
	left := int64(1)
	if c.config.Transfer > 1 {
		left += int64(math.Log(uniform(c.random)) / math.Log1p(-1/c.config.Transfer))
	}
	flow := hashing.Flow(hashing.Word(c.config.Seed, c.begun))
	c.begun++
	c.of[flow] = who
	*s = sender{flow: flow, left: left, window: float64(min(2, c.config.Window)), steep: true, halved: math.MinInt64, free: s.free}
}

// learn lets a sender know what became of a packet.
func (c *Closed) learn(s *sender, o *occasion) {
	s.underway--
	switch {
	case o.what == arrived && s.steep:
		s.window++
	case o.what == arrived:
		s.window += 1 / s.window
	case o.sent >= s.halved:
		s.window, s.steep, s.halved = max(s.window/2, 1), false, o.at
	}
	s.window = min(s.window, float64(c.config.Window))
}

// may reports whether a sender may send at time t.
func (s *sender) may(t int64) bool { return s.left > 0 && s.underway < int(s.window) && t >= s.free }

// send makes *p the sender's next packet.
func (c *Closed) send(s *sender, t int64, p *Packet) {
	*p = Packet{Sent: t, Time: t, Flow: s.flow, ID: hashing.Word(^c.config.Seed, c.sent), Seq: c.sent, Bytes: c.config.Bytes}
	c.sent++
	s.left--
	s.underway++
	s.free = t + c.config.Gap
}

// Tell says what became of a packet: p.Fate, at p.Time, and whether it was
// p.Marked. Its sender knows when Return has passed. Every packet is told of
// once, in any order, and before the source's time has come to when its sender
// knows: behind a [Link], before the next call of Next. A packet of no flow that
// is under way is passed over.
func (c *Closed) Tell(p *Packet) {
	who, ok := c.of[p.Flow]
	if !ok {
		return
	}
	what := arrived
	if p.Fate != Passed || p.Marked {
		what = congested
	}
	c.note(occasion{at: p.Time + c.config.Return, who: who, what: what, sent: p.Sent})
}
