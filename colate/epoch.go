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

func (e *Epoch) cell(at int) uint64 {
	if e.wide != nil {
		return e.wide[at]
	}
	return uint64(e.narrow[at])
}

func (e *Epoch) setCell(at int, cell uint64) {
	if e.wide != nil {
		e.wide[at] = cell
	} else {
		e.narrow[at] = uint32(cell)
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
	sums := newCellAdder(c)
	for k := range e.vectors {
		if fill := e.vectors[k].Fill + o.vectors[k].Fill; c.Threshold != 0 && fill > c.Threshold {
			return fmt.Errorf("colate: %w: vector %d would be filled to %d, the threshold is %d", ErrFull, k, fill, c.Threshold)
		}
	}
	for at := range e.cells() {
		if _, ok := sums.add(e.cell(at), o.cell(at)); !ok {
			return fmt.Errorf("colate: %w: counter %d of vector %d cannot hold both", ErrFull, at%c.Counters, at/c.Counters)
		}
	}
	for at := range e.cells() {
		cell, _ := sums.add(e.cell(at), o.cell(at))
		e.setCell(at, cell)
	}
	for k := range e.vectors {
		e.vectors[k].add(o.vectors[k])
	}
	e.first, e.last = min(e.first, o.first), max(e.last, o.last)
	return nil
}

// cellAdder adds two packed counters.
type cellAdder struct {
	sumMask, sumLimit, countLimit uint64
}

func newCellAdder(c *Config) cellAdder {
	a := cellAdder{sumMask: c.sumMask(), sumLimit: c.sumMask(), countLimit: 1<<c.Bits - 1}
	if c.wraps() {
		a.sumLimit = math.MaxUint64
	}
	return a
}

// add returns the sum of two cells, and whether neither part overflowed.
func (a cellAdder) add(x, y uint64) (cell uint64, ok bool) {
	sum := x&a.sumMask + y&a.sumMask
	count := x&^a.sumMask + y&^a.sumMask
	return count | sum&a.sumMask, sum <= a.sumLimit && count <= a.countLimit
}
