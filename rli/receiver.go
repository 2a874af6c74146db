package rli

import (
	"crypto/rand"
	"encoding/binary"
	"math"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// A Receiver estimates the delay of every packet that departs from a link, and
// keeps sums for each flow. Make one with NewReceiver; it never grows. It is
// not safe for concurrent use.
type Receiver struct {
	*tracker
	threshold uint64 // for hashing.Sampled, of flows
	hold      uint64 // of packets that start a record
	draws     uint64

	// The current interval. Delays in records are relative to centre, which is
	// the tracker's origin as of the interval's first packet.
	centre    int64
	flows     table
	total     record
	histogram []uint64 // of the total
	shared    shared
	counts    Counts
	residuals residuals
}

// NewReceiver returns a new receiver. The error wraps [estimate.ErrConfig].
func NewReceiver(c Config) (*Receiver, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	var secret [16]byte
	rand.Read(secret[:]) // never fails
	return &Receiver{
		tracker:   newTracker(c),
		threshold: hashing.Threshold(c.Sample),
		hold:      hashing.Threshold(c.Hold),
		flows:     newTable(&c, [2]uint64{binary.LittleEndian.Uint64(secret[:]), binary.LittleEndian.Uint64(secret[8:])}),
		histogram: make([]uint64, c.Buckets),
		shared:    newShared(&c),
	}, nil
}

// NewRotation returns two receivers that take turns, one interval after
// another. What is known about the link, the latest reference, and the packets
// that wait for the next one pass from one receiver to the other: call Flush
// on the active one before Rotate to count those packets in its interval. Use
// the receiver that Rotate returns for queries and encoding only. The error
// wraps [estimate.ErrConfig].
func NewRotation(c Config) (*estimate.Rotation[*Receiver], error) {
	var shared *tracker
	return estimate.NewRotation(func() (*Receiver, error) {
		r, err := NewReceiver(c)
		if err != nil {
			return nil, err
		}
		if shared == nil {
			shared = r.tracker
		}
		r.tracker = shared
		return r, nil
	})
}

// Config returns the configuration that the receiver was made with.
func (r *Receiver) Config() Config { return r.config }

// Update records a packet of flow f with the given size, whose last bit
// departed at time t, in nanoseconds, between -2^62 and 2^62. Times must not
// decrease over all calls of Update, Pass and Reference. Update refuses a
// packet of fewer than 0 or more than 2^31-1 bytes, and counts it in
// Counts.Invalid.
func (r *Receiver) Update(f hashing.Flow, bytes int, t int64) {
	k := r.tracker
	r.counts.Packets++
	if uint64(bytes) > math.MaxInt32 {
		r.counts.Invalid++
		k.account.told++
		return
	}
	if k.method == BusyAware && math.Abs(k.excess(int32(bytes), t)) > k.slack {
		r.interrupt(int32(bytes), t)
	}
	k.latest.time, k.latest.bytes, k.latest.reference = t, int32(bytes), false
	k.account.told++
	if hashing.Sampled(uint64(f), r.threshold) == 0 {
		r.counts.Unsampled++
		return
	}
	if uint(k.waiting) >= uint(len(k.buffer)) {
		r.overflow()
	}
	if k.tuples != nil {
		k.tuples[k.waiting] = k.tuple
	}
	h := &k.buffer[k.waiting]
	h.flow, h.time, h.bytes, h.at = f, t, int32(bytes), r.flows.guess(r.flows.mix(f))
	k.waiting++
	if k.method == Left {
		r.settle(nil, nil)
	}
}

// overflow makes room in the buffer.
func (r *Receiver) overflow() {
	r.counts.Overflowed += uint64(r.waiting)
	r.settle(nil, nil)
}

// UpdateTuple is Update, and keeps the packet's 5-tuple with the flow's record
// if the packet starts one: see Config.Tuples and Result.Tuple.
func (r *Receiver) UpdateTuple(f hashing.Flow, tuple hashing.Tuple, bytes int, t int64) {
	r.tuple = tuple
	r.Update(f, bytes, t)
	r.tuple = hashing.Tuple{}
}

// A Packet holds the arguments of one Update.
type Packet struct {
	Flow  hashing.Flow
	Bytes int
	Time  int64 // of departure
}

// UpdateBatch calls Update for each of the packets, in order, but takes less
// time.
func (r *Receiver) UpdateBatch(packets []Packet) {
	for len(packets) > 0 {
		packets = packets[r.take(packets):]
		if len(packets) > 0 {
			p := &packets[0]
			r.Update(p.Flow, p.Bytes, p.Time)
			packets = packets[1:]
		}
	}
}

// take puts packets into the buffer until one of them needs more work, and
// returns how many it took.
func (r *Receiver) take(packets []Packet) int {
	k, flows, threshold := r.tracker, &r.flows, r.threshold
	room := k.quick[min(k.waiting, len(k.quick)):]
	packets = packets[:min(len(packets), len(room))]
	perByte, extra, slack := k.perByte, k.extra, k.slack
	busy := k.method == BusyAware
	before, n := k.latest.time, 0
	for i := range packets {
		p := &packets[i]
		if uint64(p.Bytes) > math.MaxInt32 || hashing.Sampled(uint64(p.Flow), threshold) == 0 {
			break
		}
		if busy && math.Abs(float64(p.Time-before)-(float64(int32(p.Bytes))*perByte+extra)) > slack {
			break
		}
		before = p.Time
		h := &room[i]
		h.flow, h.time, h.bytes, h.at = p.Flow, p.Time, int32(p.Bytes), flows.guess(flows.mix(p.Flow))
		n++
	}
	if n > 0 {
		r.counts.Packets += uint64(n)
		k.account.told += uint32(n)
		k.waiting += n
		k.latest = departure{time: before, bytes: int32(packets[n-1].Bytes)}
	}
	return n
}

// Pass records the departure of a packet that is not measured because it did
// not pass the injector, such as cross traffic that joined the link's queue
// from another interface. BusyAware needs all departures; the other methods do
// not.
func (r *Receiver) Pass(bytes int, t int64) {
	r.counts.Passed++
	if uint64(bytes) > math.MaxInt32 {
		r.counts.Invalid++
		return
	}
	if r.method == BusyAware {
		r.depart(bytes, t, false)
	} else {
		r.latest = departure{time: t, bytes: int32(bytes)}
	}
}

// Flush estimates the packets that wait for a reference from what was seen so
// far. Call it at the end of the traffic, or before reading results that
// should include them.
func (r *Receiver) Flush() { r.settle(nil, nil) }

// Reset forgets all measurements, for the next interval. It keeps what is
// known about the link, the latest reference, and the packets that wait for
// the next one; call Flush first to count those in this interval.
func (r *Receiver) Reset() {
	r.flows.reset()
	r.total = record{}
	clear(r.histogram)
	r.shared.reset()
	r.counts, r.residuals = Counts{}, residuals{}
}
