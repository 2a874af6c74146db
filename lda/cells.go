package lda

import (
	"fmt"

	"github.com/hoplag/hoplag/estimate"
)

// AddCells adds the contents of cells that are kept elsewhere, such as in a kernel or
// on a network card: two words for each of [Config.MemorySize] / 16 cells, bank after
// bank, then 16 for packets that no bank samples, which the low bits of the hash choose.
// The first word is the sum of time stamps; the second has the count of packets in its
// low half, and in its high half the sum of the high halves of their hashes. If the
// number of words is wrong, the error wraps [estimate.ErrMismatch] and a is unchanged.
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
