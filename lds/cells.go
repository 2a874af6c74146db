package lds

import (
	"fmt"

	"github.com/hoplag/hoplag/estimate"
)

// AddCells adds what cells kept elsewhere hold, such as in a kernel or on a
// network card: two words for each cell, row after row. The first word is the
// sum of time stamps; the second has the count of packets in its low half and
// the sum of the low halves of their hashes in its high half. The error wraps
// [estimate.ErrMismatch] if the number of words is another, or if the sketch
// counts bytes, and s is then unchanged.
func (s *Sketch) AddCells(words []uint64) error {
	if len(words) != 2*len(s.cells) || s.bytes != nil {
		return fmt.Errorf("lds: %w: %d words of cells without bytes, want %d for %+v",
			estimate.ErrMismatch, len(words), 2*len(s.cells), s.config)
	}
	for i := range s.cells {
		s.cells[i].add(words[2*i], words[2*i+1])
	}
	return nil
}
