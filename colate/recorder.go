package colate

import (
	"fmt"
	"math"
	"runtime"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// A Recorder holds one point's counters of one epoch (§3.1), and never grows. It is not safe for concurrent use:
// keep one Recorder per goroutine and Merge them. The zero value panics except in UnmarshalBinary.
type Recorder struct {
	// A word adds up, for each packet, 1 in the lowest bits, DigestBits of its digest above them, and its time above these. One part
	// carries into the next, and off the top: words of two points that saw the same packets differ by delays only, above equal low bits.
	words   []uint64
	packets uint64
	samples []sample
	limit   uint32 // of the tags of sampled packets
	rare    uint64 // of packets up to that, Update does more: all until the epoch begins, then those sampled

	// What Update needs of the Config, computed once.
	timeMask    uint64 // selects the time in a word
	digestMask  uint64 // and the digest
	ditherMask  uint64 // selects the part of a packet that is added to its time
	timeShift   uint8  // up, from the clock to there
	digestShift uint8  // down, from a packet's highest bits

	start  int64 // of the epoch, if there are packets
	config Config
}

// New returns an empty recorder. The error wraps [estimate.ErrConfig].
func New(c Config) (*Recorder, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return newRecorder(c, c.Samples), nil
}

func newRecorder(c Config, samples int) *Recorder {
	return &Recorder{
		words:       make([]uint64, c.counters()),
		samples:     make([]sample, 0, samples),
		limit:       c.limit(),
		rare:        math.MaxUint64,
		timeMask:    ^uint64(0) << c.lowBits(),
		digestMask:  (1<<c.DigestBits - 1) << c.CountBits,
		ditherMask:  1<<c.Shift - 1,
		timeShift:   c.lowBits() - c.Shift,
		digestShift: 64 - c.lowBits(),
		config:      c,
	}
}

// Config returns the configuration that the recorder was made with.
func (r *Recorder) Config() Config { return r.config }

// Packets returns the number of packets in the epoch.
func (r *Recorder) Packets() uint64 { return r.packets }

// Span returns when the epoch began and ends, in nanoseconds: the multiples of
// the Period around its first packet. ok is false if there was no packet.
func (r *Recorder) Span() (start, end int64, ok bool) {
	if r.packets == 0 {
		return 0, 0, false
	}
	return r.start, r.start + r.config.Period, true
}

// Due reports whether the epoch is over at time t: t is at or after its end, or a whole Period before its
// beginning, as after a step of the clock. Packets that come a little late belong to the epoch that records them.
func (r *Recorder) Due(t int64) bool {
	period := r.config.Period
	return r.packets > 0 && uint64(t-r.start+period) >= 2*uint64(period)
}

// place returns the counter that a packet is added to. The paper draws one of
// its flow's counters at random. Here the digest decides, so that two points agree.
func (r *Recorder) place(f hashing.Flow, p hashing.Packet) uint32 {
	return r.config.place(f, int(hashing.Row(uint64(p), uint64(r.config.PerFlow))))
}

// Update records that packet p of flow f passed at time t, in nanoseconds since an epoch that all points share.
// It computes one hash and updates one counter. Before it truncates the time to units, it adds a part of a unit
// that the packet's digest chooses alike at both points, so that the error of a delay is 0 on average.
func (r *Recorder) Update(f hashing.Flow, p hashing.Packet, t int64) {
	at := r.place(f, p)
	r.packets++
	r.words[at] += r.of(p, t)
	if uint64(p) <= r.rare {
		r.rarely(f, p, t)
	}
}

// of returns what a packet adds to its word.
func (r *Recorder) of(p hashing.Packet, t int64) uint64 {
	return (uint64(t)+uint64(p)&r.ditherMask)<<(r.timeShift&63)&r.timeMask + uint64(p)>>(r.digestShift&63)&r.digestMask + 1
}

// UpdateBatch records that packets passed at one time t, each of the flow at its place, as a burst read from a
// ring does. It does what Update does for each, in two thirds of the time: it fetches counters together.
func (r *Recorder) UpdateBatch(flows []hashing.Flow, packets []hashing.Packet, t int64) {
	for len(packets) > 0 {
		n := min(len(packets), burst)
		_ = flows[n-1] // there is one for each: a slice may be longer than that
		r.addBurst(flows[:n], packets[:n], t)
		if r.packets == 0 {
			r.begin(t)
		}
		r.packets += uint64(n)
		for i, p := range packets[:n] {
			if uint64(p) <= r.rare {
				r.rarely(flows[i], p, t)
			}
		}
		flows, packets = flows[n:], packets[n:]
	}
}

// burst is how many packets' counters are fetched together.
const burst = 32

// addBurst adds the packets of at most one burst to their counters. It is a function of its own so that what its loops need
// stays in registers.
//
//go:noinline
func (r *Recorder) addBurst(flows []hashing.Flow, packets []hashing.Packet, t int64) {
	var at [burst]uint32
	for i, p := range packets {
		at[i%burst] = r.place(flows[i], p)
	}
	words, seen := r.words, uint64(0)
	for _, i := range at[:len(packets)] { // in a loop so short that a processor waits for all of them together
		seen |= words[i]
	}
	runtime.KeepAlive(seen) // or nothing would be fetched
	for i, p := range packets {
		words[at[i%burst]] += r.of(p, t)
	}
}

// rarely does what few packets need: it begins the epoch with the first, and keeps those sampled.
//
//go:noinline
func (r *Recorder) rarely(f hashing.Flow, p hashing.Packet, t int64) {
	if r.packets == 1 {
		r.begin(t)
	}
	if tag := uint32(p >> 32); tag < r.limit {
		r.sample(sample{r.config.key(f), tag, t + int64(uint64(p)&r.ditherMask)})
	}
}

// begin aligns the epoch to the clock. At either end of the range of 64 bits, it takes the last epoch that fits.
func (r *Recorder) begin(t int64) {
	period := r.config.Period
	t = min(max(t, math.MinInt64+period), math.MaxInt64-period)
	r.start = t - (t%period+period)%period
	r.limitTo(r.limit)
}

// Merge adds shard b of the same point and epoch to r. It returns [estimate.ErrMismatch] if the Configs or the
// epochs differ; r is then unchanged.
func (r *Recorder) Merge(b *Recorder) error {
	made(r, b)
	folded, other := alike(r, b)
	switch {
	case folded.config != other.config:
		return fmt.Errorf("colate: %w: %+v and %+v", estimate.ErrMismatch, r.config, b.config)
	case b.packets == 0:
		return nil
	case r.packets != 0 && r.start != b.start:
		return fmt.Errorf("colate: %w: epochs of %d and %d", estimate.ErrMismatch, r.start, b.start)
	}
	*r = *folded
	r.start = b.start
	r.packets += b.packets
	for i, word := range other.words {
		r.words[i] += word
	}
	r.limitTo(min(r.limit, b.limit))
	for _, s := range b.samples {
		r.sample(s)
	}
	return nil
}

// Reset empties the recorder for another epoch.
func (r *Recorder) Reset() {
	if c := r.config; c.fold > 0 { // a decoded one
		c.fold = 0
		*r = *newRecorder(c, cap(r.samples))
	}
	clear(r.words)
	r.packets, r.start = 0, 0
	r.samples, r.limit, r.rare = r.samples[:0], r.config.limit(), math.MaxUint64
}

// word returns counter i as it is in hardware.
func (r *Recorder) word(i int) uint64 { return r.words[i] & (1<<(r.config.Bits-1)<<1 - 1) }

// made panics if New has not made the recorders: nil and the zero value have no counters.
func made(all ...*Recorder) {
	for _, r := range all {
		if r == nil || len(r.words) == 0 {
			panic("colate: the zero or nil Recorder, which New did not make")
		}
	}
}

// alike returns two epochs with their counters folded alike.
func alike(a, b *Recorder) (*Recorder, *Recorder) {
	fold := max(a.config.fold, b.config.fold)
	return a.folded(fold), b.folded(fold)
}

// folded returns the epoch as it is with folded counters, if it is not already.
func (r *Recorder) folded(fold uint8) *Recorder {
	if fold <= r.config.fold {
		return r
	}
	f, more := *r, fold-r.config.fold
	f.config.fold = fold
	f.words = make([]uint64, f.config.counters())
	for i, word := range r.words {
		f.words[i>>more] += word
	}
	return &f
}

// packed returns the epoch with its counters folded until a packet takes at most 12 bits, but not so often that
// flows meet themselves. Of an elephant's packets 64 a counter count.
func (r *Recorder) packed() *Recorder {
	packets, used, c := uint64(0), uint64(0), &r.config
	for _, word := range r.words {
		if n := word & (1<<c.CountBits - 1); n > 0 {
			used++
			packets += min(n, 64)
		}
	}
	const perUsed, perCounter, perPacket = 52, 2, 11
	if perUsed*used+perCounter*uint64(c.counters()) <= perPacket*packets || c.counters() < 64*c.PerFlow {
		return r
	}
	return r.folded(c.fold + 1).packed()
}
