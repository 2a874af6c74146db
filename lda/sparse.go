package lda

import (
	"math"
	"math/bits"

	"github.com/hoplag/hoplag/hashing"
)

// A Sparse is an [Aggregator] for intervals of few packets. It remembers which cells they are in, so that
// packing, merging, comparing and emptying it take time in proportion to packets, not cells. For that its
// Update takes a little longer than the Aggregator's.
type Sparse struct{ Aggregator }

// NewSparse returns an empty Sparse. The error wraps [estimate.ErrConfig].
func NewSparse(c Config) (*Sparse, error) {
	a, err := New(c)
	if err != nil {
		return nil, err
	}
	a.which = make([]uint64, (len(a.cells)+packedBlock-1)/packedBlock)
	return &Sparse{*a}, nil
}

// Update records that packet p passed at time t, as [Aggregator.Update] does.
func (s *Sparse) Update(p hashing.Packet, t int64) {
	i := add(s.cells, &s.spans, p, t)
	if s.which != nil { // it is not after UnmarshalBinary
		s.which[i/packedBlock] |= 1 << (63 - i%packedBlock)
	}
}

// some returns the cells of a block that may not be empty, the first one highest.
func (a *Aggregator) some(block int) uint64 {
	if a.which == nil {
		return math.MaxUint64
	}
	return a.which[block]
}

// touch says that no cell may be empty.
func (a *Aggregator) touch() {
	which := a.which
	for i := range which {
		which[i] = math.MaxUint64
	}
}

// each calls f for those of its first cells that may not be empty.
func (a *Aggregator) each(cells []cell, f func(i int, c *cell)) {
	for block := range (len(cells) + packedBlock - 1) / packedBlock {
		for some := a.some(block); some != 0; some &= some - 1 {
			if i := packedBlock*block + 63 - bits.TrailingZeros64(some); i < len(cells) {
				f(i, &cells[i])
			}
		}
	}
}

// Shift adds by to all timestamps. An [Accumulator] then does not take them for those of another clock.
func (a *Aggregator) Shift(by int64) {
	a.each(a.sampled(), func(_ int, c *cell) {
		c.sum += uint64(c.count()) * uint64(by)
		a.shifted += float64(c.count()) * math.Abs(float64(by))
	})
}

// Singles calls f for every cell that holds a single packet, with the cell's number, the packet's digest of
// Config.DigestBits, and its timestamp modulo 2^SumBits. Cells are numbered bank by bank.
func (a *Aggregator) Singles(f func(cell int, digest uint32, stamp uint64)) {
	unknown, mask := 64-a.config.SumBits, a.config.digestMask()
	a.each(a.sampled(), func(i int, c *cell) {
		if c.count() == 1 {
			f(i, uint32(c.tally&mask>>32), c.sum<<unknown>>unknown)
		}
	})
}
