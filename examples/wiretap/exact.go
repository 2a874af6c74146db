package main

import (
	"encoding/binary"
	"fmt"
	"iter"
	"maps"
	"sync"
	"time"
)

// exact is a capture of the demo's packets at both places, with its own rings.
// It remembers each packet by its number until it has seen it at both.
type exact struct {
	rings    [2]*ring
	done     sync.WaitGroup
	failures failures

	mu     sync.Mutex
	once   map[uint64]int64 // when it was seen at one place
	latest int64            // time of the latest packet
	sweep  int64            // when to clean up once next
	flows  [senderFlows]truth
}

// A truth is what a capture says about all packets, or about a flow.
type truth struct {
	Flow     string   `json:"flow,omitempty"`
	Sent     int      `json:"sent"`
	Received int      `json:"received"`
	Dropped  uint64   `json:"dropped"` // by the capture's own rings
	Mean     *float64 `json:"mean"`
	Flows    []truth  `json:"flows,omitempty"`

	seen  [2]int
	sum   float64 // of delays
	pairs int
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
	e.mu.Lock()
	defer e.mu.Unlock()
	for c := range packets {
		if len(c.frame) < payloadAt+8 || c.frame[14+9] != 17 || binary.BigEndian.Uint16(c.frame[payloadAt-6:]) != sinkPort {
			continue
		}
		f := int(binary.BigEndian.Uint16(c.frame[payloadAt-8:])) - firstPort
		if f < 0 || f >= senderFlows {
			continue
		}
		e.latest = max(e.latest, c.at)
		e.flows[f].seen[place]++
		number := binary.BigEndian.Uint64(c.frame[payloadAt:])
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
		e.flows[f].pairs++
		e.flows[f].sum += float64(delay)
	}
	e.forget()
}

// forget forgets packets that were seen at only one place, a minute ago: they
// were lost.
func (e *exact) forget() {
	const lost = int64(time.Minute)
	if e.latest < e.sweep {
		return
	}
	e.sweep = e.latest + lost/10
	maps.DeleteFunc(e.once, func(_ uint64, at int64) bool { return at < e.latest-lost })
}

// truth ends the capture and returns what it saw.
func (e *exact) truth() *truth {
	var dropped uint64
	for _, r := range e.rings {
		e.failures.add(r.drain())
		dropped += r.drops()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	all := &truth{Dropped: dropped}
	for i, f := range e.flows {
		f.Flow = fmt.Sprintf("udp %v:%d %v:%d", senderAddress, firstPort+i, receiverAddress, sinkPort)
		all.Flows = append(all.Flows, f.settle())
		all.seen[0] += f.seen[0]
		all.seen[1] += f.seen[1]
		all.sum += f.sum
		all.pairs += f.pairs
	}
	*all = all.settle()
	return all
}

// settle fills in the derived figures.
func (t truth) settle() truth {
	t.Sent, t.Received = t.seen[0], t.seen[1]
	if t.pairs > 0 {
		t.Mean = known(t.sum / float64(t.pairs))
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
