package lds

import (
	"fmt"

	"github.com/hoplag/hoplag/estimate"
)

// AddCells adds cells that were kept elsewhere, such as in a kernel or on a
// network card. Each cell is two words, row after row. The first word is the
// sum of time stamps. The second holds the packet count in its low half and
// the sum of the low halves of the packets' hashes in its high half. The error
// wraps [estimate.ErrMismatch] if the number of words is wrong or the sketch
// counts bytes; s is then unchanged.
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
