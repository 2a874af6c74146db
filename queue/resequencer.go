package queue

import (
	"math"
	"math/bits"
)

// A ResequencerConfig limits how long a [Resequencer] waits to restore order.
type ResequencerConfig struct {
	// Window is the number of sequence numbers it holds, from the one it waits
	// for: 1 to 2^20. A packet beyond the window pushes it on.
	Window int
	// Timeout is how long it waits, in ns, before it takes the missing packets
	// for lost: 0 to 10^15. The wait begins when a packet is first held back,
	// and restarts whenever one is released.
	Timeout int64
}

// A Resequencer is a [Hop] that puts packets back in the order of their Seq.
// It never lets them out of order: it drops a packet that comes after its
// successors were released, or a duplicate, as Late. A lost packet delays its
// successors by up to Timeout. A Resequencer is for a single user and has no
// locks.
type Resequencer struct {
	slots    []held // by Seq; their number is a power of two
	window   uint64
	timeout  int64
	waitsFor uint64 // the Seq to release next
	holding  int
	deadline int64 // of the wait, while holding
	now      int64
	out      ring[Packet]
	counts   Counts
}

type held struct {
	packet Packet
	here   bool
}

// NewResequencer returns a Resequencer that waits for Seq 0. The error wraps
// [estimate.ErrConfig].
func NewResequencer(c ResequencerConfig) (*Resequencer, error) {
	if c.Window < 1 || c.Window > 1<<20 {
		return nil, invalid("Window", c.Window, "1 to 2^20")
	}
	if c.Timeout < 0 || c.Timeout > maxTime {
		return nil, invalid("Timeout", c.Timeout, "0 to 10^15")
	}
	return &Resequencer{
		slots:   make([]held, 1<<bits.Len(uint(c.Window-1))),
		window:  uint64(c.Window),
		timeout: c.Timeout,
		now:     math.MinInt64,
	}, nil
}

// Send implements [Hop].
func (r *Resequencer) Send(p *Packet) Fate {
	if p.Time < r.now {
		r.counts.add(Refused, 0)
		return Refused
	}
	r.expire(p.Time)
	slot := r.slot(p.Seq)
	if p.Seq < r.waitsFor || p.Seq == slot.packet.Seq && slot.here {
		r.counts.add(Late, p.Bytes)
		return Late
	}
	r.counts.add(Passed, p.Bytes)
	before := r.waitsFor
	r.makeRoom(p)
	slot.packet, slot.here = *p, true
	slot.packet.Fate = Passed
	if r.holding++; r.holding == 1 {
		r.deadline = p.Time + r.timeout
	}
	r.release(p.Time)
	if r.waitsFor != before {
		r.deadline = p.Time + r.timeout
	}
	return Passed
}

// Next implements [Hop].
func (r *Resequencer) Next(until int64, p *Packet) bool {
	r.expire(max(until, r.now))
	return next(&r.out, until, p)
}

// Counts returns what became of the packets sent so far.
func (r *Resequencer) Counts() Counts { return r.counts }

func (r *Resequencer) slot(seq uint64) *held {
	return &r.slots[seq&uint64(len(r.slots)-1)]
}

// makeRoom pushes the window on until p is in it.
func (r *Resequencer) makeRoom(p *Packet) {
	for p.Seq-r.waitsFor >= r.window {
		if r.holding == 0 {
			r.waitsFor = p.Seq - r.window + 1
			return
		}
		if r.slot(r.waitsFor).here {
			r.release(p.Time)
		} else {
			r.waitsFor++
		}
	}
}

// release lets out the packet it waits for and all that follow it, at time t.
func (r *Resequencer) release(t int64) {
	for {
		slot := r.slot(r.waitsFor)
		if !slot.here {
			return
		}
		slot.packet.Time = t
		r.out.push(slot.packet)
		slot.here = false
		r.holding--
		r.waitsFor++
	}
}

// expire ends the waits that end by time t.
func (r *Resequencer) expire(t int64) {
	r.now = t
	for r.holding > 0 && r.deadline <= t {
		for !r.slot(r.waitsFor).here {
			r.waitsFor++
		}
		r.release(r.deadline)
		r.deadline += r.timeout
	}
}
