package main

import "github.com/hoplag/hoplag/hashing"

// A matcher matches packets that leave with their arrivals, burst by burst: the first of a burst came at t, and
// the others [gap] apart. It forgets arrivals that it found.
type matcher interface {
	ingress(packets []hashing.Packet, t int64)
	// egress appends the delays of those whose arrivals were found.
	egress(packets []hashing.Packet, t int64, delays []int64) []int64
}

// mapMatcher keeps arrivals in a Go map. It is for one goroutine.
type mapMatcher map[hashing.Packet]int64

func (m mapMatcher) ingress(packets []hashing.Packet, t int64) {
	for i, p := range packets {
		m[p] = t + int64(i)*gap
	}
}

func (m mapMatcher) egress(packets []hashing.Packet, t int64, delays []int64) []int64 {
	for i, p := range packets {
		if sent, ok := m[p]; ok {
			delete(m, p)
			delays = append(delays, leaves(p, t, i)-sent)
		}
	}
	return delays
}

// lossyTable is direct-mapped: a packet has one slot, and a later packet with the same slot takes it over. It
// never grows, and matches only a part of the packets. It is for one goroutine.
type lossyTable struct {
	slots []arrival
	mask  uint64
}

type arrival struct {
	packet hashing.Packet
	sent   int64
}

// newLossyTable returns a table with at least twice as many slots as packets expected in flight.
func newLossyTable(inFlight int) *lossyTable {
	size := 1
	for size < 2*inFlight {
		size *= 2
	}
	return &lossyTable{slots: make([]arrival, size), mask: uint64(size - 1)}
}

func (m *lossyTable) ingress(packets []hashing.Packet, t int64) {
	for i, p := range packets {
		m.slots[uint64(p)&m.mask] = arrival{p, t + int64(i)*gap}
	}
}

func (m *lossyTable) egress(packets []hashing.Packet, t int64, delays []int64) []int64 {
	for i, p := range packets {
		if s := &m.slots[uint64(p)&m.mask]; s.packet == p {
			s.packet = 0
			delays = append(delays, leaves(p, t, i)-s.sent)
		}
	}
	return delays
}
