package colate

import (
	"fmt"
	"math"

	"github.com/hoplag/hoplag/estimate"
)

// A Vector says which packets one counter vector of an epoch holds.
type Vector struct {
	Packets uint64 // how many
	Digest  uint64 // sum of their digests, modulo 2^64: which

	// Fill is what Config.Threshold bounds: the sum of the vector's time
	// stamps in units (t_X) or, where sums wrap, its packets.
	Fill uint64
}

func (v *Vector) add(o Vector) {
	v.Packets += o.Packets
	v.Digest += o.Digest
	v.Fill += o.Fill
}

// An Epoch is what one point recorded between two handovers (§1.4's counter
// epoch): counter vectors and the times of their first and last packet. It is
// made by a [Recorder], or by decoding into the zero value.
//
// Single writer, no locks: an Epoch belongs to whoever took it.
type Epoch struct {
	config      Config
	first, last int64
	vectors     [MaxVectors]Vector
	narrow      []uint32 // all vectors, one after the other, if Bits ≤ 32
	wide        []uint64 // else here
}

func newEpoch(c Config) *Epoch {
	e := &Epoch{config: c}
	if cells := c.Vectors * c.Counters; c.Bits <= 32 {
		e.narrow = make([]uint32, cells)
	} else {
		e.wide = make([]uint64, cells)
	}
	e.clearSpan()
	return e
}

func (e *Epoch) clearSpan() { e.first, e.last = math.MaxInt64, math.MinInt64 }

// Reset empties the epoch, so that it can be given back to its recorder.
func (e *Epoch) Reset() {
	clear(e.narrow)
	clear(e.wide)
	e.vectors = [MaxVectors]Vector{}
	e.clearSpan()
}

// Config returns the configuration of the epoch's recorder.
func (e *Epoch) Config() Config { return e.config }

// Span returns the times of the first and the last packet in nanoseconds; ok
// is false if there was none.
func (e *Epoch) Span() (first, last int64, ok bool) {
	if e.first > e.last {
		return 0, 0, false
	}
	return e.first, e.last, true
}

// Packets is how many packets the epoch holds.
func (e *Epoch) Packets() uint64 {
	var n uint64
	for _, v := range e.vectors {
		n += v.Packets
	}
	return n
}

// Vector returns what vector k, 0 to Vectors-1, holds.
func (e *Epoch) Vector(k int) Vector { return e.vectors[:e.config.Vectors][k] }

// Counter returns the sum of time stamps, in units, and the number of packets
// (0 without CountBits) of counter i of vector k.
func (e *Epoch) Counter(k, i int) (sum, count uint64) {
	cell := e.cell(e.config.cellIndex(k, i))
	return cell & e.config.sumMask(), cell >> e.config.sumBits()
}

// cellIndex is where counter i of vector k is kept.
func (c *Config) cellIndex(k, i int) int { return k*c.Counters + i }

// In memory a counter is a word with the count in its low bits and the sum
// above, so that a packet is one addition: sums that wrap go off the top, and
// those that may not are compared with a limit. They may be wider there than
// sumBits. cell and setCell translate to what a counter is in hardware: Bits
// wide, the count in the high bits.

func (e *Epoch) cell(at int) uint64 {
	c := &e.config
	word := e.word(at)
	return word&(1<<c.CountBits-1)<<c.sumBits() | word>>c.CountBits&c.sumMask()
}

func (e *Epoch) setCell(at int, cell uint64) {
	c := &e.config
	e.setWord(at, cell&c.sumMask()<<c.CountBits|cell>>c.sumBits())
}

func (e *Epoch) word(at int) uint64 {
	if e.wide != nil {
		return e.wide[at]
	}
	return uint64(e.narrow[at])
}

func (e *Epoch) setWord(at int, word uint64) {
	if e.wide != nil {
		e.wide[at] = word
	} else {
		e.narrow[at] = uint32(word)
	}
}

func (e *Epoch) cells() int { return len(e.narrow) + len(e.wide) }

// Merge adds an epoch that another shard of the same point recorded. It
// returns [estimate.ErrMismatch] if the Configs differ, and an error that
// wraps [ErrFull] if a counter or the Threshold could not hold both; then the
// epoch is unchanged.
func (e *Epoch) Merge(o *Epoch) error {
	if e.config != o.config {
		return fmt.Errorf("colate: %w: %+v and %+v", estimate.ErrMismatch, e.config, o.config)
	}
	c := &e.config
	limits := newLimits(c)
	for k := range e.vectors {
		if fill := e.vectors[k].Fill + o.vectors[k].Fill; c.Threshold != 0 && fill > c.Threshold {
			return fmt.Errorf("colate: %w: vector %d would be filled to %d, the threshold is %d", ErrFull, k, fill, c.Threshold)
		}
	}
	for at := range e.cells() {
		if limits.exceeded(e.word(at), o.word(at)) {
			return fmt.Errorf("colate: %w: counter %d of vector %d cannot hold both", ErrFull, at%c.Counters, at/c.Counters)
		}
	}
	for at := range e.cells() {
		e.setWord(at, e.word(at)+o.word(at))
	}
	for k := range e.vectors {
		e.vectors[k].add(o.vectors[k])
	}
	e.first, e.last = min(e.first, o.first), max(e.last, o.last)
	return nil
}

// limits say when a counter is full.
type limits struct {
	word  uint64 // the largest a counter may be; all bits where sums wrap
	count uint64 // selects the count
}

func newLimits(c *Config) limits {
	l := limits{word: 1<<c.Bits - 1, count: 1<<c.CountBits - 1}
	if c.wraps() {
		l.word = math.MaxUint64
	}
	return l
}

// exceeded reports whether the sum of two counters is too much for one.
func (l limits) exceeded(x, y uint64) bool {
	return x&l.count+y&l.count > l.count || x+y > l.word
}
