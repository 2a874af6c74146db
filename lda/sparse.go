package lda

import (
	"math"
	"math/bits"

	"github.com/hoplag/hoplag/hashing"
)

// A Sparse is an [Aggregator] for intervals of few packets. It remembers which cells they are in, so that packing,
// comparing and emptying it take as long as there are packets, not cells. Update takes a little longer. It is for one
// goroutine, and the zero value panics.
type Sparse struct {
	of      Aggregator
	shifted float64 // by how much stamps were shifted, either way, over all packets
}

// NewSparse returns an empty one. The error wraps [estimate.ErrConfig].
func NewSparse(c Config) (*Sparse, error) {
	a, err := New(c)
	if err != nil {
		return nil, err
	}
	a.which = make([]uint64, (c.cells()+packedBlock-1)/packedBlock)
	return &Sparse{of: *a}, nil
}

// Update records that packet p passed at time t, as [Aggregator.Update] does.
func (s *Sparse) Update(p hashing.Packet, t int64) {
	a := &s.of
	at := a.spans[bits.Len64(uint64(p)|1)]
	i := at.base + uint32(p)&at.mask
	c := &a.cells[i]
	c.sum += uint64(t)
	c.tally += uint64(p)>>32<<32 | 1
	if block := i / packedBlock; block < uint32(len(a.which)) { // the unsampled come after
		a.which[block] |= 1 << (63 - i%packedBlock)
	}
}

// each calls f for the cells that may not be empty.
func (s *Sparse) each(f func(i int, c *cell)) {
	for block, which := range s.of.which {
		for ; which != 0; which &= which - 1 {
			i := packedBlock*block + 63 - bits.TrailingZeros64(which)
			f(i, &s.of.cells[i])
		}
	}
}

// Merge adds another part of the same point. The error wraps [estimate.ErrMismatch], and s is then unchanged.
func (s *Sparse) Merge(o *Sparse) error {
	if err := sameConfig(&s.of, &o.of); err != nil {
		return err
	}
	o.each(func(i int, c *cell) {
		s.of.cells[i].sum += c.sum
		s.of.cells[i].tally += c.tally
		s.of.which[i/packedBlock] |= 1 << (63 - i%packedBlock)
	})
	s.of.setUnsampled(s.of.unsampledCount() + o.of.unsampledCount())
	s.shifted += o.shifted
	return nil
}

// Packets returns the number of packets that passed.
func (s *Sparse) Packets() uint64 {
	n := s.of.unsampledCount()
	s.each(func(_ int, c *cell) { n += uint64(c.count()) })
	return n
}

// Shift adds to all time stamps. An [Accumulator] does not take them for another clock's then.
func (s *Sparse) Shift(by int64) {
	s.each(func(_ int, c *cell) {
		c.sum += uint64(c.count()) * uint64(by)
		s.shifted += float64(c.count()) * math.Abs(float64(by))
	})
}

// Reset empties it.
func (s *Sparse) Reset() {
	s.each(func(_ int, c *cell) { *c = cell{} })
	clear(s.of.which)
	s.of.setUnsampled(0)
	s.shifted = 0
}

// AppendPacked appends what [Aggregator.AppendPacked] would.
func (s *Sparse) AppendPacked(dst []byte, about int64) []byte { return s.of.AppendPacked(dst, about) }

// AddChecked is [Aggregator.AddPacked] of what [Config.CheckPacked] found right. It does not check again, and
// may panic.
func (s *Sparse) AddChecked(data []byte) { s.of.addChecked(data) }

// Singles calls f for every cell that holds one packet: with the cell's number, the packet's digest, as wide as the
// Config says, and its stamp modulo 2^SumBits. Cells are numbered bank by bank.
func (s *Sparse) Singles(f func(cell int, digest uint32, stamp uint64)) {
	unknown, mask := 64-s.of.config.SumBits, s.of.config.digestMask()
	s.each(func(i int, c *cell) {
		if c.count() == 1 {
			f(i, uint32(c.tally&mask>>32), c.sum<<unknown>>unknown)
		}
	})
}
