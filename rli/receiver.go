package rli

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// A Receiver estimates the delay of every packet that departs from a link, and keeps sums for each flow. It never
// grows. It is not safe for concurrent use, and the zero value panics except in UnmarshalBinary.
type Receiver struct {
	*tracker
	draws uint64
	// The current interval:
	flows               table
	total               record
	counts              Counts
	quality             quality
	stepFirst, stepLast uint32 // stretches in which clocks were stepped; 0 for none
}

// NewReceiver returns a new receiver. The error wraps [estimate.ErrConfig].
func NewReceiver(c Config) (*Receiver, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	var secret [16]byte
	rand.Read(secret[:]) // never fails
	return &Receiver{
		tracker: newTracker(c),
		flows:   newTable(&c, [2]uint64{binary.LittleEndian.Uint64(secret[:]), binary.LittleEndian.Uint64(secret[8:])}),
	}, nil
}

// NewRotation returns two receivers that take turns and share what is known about the link and the packets that wait:
// call Flush before Rotate to count those. Query and encode what Rotate returns. The error wraps [estimate.ErrConfig].
func NewRotation(c Config) (*estimate.Rotation[*Receiver], error) {
	var shared *tracker
	return estimate.NewRotation(func(c Config) (*Receiver, error) {
		r, err := NewReceiver(c)
		if err != nil {
			return nil, err
		}
		if shared == nil {
			shared = r.tracker
		}
		r.tracker = shared
		return r, nil
	}, c)
}

// Config returns the configuration that the receiver was made with.
func (r *Receiver) Config() Config { return r.config }

// Update records a packet of flow f with the given size, whose last bit departed at time t, in nanoseconds,
// between -2^62 and 2^62. Times must not decrease over all calls of Update, Pass and Reference. Sizes are 0 to
// 2^31-1; others count as the nearest.
func (r *Receiver) Update(f hashing.Flow, bytes int, t int64) {
	made(r.tracker != nil, "Receiver")
	k, size := r.tracker, clamp(bytes)
	r.counts.Packets++
	if k.busy && math.Abs(k.excess(size, t)) > k.slack {
		r.interrupt(size, t)
	}
	k.latest = departure{t, size, true, f}
	k.account.told++
	if uint(k.waiting) >= uint(len(k.buffer)) {
		r.settle(nil, nil)
	}
	h := &k.buffer[k.waiting]
	h.flow, h.time, h.bytes, h.at, h.stretch = f, t, size, r.flows.guess(r.flows.mix(f)), k.stretch
	if k.busy {
		k.turns.meet(f)
		h.mix = k.turns.mix()
	}
	k.waiting++
	if k.config.Method == Left {
		r.settle(nil, nil)
	}
}

func clamp(bytes int) int32 { return int32(min(max(bytes, 0), math.MaxInt32)) }

// Pass records the departure of a packet that did not pass the injector or is measured elsewhere. Only Auto needs it.
func (r *Receiver) Pass(bytes int, t int64) {
	made(r.tracker != nil, "Receiver")
	r.passed++
	r.depart(clamp(bytes), t)
	r.latest.packet = true
	r.turns.meet(0)
}

// Flush estimates the packets that wait for a reference from what was seen so far. Call it at the end of the
// traffic, or before results that should include them.
func (r *Receiver) Flush() {
	made(r.tracker != nil, "Receiver")
	r.settle(nil, nil)
}

// Reset forgets all measurements, for the next interval, but neither what is known about the link nor the
// packets that wait: call Flush first to count those in this interval.
func (r *Receiver) Reset() {
	r.flows.reset()
	r.total, r.counts, r.quality, r.stepFirst, r.stepLast = record{}, Counts{}, quality{}, 0, 0
}

// Merge adds the flows and counts of b, which saw other flows or another interval, but not packets that wait in b. A
// record for which there is no room is shed whole. The error wraps [estimate.ErrMismatch]; r is then unchanged.
func (r *Receiver) Merge(b *Receiver) error {
	made(r.tracker != nil && b.tracker != nil, "Receiver")
	if r.config != b.config {
		return fmt.Errorf("rli: %w: %+v and %+v", estimate.ErrMismatch, r.config, b.config)
	}
	mine, theirs := r.counts.list(), b.counts.list()
	add(mine[:], theirs[:])
	r.quality.add(&b.quality)
	if b.total.count() == 0 {
		return nil
	}
	r.total.merge(b.seal(b.total), r.stretch)
	for i := range b.flows.records {
		theirs := &b.flows.records[i]
		if theirs.count() == 0 {
			continue
		}
		at := r.flows.find(theirs.flow)
		mine := &r.flows.records[at]
		if mine.count() == 0 && !r.flows.claim(at, theirs.flow) {
			r.counts.Shed += theirs.count()
			continue
		}
		mine.merge(b.seal(*theirs), r.stretch)
	}
	return nil
}
