package lda

import (
	"fmt"

	"github.com/hoplag/hoplag/estimate"
)

// AddCells adds the contents of cells that are kept elsewhere, such as in a
// kernel or on a network card. There are two words for each cell: first the cells
// of the banks, one bank after another, then the cells for packets that no bank
// samples, which the low bits of the hash choose; [Config.MemorySize] / 16 cells
// in all. The first word is the sum of time stamps. The second has the count of
// packets in its low half and the sum of the high halves of their hashes in its
// high half. If the number of words is wrong, the error wraps
// [estimate.ErrMismatch] and a is unchanged.
func (a *Aggregator) AddCells(words []uint64) error {
	if len(words) != 2*len(a.cells) {
		return fmt.Errorf("lda: %w: %d words of cells, want %d", estimate.ErrMismatch, len(words), 2*len(a.cells))
	}
	for i := range a.cells {
		a.cells[i].sum += words[2*i]
		a.cells[i].tally += words[2*i+1]
	}
	return nil
}

// AppendCells appends the words that AddCells takes. Adding them to an empty
// aggregator of the same Config gives an equal aggregator.
func (a *Aggregator) AppendCells(words []uint64) []uint64 {
	for i := range a.cells {
		words = append(words, a.cells[i].sum, a.cells[i].tally)
	}
	return words
}
