package main

import (
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// maxStrays bounds how many packets the matcher remembers that came out
// without having gone in. They only help to explain what is wrong.
const maxStrays = 1 << 20

// matcher finds when every packet passed both points, by remembering the
// packets on their way.
type matcher struct {
	flying  match[hashing.Packet, passage]
	strays  map[hashing.Packet]int // came out first, so far
	early   int64                  // came out before they went in
	matched int64
}

// passage is one packet's passage of the ingress.
type passage struct {
	time     int64
	interval int
	number   int64 // of the packet, from 1
}

// exact is the exact answer for one interval, for the packets sent in it.
type exact struct {
	sent   int64
	delays estimate.Moments

	// clear leaves out packets after an identical one that was not seen to
	// leave. Which of the two a later sighting belongs to is then a guess. If
	// neither is lost the guess does not change the mean. If one is, a packet
	// gets the delay of another, maybe of seconds, and its square spoils the
	// deviation.
	clear estimate.Moments
}

func (e *exact) add(delay int64, unique bool) {
	e.delays.Add(float64(delay))
	if unique {
		e.clear.Add(float64(delay))
	}
}

// in records a packet at the ingress.
func (m *matcher) in(p hashing.Packet, at passage) {
	if n := m.strays[p]; n > 0 {
		m.early++
		m.strays[p] = n - 1
	}
	m.flying.first(p, at)
}

// out returns when the packet at the egress was at the ingress, if it was
// there, and whether it can have been no other packet.
func (m *matcher) out(p hashing.Packet) (at passage, ok, unique bool) {
	if at, ok, unique = m.flying.second(p); ok {
		m.matched++
	} else if len(m.strays) < maxStrays {
		m.strays[p]++
	}
	return at, ok, unique
}
