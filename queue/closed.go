package queue

import (
	"math"
	"math/rand/v2"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/heap"
)

// A ClosedConfig describes senders that react to what becomes of their
// packets, as TCP does.
type ClosedConfig struct {
	Senders  int     // 1 to 2^20
	Bytes    int32   // of each packet, 1 to 2^31-1
	Return   int64   // ns until a sender learns that its packet came out, or was dropped, 0 to 10^15
	Gap      int64   // smallest distance of a sender's packets in ns, 0 to 10^15
	Window   int     // largest number of a sender's packets on their way, 1 to 2^20
	Transfer float64 // mean packets in a transfer, geometrically distributed, 1 to 10^12; each transfer is a flow
	Pause    float64 // mean ns between a sender's transfers, exponentially distributed, 0 to 10^12
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

// Closed is a [Source] of packets whose senders slow down. Each sends one
// transfer after another, with pauses between. It has no more packets of a
// transfer on their way than its window. The window starts at 2 and grows by a
// packet for each packet that arrives; once it has been halved, it grows by a
// packet for each window that arrives. A packet that is dropped, lost or
// marked halves the window, but packets sent before the latest halving do not
// halve it again. Nothing is sent again. A Closed is for a single user and has
// no locks.
type Closed struct {
	config  ClosedConfig
	random  *rand.PCG
	senders []sender
	of      map[hashing.Flow]int32 // the sender of each current flow
	agenda  heap.Heap[occasion]
	noted   uint64
	begun   uint64 // flows
	sent    uint64 // packets
}

// A sender is one sender of a Closed.
type sender struct {
	flow     hashing.Flow
	left     int64 // packets of the transfer still to be sent
	underway int
	window   float64
	steep    bool  // the window was never halved
	halved   int64 // when it was last halved
	free     int64 // when the next packet may be sent
	waking   bool  // it has a pending occasion
}

// An occasion is a time at which a sender learns something, or may send.
type occasion struct {
	at     int64
	number uint64 // in the order in which they were recorded
	who    int32
	what   news
	sent   int64 // when its packet was sent
}

type news uint8

const (
	begins    news = iota // a transfer begins
	maySend               // another packet may be sent
	arrived               // a packet arrived
	congested             // a packet was dropped, lost or marked
)

// Before orders occasions by time, and then in the order in which they were
// recorded.
func (o occasion) Before(p occasion) bool {
	return o.at < p.at || o.at == p.at && o.number < p.number
}

// NewClosed returns a source whose senders each begin with a pause. The error
// wraps [estimate.ErrConfig].
func NewClosed(c ClosedConfig) (*Closed, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	s := &Closed{config: c, random: generator(c.Seed, 'C'), senders: make([]sender, c.Senders), of: map[hashing.Flow]int32{}}
	for who := range s.senders {
		s.note(occasion{at: s.pause(), who: int32(who), what: begins})
	}
	return s, nil
}

func (c *Closed) note(o occasion) {
	o.number = c.noted
	c.noted++
	c.agenda.Push(o)
}

func (c *Closed) pause() int64 { return int64(-c.config.Pause * math.Log(uniform(c.random))) }

// Next implements [Source]. It must know what became of all earlier packets:
// see Tell. It returns false while all senders wait for Tell.
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

// learn informs a sender of what became of a packet.
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

// Tell reports what became of a packet: p.Fate, at p.Time, and whether it was
// p.Marked. Its sender learns this after Return. Report every packet once, in
// any order, before the source's time reaches the moment when its sender
// learns: behind a [Link], before the next call of Next. Tell ignores a packet
// of an unknown flow.
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
