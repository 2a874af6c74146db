package queue

import "math"

// A FIFO is a [Link] in the form of a [Hop]: it holds the packets that are on
// their way through it. It is for a single user and has no locks.
type FIFO struct {
	link   *Link
	onWay  ring[Packet]
	latest int64 // until, of the latest Next
}

// NewFIFO returns an idle link. The error wraps [estimate.ErrConfig].
func NewFIFO(c LinkConfig) (*FIFO, error) {
	link, err := NewLink(c)
	if err != nil {
		return nil, err
	}
	return &FIFO{link: link, latest: math.MinInt64}, nil
}

// Send implements [Hop].
func (f *FIFO) Send(p *Packet) Fate {
	if p.Time < f.latest {
		f.link.counts.add(Refused, 0)
		return Refused
	}
	egress, fate := f.link.Send(p.Time, int(p.Bytes))
	if fate != Passed && fate != Lost {
		return fate
	}
	out := *p
	out.Time, out.Fate, out.Marked = egress, fate, p.Marked || f.link.gate.marked
	f.onWay.push(out)
	return Passed
}

// Next implements [Hop].
func (f *FIFO) Next(until int64, p *Packet) bool {
	f.latest = max(f.latest, until)
	return next(&f.onWay, until, p)
}

// Counts returns what became of the packets sent so far.
func (f *FIFO) Counts() Counts { return f.link.counts }

// next takes the front of a queue in order of Time, if it is due.
func next(q *ring[Packet], until int64, p *Packet) bool {
	if q.len() == 0 || q.front().Time > until {
		return false
	}
	*p = *q.front()
	q.drop()
	return true
}
