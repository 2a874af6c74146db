package main

import (
	"encoding/binary"
	"iter"
	"sync"
)

// exact is a capture of the demo's packets at both places, by rings of its own,
// that remembers each by its number until it was seen at both.
type exact struct {
	rings [2]*ring
	done  sync.WaitGroup

	mu    sync.Mutex
	once  map[uint64]int64 // seen at one place, when
	seen  [2]int
	sum   float64
	pairs int
}

// A truth is what a capture says.
type truth struct {
	Sent     int      `json:"sent"`
	Received int      `json:"received"`
	Dropped  uint64   `json:"dropped"` // by the capture's own rings
	Mean     *float64 `json:"mean"`
}

func newExact(places ...place) (*exact, error) {
	e := &exact{once: map[uint64]int64{}}
	for i, p := range places {
		err := in(p.namespace, func() error {
			rings, err := openRings(p, 1, 64<<20, false)
			if err == nil {
				e.rings[i] = rings[0]
				e.done.Go(func() { rings[0].run(func(packets iter.Seq[captured]) { e.take(i, packets) }) })
			}
			return err
		})
		if err != nil {
			e.close()
			return nil, err
		}
	}
	return e, nil
}

// take takes a block of packets of one place.
func (e *exact) take(place int, packets iter.Seq[captured]) {
	const numberAt = 14 + 20 + 8 // behind Ethernet, IPv4 and UDP
	e.mu.Lock()
	defer e.mu.Unlock()
	for c := range packets {
		if len(c.frame) < numberAt+8 || c.frame[14+9] != 17 || binary.BigEndian.Uint16(c.frame[numberAt-6:]) != 7000 {
			continue
		}
		number := binary.BigEndian.Uint64(c.frame[numberAt:])
		e.seen[place]++
		other, ok := e.once[number]
		if !ok {
			e.once[number] = c.at
			continue
		}
		delete(e.once, number)
		delay := c.at - other
		if place == 0 {
			delay = -delay
		}
		e.pairs++
		e.sum += float64(delay)
	}
}

// truth is what was seen so far.
func (e *exact) truth() *truth {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := &truth{Sent: e.seen[0], Received: e.seen[1], Dropped: e.rings[0].drops() + e.rings[1].drops()}
	if e.pairs > 0 {
		t.Mean = known(e.sum / float64(e.pairs))
	}
	return t
}

func (e *exact) close() {
	for _, r := range e.rings {
		if r != nil {
			r.stop()
		}
	}
	e.done.Wait()
	for _, r := range e.rings {
		if r != nil {
			r.close()
		}
	}
}
