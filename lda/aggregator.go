package lda

import (
	"math"
	"math/bits"

	"github.com/hoplag/hoplag/hashing"
)

// cell is a timestamp accumulator and its packet counter (T[i,j] and S[i,j] in section III-C).
type cell struct {
	sum uint64

	// tally has the packet count in its low half and the stream digest, the sum of the high halves of the packets' hashes, in its
	// high half: one addition updates both. A sum serves as well as the usual XOR, also commutes, and does not cancel when one
	// packet comes twice. When the count wraps it carries into the digest, at both points alike. The digest uses the high half
	// because the bits of the row, in the low half, are the same throughout a cell.
	tally uint64
}

// count returns how many packets the cell has seen.
func (c *cell) count() uint32 { return uint32(c.tally) }

// spans say which cells a packet may go to, by bits.Len64 of what it adds to a tally. Banks distinguish up to 32 leading
// zeros of a hash, so its high half is enough, and as the count of 1 is below it, some bit is always set.
type spans struct{ base, mask [65]uint64 }

// packedBlock is how many cells share a word of bits.
const packedBlock = 64

// An Aggregator is one point's synopsis of an interval. Its size is fixed. It is not safe for concurrent use:
// give each goroutine its own, and merge them. Use the zero value only to decode into. Where the Config is known
// at compile time, arrays of fixed size instead of its slice are no faster: BenchmarkFixed in package bench.
type Aggregator struct {
	cells  []cell // bank after bank, then the unsampled
	spans  spans
	config Config
	which  []uint64 // a bit for each cell that may not be empty, the first one highest; nil: all

	shifted float64 // by how much stamps were shifted, either way, over all packets
}

// New returns an empty aggregator. The error wraps [estimate.ErrConfig].
func New(c Config) (*Aggregator, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	a := &Aggregator{cells: make([]cell, c.allCells()), config: c}
	for length := range a.spans.base {
		base, rows := c.cells(), unsampled
		for j, b := range c.Banks[:c.banks()] {
			if 64-length >= int(b.Shift) {
				base, rows = c.first(j), b.Rows
			}
		}
		a.spans.base[length], a.spans.mask[length] = uint64(base), uint64(rows-1)
	}
	return a, nil
}

// Config returns the configuration that the aggregator was made with.
func (a *Aggregator) Config() Config { return a.config }

// Update records that packet p passed at time t, in nanoseconds since an epoch that both points share.
func (a *Aggregator) Update(p hashing.Packet, t int64) {
	add(a.cells, &a.spans, p, t)
}

// add is Update with what a loop should keep in registers. It returns the cell's number. The hash's leading zeros choose
// the bank, its low-order bits the row. The register of its low half, which is not kept for the row, takes the length: a
// search for a bit waits for what its register held before, which would otherwise be the length of the packet before.
func add(cells []cell, spans *spans, p hashing.Packet, t int64) uint64 {
	tally := uint64(p) - uint64(uint32(p)) | 1
	length := bits.Len64(tally)
	i := uint64(p)&spans.mask[length] + spans.base[length]
	c := &cells[i]
	c.sum += uint64(t)
	c.tally += tally
	return i
}

// UpdateBatch records that packets passed at the same time t, as a burst read from a ring does: Update for each.
func (a *Aggregator) UpdateBatch(packets []hashing.Packet, t int64) {
	cells, spans, i, end := a.cells, &a.spans, 0, len(packets)-7
	for ; i < end; i += 8 {
		add(cells, spans, packets[i], t)
		add(cells, spans, packets[i+1], t)
		add(cells, spans, packets[i+2], t)
		add(cells, spans, packets[i+3], t)
		add(cells, spans, packets[i+4], t)
		add(cells, spans, packets[i+5], t)
		add(cells, spans, packets[i+6], t)
		add(cells, spans, packets[i+7], t)
	}
	for _, p := range packets[i:] {
		add(cells, spans, p, t)
	}
	a.touch()
}

// Merge adds what b saw at the same point: a shard of the traffic, or another interval. The error wraps
// [estimate.ErrMismatch]; a is then unchanged.
func (a *Aggregator) Merge(b *Aggregator) error {
	if err := a.config.same(&b.config); err != nil {
		return err
	}
	a.shifted += b.shifted
	for i := range a.which {
		a.which[i] |= b.some(i)
	}
	if b.which != nil {
		b.each(b.cells, func(i int, d *cell) {
			a.cells[i].sum += d.sum
			a.cells[i].tally += d.tally
		})
		return nil
	}
	into, from := a.cells, b.cells[:len(a.cells)]
	for i := range into {
		into[i].sum += from[i].sum
		into[i].tally += from[i].tally
	}
	return nil
}

// Reset empties the aggregator for the next interval.
func (a *Aggregator) Reset() {
	a.shifted = 0
	if a.which == nil {
		clear(a.cells)
		return
	}
	for block, some := range a.which {
		for ; some != 0; some &= some - 1 {
			a.cells[packedBlock*block+63-bits.TrailingZeros64(some)] = cell{}
		}
		a.which[block] = 0
	}
}

// some returns the cells of a block that may not be empty, the first one highest.
func (a *Aggregator) some(block int) uint64 {
	if a.which == nil {
		return math.MaxUint64 << max(0, packedBlock*(block+1)-len(a.cells))
	}
	return a.which[block]
}

// touch says that no cell may be empty.
func (a *Aggregator) touch() {
	which := a.which
	for i := range which {
		which[i] = math.MaxUint64 << max(0, packedBlock*(i+1)-len(a.cells))
	}
}

// each calls f for those of its first cells that may not be empty.
func (a *Aggregator) each(cells []cell, f func(i int, c *cell)) {
	walk(0, len(cells), a.some, func(i int) { f(i, &cells[i]) })
}

// walk calls f for cells from one up to another, of those that some tells block by block.
func walk(from, to int, some func(block int) uint64, f func(i int)) {
	for block := from / packedBlock; block*packedBlock < to; block++ {
		for of := some(block); of != 0; {
			i := bits.LeadingZeros64(of)
			of &^= 1 << 63 >> i
			if i += packedBlock * block; i >= from && i < to {
				f(i)
			}
		}
	}
}

// sampled returns the cells of all banks.
func (a *Aggregator) sampled() []cell { return a.cells[:len(a.cells)-unsampled] }

// unsampledCount returns how many packets no bank sampled.
func (a *Aggregator) unsampledCount() (n uint64) {
	for i := len(a.cells) - unsampled; i < len(a.cells); i++ {
		n += uint64(a.cells[i].count())
	}
	return n
}

// Packets returns the number of packets that passed, sampled or not.
func (a *Aggregator) Packets() (n uint64) {
	a.each(a.cells, func(_ int, c *cell) { n += uint64(c.count()) })
	return n
}
