package lda

import (
	"fmt"
	"math"

	"github.com/hoplag/hoplag/estimate"
)

// A stamping adds up how far packets' stamps are from the middle of the interval in which they
// passed, the lengths of these intervals, by how much they were shifted on purpose, and how far those are off in all
// that cannot have passed then.
type stamping struct{ packets, off, length, shifted, stray float64 }

// An interval is what stamps are held to, in sums of so many bits.
type interval struct {
	middle       uint64
	length, most float64 // and what sums hold to either side
	bits         int
}

// add adds the stamps of a cell, unless the interval has no length, for it adds to one of
// before, or their sum is too narrow to tell.
func (s *stamping) add(c *cell, of *interval) {
	n := float64(c.count())
	length := n * of.length
	if length == 0 || 2*length > of.most {
		return
	}
	off := float64(estimate.SignExtend(c.sum-uint64(c.count())*of.middle, of.bits))
	s.packets += n
	s.off += off
	s.length += length
	if far := math.Abs(off) - length/2; far > 0 && far > min(s.shifted, 1)*length { // by up to an interval
		s.stray += far + length
	}
}

// check reports stamps that are on average more than an interval outside of their own, unless they
// were shifted so far.
func (s *stamping) check(point string) error {
	if math.Abs(s.off) <= 1.5*s.length+s.shifted {
		return nil
	}
	return fmt.Errorf("lda: %w: stamps %s are %.3g s away from the cuts: another clock's", estimate.ErrClocks, point, s.off/s.packets/1e9)
}
