package lda

import (
	"math"

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
