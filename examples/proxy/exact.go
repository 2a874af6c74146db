package main

import (
	"encoding/binary"
	"hash/maphash"
	"maps"
	"math"
	"sync"
	"time"
)

// exact remembers every packet of the demo, by all its bytes, from one half to
// the other, which a point never does. A nil exact does nothing.
type exact struct {
	mu   sync.Mutex
	seed maphash.Seed
	ways [2]way
}

// A way is one direction: forth or back.
type way struct {
	under   map[uint64]time.Time // sent but not received
	seconds map[int64]*tally     // received, by second
}

// A tally adds up delays, in nanoseconds.
type tally struct {
	received     int
	sum, squares float64
}

func newExact() *exact {
	e := &exact{seed: maphash.MakeSeed()}
	for i := range e.ways {
		e.ways[i] = way{under: map[uint64]time.Time{}, seconds: map[int64]*tally{}}
	}
	return e
}

// passed records that a packet left one half, or arrived at the other.
func (e *exact) passed(direction int, first bool, packet []byte) {
	if e == nil {
		return
	}
	now := time.Now()
	id := maphash.Bytes(e.seed, packet)
	e.mu.Lock()
	defer e.mu.Unlock()
	w := &e.ways[direction]
	if first {
		w.under[id] = now
		return
	}
	sent, ok := w.under[id]
	if !ok {
		return
	}
	delete(w.under, id)
	t := w.seconds[now.Unix()]
	if t == nil {
		t = &tally{}
		w.seconds[now.Unix()] = t
	}
	delay := float64(now.Sub(sent))
	t.received++
	t.sum += delay
	t.squares += delay * delay
}

// given is the time after which a packet is given up for lost.
const given = 30 * time.Second

// A truth is what was received in a second. Delays are in nanoseconds.
type truth struct {
	Mean, StdDev float64
	Received     int
}

// take returns what was received in a second, and forgets it and everything
// before.
func (e *exact) take(direction int, second int64) truth {
	e.mu.Lock()
	defer e.mu.Unlock()
	w := &e.ways[direction]
	t := w.seconds[second]
	maps.DeleteFunc(w.seconds, func(at int64, _ *tally) bool { return at <= second })
	maps.DeleteFunc(w.under, func(_ uint64, sent time.Time) bool { return time.Since(sent) > given })
	if t == nil {
		return truth{}
	}
	n := float64(t.received)
	mean := t.sum / n
	return truth{mean, math.Sqrt(max(t.squares/n-mean*mean, 0)), t.received}
}

// A pieces reports to exact the same pieces of a stream as the point gets.
type pieces struct {
	exact     *exact
	direction int
	first     bool
	name      []byte
	bytes     int
}

// Write counts bytes.
func (p *pieces) Write(b []byte) (int, error) {
	before := p.bytes / every
	p.bytes += len(b)
	for number := before; number < p.bytes/every; number++ {
		p.exact.passed(p.direction, p.first, binary.BigEndian.AppendUint64(p.name[:nameSize:nameSize], uint64(number)))
	}
	return len(b), nil
}
