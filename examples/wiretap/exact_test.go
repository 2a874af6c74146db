//go:build linux

package main

import (
	"encoding/binary"
	"iter"
	"sync"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/examples/internal/relay"
	"github.com/hoplag/hoplag/internal/programs"
)

// A truth is what a capture says about all packets.
type truth struct {
	Sent, Received int
	Dropped        uint64  // by the capture's own rings
	Mean           float64 // of the delays
}

// exact is a capture of the demo's packets at both places, with its own rings.
// It remembers each packet by its number until it has seen it at both.
type exact struct {
	rings [2]*ring

	mu     sync.Mutex
	seen   [2]int
	once   map[uint64]int64 // when it was seen at one place
	delays estimate.Moments
}

// newExact begins a capture, or skips the test.
func newExact(t *testing.T, places ...place) *exact {
	e := &exact{once: map[uint64]int64{}}
	for i, p := range places {
		var r *ring
		if err := programs.In(p.namespace, func() (err error) { r, err = openRing(p, 64<<20, false); return err }); err != nil {
			t.Skipf("no rings: %v", err)
		}
		var taking sync.WaitGroup
		t.Cleanup(func() { r.stop(); taking.Wait(); r.close() })
		taking.Go(func() { r.run(func(packets iter.Seq[captured]) { e.take(i, packets) }) })
		e.rings[i] = r
		relay.Check(t, r.begin())
	}
	return e
}

// take takes a block of packets from one place.
func (e *exact) take(place int, packets iter.Seq[captured]) {
	const ports, numbered = 14 + 20, 14 + 20 + 8 // Ethernet, IPv4, UDP
	e.mu.Lock()
	defer e.mu.Unlock()
	for c := range packets {
		if len(c.frame) < numbered+8 || c.frame[14+9] != 17 || binary.BigEndian.Uint16(c.frame[ports+2:]) != sinkPort {
			continue
		}
		e.seen[place]++
		number := binary.BigEndian.Uint64(c.frame[numbered:])
		other, ok := e.once[number]
		if !ok {
			e.once[number] = c.at
			continue
		}
		delete(e.once, number)
		e.delays.Add(float64((c.at - other) * int64(2*place-1)))
	}
}

// truth ends the capture and returns what it saw.
func (e *exact) truth(t *testing.T) *truth {
	all := new(truth)
	for _, r := range e.rings {
		relay.Check(t, r.drain())
		_, dropped := r.statistics()
		all.Dropped += dropped
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	all.Sent, all.Received, all.Mean = e.seen[0], e.seen[1], e.delays.Mean()
	return all
}
