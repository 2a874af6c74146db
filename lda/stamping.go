package lda

import (
	"fmt"
	"math"

	"github.com/hoplag/hoplag/estimate"
)

// A stamping adds up how far packets' stamps are from the middle of the interval in which they
// passed, the lengths of these intervals, and by how much they were shifted on purpose.
type stamping struct{ packets, off, length, shifted float64 }

// add adds the stamps of a cell, unless the interval has no length, for it adds to one of
// before, or their sum is too narrow to tell.
func (s *stamping) add(c *cell, start, end int64, bits int) {
	n, length := float64(c.count()), float64(end-start)
	if n == 0 || length == 0 || 2*n*length > float64(uint64(1)<<(bits-1)) {
		return
	}
	middle := uint64(start) + uint64(end-start)/2
	s.packets += n
	s.off += float64(estimate.SignExtend(c.sum-uint64(c.count())*middle, bits))
	s.length += n * length
}

// check reports stamps that are on average more than an interval outside of their own, unless they
// were shifted so far.
func (s *stamping) check(point string) error {
	if math.Abs(s.off) <= 1.5*s.length+s.shifted {
		return nil
	}
	return fmt.Errorf("lda: %w: stamps %s are %.3g s away from the cuts: another clock's", estimate.ErrClocks, point, s.off/s.packets/1e9)
}
