package colate

import (
	"errors"
	"fmt"
	"math"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// ErrFull is wrapped where an epoch cannot hold what is to be added to it.
var ErrFull = errors.New("epoch is full")

// A Recorder is one point's counters (§3.1). It is made by New and never
// grows: it holds the epoch that is being recorded and an empty one to go on
// with when that ends. Whoever drives it asks Pending after Update, and where
// an epoch is pending takes it, encodes it in its own time and gives it back
// empty:
//
//	r.Update(flow, packet, now)
//	if r.Pending() {
//		full <- r.Take() // to a goroutine that appends it to a Store, resets it
//	}                        // and sends it back for Give
//
// All but the writing itself is O(1). If the next epoch ends before an empty
// one was given, it is lost, and Overruns says so.
//
// Single writer, no locks: one Recorder a goroutine, then Merge.
type Recorder struct {
	active *Epoch

	// What Update needs of the Config, computed once.
	identity   uint64
	counters   uint64
	perFlow    uint64
	lastVector uint64 // the bit of a digest that chooses the last vector, if none above it does
	shift      uint8
	timeMask   uint64
	countBits  uint8
	limits     limits
	one        uint64 // what a packet adds to a count: 0 if there is none
	timed      bool   // time stamps, not packets, fill a vector
	threshold  uint64

	// The same for one vector of wrapping sums of nanoseconds, which is what
	// DefaultConfig is.
	room  uint64 // threshold; 0 if the Config is another
	scale uint64 // of the clock in a counter: 2^countBits
	full  uint64 // selects of a counter what becomes 0 when it may be full

	spare    *Epoch // empty, or nil while its taker has it
	pending  *Epoch // ended, or nil
	overruns uint64
}

// New returns an empty recorder. The error wraps [estimate.ErrConfig].
func New(c Config) (*Recorder, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	r := &Recorder{
		active:     newEpoch(c),
		spare:      newEpoch(c),
		identity:   c.Identity,
		counters:   uint64(c.Counters),
		perFlow:    uint64(c.PerFlow),
		lastVector: 1 << (64 - c.Vectors),
		shift:      c.Shift,
		timeMask:   c.timeMask(),
		countBits:  c.CountBits,
		limits:     newLimits(&c),
		timed:      !c.wraps(),
		threshold:  c.Threshold,
	}
	if c.CountBits > 0 {
		r.one = 1
	}
	if r.threshold == 0 {
		r.threshold = math.MaxUint64
	}
	if c.Vectors == 1 && c.wraps() && c.Shift == 0 {
		r.room = r.threshold
	}
	// Without counts a sum becomes 0 now and then, and is looked at twice.
	r.scale, r.full = 1<<c.CountBits, r.limits.count
	if r.full == 0 {
		r.full = math.MaxUint64
	}
	return r, nil
}

// Config returns the configuration that the recorder was made with.
func (r *Recorder) Config() Config { return r.active.config }

// Update records that packet p of flow f passed at time t, in nanoseconds
// since an epoch that all points share. One hash, one counter. If there is no
// room for it, the epoch ends before it and it begins the next.
func (r *Recorder) Update(f hashing.Flow, p hashing.Packet, t int64) {
	// What DefaultConfig needs, in half as many instructions as add takes:
	// their number is what the time is spent on. That the clock is not taken
	// modulo the sum's width here leaves bits above it that no one reads.
	at := position(r.identity, f, choice(p, r.perFlow), r.counters)
	e := r.active
	v := &e.vectors[0]
	if packets := v.Packets + 1; packets <= r.room {
		word := uint64(t)*r.scale + r.one
		if at < uint64(len(e.wide)) {
			if word += e.wide[at]; word&r.full == 0 {
				r.add(f, p, t, at)
				return
			}
			e.wide[at] = word
		} else {
			if word = uint64(uint32(word) + e.narrow[at]); word&r.full == 0 {
				r.add(f, p, t, at)
				return
			}
			e.narrow[at] = uint32(word)
		}
		v.Packets, v.Fill = packets, packets
		v.Digest += uint64(p)
		if t < e.first {
			e.first = t
		}
		if t > e.last {
			e.last = t
		}
		return
	}
	r.add(f, p, t, at)
}

// add is Update for any Config, and where there is no room. at is the place of
// the packet's counter in its vector.
func (r *Recorder) add(f hashing.Flow, p hashing.Packet, t int64, at uint64) {
	stamp := uint64(t>>(r.shift&63)) & r.timeMask
	k := hashing.LeadingZeros(uint64(p) | r.lastVector)
	at += uint64(k) * r.counters

	// The number of packets or the sum of time stamps may fill the vector; the
	// sum or the count may fill the counter, and of these the count by becoming 0.
	// Almost never does any of them, so that the branches are foreseen.
	e := r.active
	v := &e.vectors[k&(MaxVectors-1)]
	fill := v.Packets + 1
	if r.timed {
		fill = v.Fill + stamp
	}
	add := stamp<<(r.countBits&63) + r.one
	if at < uint64(len(e.narrow)) {
		word := uint64(e.narrow[at]) + add
		if word > r.limits.word || word&r.limits.count < r.one || fill > r.threshold {
			r.retry(f, p, t)
			return
		}
		e.narrow[at] = uint32(word)
	} else {
		word := e.wide[at] + add
		if word > r.limits.word || word&r.limits.count < r.one || fill > r.threshold {
			r.retry(f, p, t)
			return
		}
		e.wide[at] = word
	}
	v.Fill = fill
	v.Packets++
	v.Digest += uint64(p)
	if t < e.first {
		e.first = t
	}
	if t > e.last {
		e.last = t
	}
}

// UpdateBatch records that the packets passed at the same time t, as a burst
// that was taken from a ring together: packets[i] of flows[i]. It panics if
// there are fewer packets than flows.
func (r *Recorder) UpdateBatch(flows []hashing.Flow, packets []hashing.Packet, t int64) {
	packets = packets[:len(flows)]
	for len(flows) > 0 {
		n := 0
		if r.room > 0 {
			n = r.addRun(flows, packets, t)
		}
		// Where the run ended early there may be no room.
		if n < len(flows) {
			r.Update(flows[n], packets[n], t)
			n++
		}
		flows, packets = flows[n:], packets[n:]
	}
}

// addRun adds packets, as Update does where there is room, until the vector or a
// counter may be full, and returns how many.
func (r *Recorder) addRun(flows []hashing.Flow, packets []hashing.Packet, t int64) int {
	e := r.active
	v := &e.vectors[0]
	run := int(min(r.room-v.Packets, uint64(len(flows))))
	add := uint64(t)*r.scale + r.one
	var n int
	var digest uint64
	if e.wide != nil {
		n, digest = addWords(e.wide, r.identity, r.perFlow, add, r.full, flows[:run], packets[:run])
	} else {
		n, digest = addWords(e.narrow, r.identity, r.perFlow, add, r.full, flows[:run], packets[:run])
	}
	if n > 0 {
		v.Packets += uint64(n)
		v.Fill = v.Packets
		v.Digest += digest
		e.first, e.last = min(e.first, t), max(e.last, t)
	}
	return n
}

// addWords is addRun's loop. What it needs is few enough values to stay in
// registers.
func addWords[Word uint32 | uint64](words []Word, identity, perFlow, add, full uint64, flows []hashing.Flow, packets []hashing.Packet) (n int, digest uint64) {
	packets = packets[:len(flows)]
	for i, p := range packets {
		at := position(identity, flows[i], choice(p, perFlow), uint64(len(words)))
		word := words[at] + Word(add)
		if uint64(word)&full == 0 {
			return i, digest
		}
		words[at] = word
		digest += uint64(p)
	}
	return len(flows), digest
}

// retry begins a new epoch with a packet that the last had no room for. An
// empty epoch has room for any.
func (r *Recorder) retry(f hashing.Flow, p hashing.Packet, t int64) {
	r.Rotate()
	r.Update(f, p, t)
}

// Rotate ends the epoch now, as at the end of an interval that the points
// agree on. An epoch without packets does not end.
func (r *Recorder) Rotate() {
	if _, _, ok := r.active.Span(); !ok {
		return
	}
	if r.spare == nil || r.pending != nil {
		r.overruns++
		r.active.Reset()
		return
	}
	r.pending, r.active, r.spare = r.active, r.spare, nil
}

// Pending reports whether an ended epoch waits to be taken.
func (r *Recorder) Pending() bool { return r.pending != nil }

// Take hands over the ended epoch, or nil if there is none. It is the
// caller's until given back.
func (r *Recorder) Take() *Epoch {
	e := r.pending
	r.pending = nil
	return e
}

// Give returns an epoch that was taken, after its Reset, for the recorder to
// go on with. It returns [estimate.ErrMismatch] for an epoch of another
// Config, and ErrFull for one that is not empty or not needed.
func (r *Recorder) Give(e *Epoch) error {
	if e.config != r.active.config {
		return fmt.Errorf("colate: %w: %+v and %+v", estimate.ErrMismatch, e.config, r.active.config)
	}
	if _, _, ok := e.Span(); ok {
		return fmt.Errorf("colate: %w: %d packets in an epoch that was given back", ErrFull, e.Packets())
	}
	if r.spare != nil || e == r.active || e == r.pending {
		return fmt.Errorf("colate: %w: the recorder has all its epochs", ErrFull)
	}
	r.spare = e
	return nil
}

// Current is the epoch that is being recorded, to be read, encoded or merged
// from between two calls of Update.
func (r *Recorder) Current() *Epoch { return r.active }

// Overruns is how many epochs were lost because they ended while no empty one
// was there.
func (r *Recorder) Overruns() uint64 { return r.overruns }

// Merge adds what shard b of the same point is recording now; epochs that b
// has ended are to be taken from b. Where one epoch cannot hold both, r's ends
// and b's is begun with. It returns [estimate.ErrMismatch] if the Configs differ.
func (r *Recorder) Merge(b *Recorder) error {
	err := r.active.Merge(b.active)
	if errors.Is(err, ErrFull) {
		r.Rotate()
		err = r.active.Merge(b.active)
	}
	return err
}

// Reset empties the recorder. An ended epoch that was not taken is discarded
// with the rest; one that was taken may still be given back.
func (r *Recorder) Reset() {
	r.active.Reset()
	if r.pending != nil {
		r.pending.Reset()
		r.spare, r.pending = r.pending, nil
	}
	r.overruns = 0
}
