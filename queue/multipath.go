package queue

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// A Spread says how packets are spread over paths.
type Spread uint8

// The spreads.
const (
	ByFlow     Spread = iota // every packet of a flow takes one path, by a hash of the flow
	RoundRobin               // packets take the paths in turn
	AtRandom                 // every packet takes any path, each as likely
	spreads
)

// A Multipath is a [Hop]: several links side by side. It numbers the packets
// sent into it (Seq, from 0, dropped ones too) and marks the path each took;
// they come out in order of time, which is not that in which they were sent.
// Single user, no locks.
type Multipath struct {
	links  []*Link
	spread Spread
	seed   uint64
	random *rand.PCG
	sent   uint64
	latest int64 // until of the latest Next
	onWay  packetHeap
}

// NewMultipath returns idle links side by side, 1 to 256 of them. The seed is
// for the spread; each link's own seed is in its configuration. The error
// wraps [estimate.ErrConfig].
func NewMultipath(spread Spread, seed uint64, links ...LinkConfig) (*Multipath, error) {
	if spread >= spreads {
		return nil, fmt.Errorf("%w: spread %d, want ByFlow, RoundRobin or AtRandom", estimate.ErrConfig, spread)
	}
	if len(links) < 1 || len(links) > 256 {
		return nil, fmt.Errorf("%w: %d paths, want 1 to 256", estimate.ErrConfig, len(links))
	}
	m := &Multipath{spread: spread, seed: seed, random: generator(seed, 'M'), latest: math.MinInt64}
	for i, c := range links {
		link, err := NewLink(c)
		if err != nil {
			return nil, fmt.Errorf("path %d: %w", i, err)
		}
		m.links = append(m.links, link)
	}
	return m, nil
}

// Send implements [Hop].
func (m *Multipath) Send(p *Packet) Fate {
	path := m.choose(p)
	if p.Time < m.latest {
		m.links[path].counts.add(Refused, 0)
		return Refused
	}
	egress, fate := m.links[path].Send(p.Time, int(p.Bytes))
	if fate == Refused {
		return fate
	}
	m.latest = p.Time // a path alone would not notice a packet before those of the others
	seq := m.sent
	m.sent++
	if fate != Passed && fate != Lost {
		return fate
	}
	out := *p
	out.Time, out.Seq, out.Path, out.Fate = egress, seq, uint8(path), fate
	m.onWay.push(out)
	return Passed
}

func (m *Multipath) choose(p *Packet) uint64 {
	paths := uint64(len(m.links))
	switch m.spread {
	case RoundRobin:
		return m.sent % paths
	case AtRandom:
		return hashing.Row(m.random.Uint64(), paths)
	}
	return hashing.Row(hashing.Mix(uint64(p.Flow), m.seed), paths)
}

// Next implements [Hop].
func (m *Multipath) Next(until int64, p *Packet) bool {
	m.latest = max(m.latest, until)
	if len(m.onWay) == 0 || m.onWay[0].Time > until {
		return false
	}
	*p = m.onWay.pop()
	return true
}

// Counts returns what became of the packets sent over a path.
func (m *Multipath) Counts(path int) Counts { return m.links[path].counts }

// A packetHeap is a binary heap by Time, then Seq. (container/heap would
// allocate for every packet.)
type packetHeap []Packet

func (h packetHeap) less(i, j int) bool {
	return h[i].Time < h[j].Time || h[i].Time == h[j].Time && h[i].Seq < h[j].Seq
}

func (h *packetHeap) push(p Packet) {
	*h = append(*h, p)
	s := *h
	for i := len(s) - 1; i > 0; {
		parent := (i - 1) / 2
		if !s.less(i, parent) {
			return
		}
		s[i], s[parent] = s[parent], s[i]
		i = parent
	}
}

func (h *packetHeap) pop() Packet {
	s := *h
	top := s[0]
	last := len(s) - 1
	s[0] = s[last]
	s = s[:last]
	*h = s
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			return top
		}
		if child+1 < last && s.less(child+1, child) {
			child++
		}
		if !s.less(child, i) {
			return top
		}
		s[i], s[child] = s[child], s[i]
		i = child
	}
}
