package main

import (
	"sync"

	"github.com/hoplag/hoplag/hashing"
)

// The matchers match a packet that leaves with the same packet's arrival. Each
// has ingress(p, t) and egress(p, t), which returns the delay and whether the
// arrival was found, and forgets arrivals that were found.

// mapMatcher keeps arrivals in a Go map. It is for one goroutine.
type mapMatcher map[hashing.Packet]int64

func (m mapMatcher) ingress(p hashing.Packet, t int64) { m[p] = t }

func (m mapMatcher) egress(p hashing.Packet, t int64) (int64, bool) {
	sent, ok := m[p]
	if ok {
		delete(m, p)
	}
	return t - sent, ok
}

// syncMatcher keeps arrivals in a sync.Map, for ends in different goroutines.
type syncMatcher struct{ m sync.Map }

func (m *syncMatcher) ingress(p hashing.Packet, t int64) { m.m.Store(p, t) }

func (m *syncMatcher) egress(p hashing.Packet, t int64) (int64, bool) {
	sent, ok := m.m.LoadAndDelete(p)
	if !ok {
		return 0, false
	}
	return t - sent.(int64), true
}

// lossyTable is direct-mapped: a packet has one slot, and a later packet with
// the same slot takes it over. It never grows, and matches only a part of the
// packets. It is for one goroutine.
type lossyTable struct {
	slots []arrival
	mask  uint64
}

type arrival struct {
	packet hashing.Packet
	sent   int64
}

// newLossyTable returns a table with at least twice as many slots as packets
// expected in flight.
func newLossyTable(inFlight int) *lossyTable {
	size := 1
	for size < 2*inFlight {
		size *= 2
	}
	return &lossyTable{slots: make([]arrival, size), mask: uint64(size - 1)}
}

func (m *lossyTable) ingress(p hashing.Packet, t int64) {
	m.slots[uint64(p)&m.mask] = arrival{p, t}
}

func (m *lossyTable) egress(p hashing.Packet, t int64) (int64, bool) {
	s := &m.slots[uint64(p)&m.mask]
	if s.packet != p {
		return 0, false
	}
	s.packet = 0
	return t - s.sent, true
}
