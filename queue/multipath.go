package queue

import (
	"fmt"
	"math"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/heap"
)

// A Multipath is a [Hop]: several links side by side. A hash of its flow chooses
// the path of a packet. A Multipath numbers the packets sent into it (Seq, from
// 0, including dropped ones) and records the path each took. They come out in
// order of time, which may differ from the order in which they were sent. It is
// for a single user and has no locks.
type Multipath struct {
	links  []*Link
	seed   uint64
	sent   uint64
	latest int64 // until, of the latest Next
	onWay  heap.Heap[underway]
}

// NewMultipath returns idle links side by side, 1 to 256 of them. The seed is
// for the choice of paths; each link's own seed is in its configuration. The
// error wraps [estimate.ErrConfig].
func NewMultipath(seed uint64, links ...LinkConfig) (*Multipath, error) {
	if len(links) < 1 || len(links) > 256 {
		return nil, invalid("number of paths", len(links), "1 to 256")
	}
	m := &Multipath{seed: seed, latest: math.MinInt64}
	for i, c := range links {
		link, err := NewLink(c)
		if err != nil {
			return nil, fmt.Errorf("%w, of path %d", err, i)
		}
		m.links = append(m.links, link)
	}
	return m, nil
}

// Send implements [Hop].
func (m *Multipath) Send(p *Packet) Fate {
	path := hashing.Row(hashing.Mix(uint64(p.Flow), m.seed), uint64(len(m.links)))
	if p.Time < m.latest {
		m.links[path].counts.add(Refused, 0)
		return Refused
	}
	egress, fate := m.links[path].Send(p.Time, int(p.Bytes))
	if fate == Refused {
		return fate
	}
	m.latest = p.Time // a path alone would not notice a packet earlier than those of the others
	seq := m.sent
	m.sent++
	if fate != Passed && fate != Lost {
		return fate
	}
	out := *p
	out.Time, out.Seq, out.Path, out.Fate = egress, seq, uint8(path), fate
	out.Marked = p.Marked || m.links[path].gate.marked
	m.onWay.Push(underway{out, seq})
	return Passed
}

// Next implements [Hop].
func (m *Multipath) Next(until int64, p *Packet) bool {
	m.latest = max(m.latest, until)
	if len(m.onWay) == 0 || m.onWay[0].Time > until {
		return false
	}
	*p = m.onWay.Pop().Packet
	return true
}

// Counts returns what became of the packets sent over a path.
func (m *Multipath) Counts(path int) Counts { return m.links[path].counts }

// An underway packet comes out at its Time.
type underway struct {
	Packet
	number uint64 // of those that went in
}

// Before orders packets by Time, and packets of one time by the order in which
// they went in.
func (p underway) Before(q underway) bool {
	return p.Time < q.Time || p.Time == q.Time && p.number < q.number
}
