package lda

import (
	"fmt"

	"github.com/hoplag/hoplag/estimate"
)

// AddCells adds what cells kept elsewhere hold, such as in a kernel or on a
// network card: two words for each cell of the banks, one bank after the
// other, and then for each of the cells of packets that no bank samples, which
// the low bits of the hash choose: [Config.MemorySize] / 16 cells in all. The
// first word is the sum of time stamps; the second has the count of packets in its low half and the
// sum of the high halves of their hashes in its high half. The error wraps
// [estimate.ErrMismatch] if the number of words is another, and a is then
// unchanged.
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

// AppendCells appends the words that AddCells takes, so that adding them to an
// empty aggregator of the same Config makes an equal one.
func (a *Aggregator) AppendCells(words []uint64) []uint64 {
	for i := range a.cells {
		words = append(words, a.cells[i].sum, a.cells[i].tally)
	}
	return words
}
