package lda

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// Cells that something else keeps, by the layout that AddCells documents, make
// the same aggregator as Update.
func TestAddCells(t *testing.T) {
	config := Config{Banks: [MaxBanks]Bank{{Rows: 64, Shift: 1}, {Rows: 32, Shift: 4}}, SumBits: 64, DigestBits: 16}
	updated, added := mustNewFor(t, config), mustNewFor(t, config)
	words := make([]uint64, config.MemorySize()/8)
	random := rand.New(rand.NewPCG(1, 2))
	for range 10000 {
		p, now := random.Uint64(), random.Int64()
		updated.Update(hashing.Packet(p), now)
		cell := config.Cell(hashing.Packet(p))
		if cell < 0 {
			cell = 64 + 32 + int(p%16)
		}
		words[2*cell] += uint64(now)
		words[2*cell+1] += p>>32<<32 + 1
	}
	if err := added.AddCells(words[2:]); !errors.Is(err, estimate.ErrMismatch) {
		t.Errorf("too few words: error %v, want ErrMismatch", err)
	}
	assertSame(t, "refused", added, mustNewFor(t, config))
	if err := added.AddCells(words); err != nil {
		t.Fatal(err)
	}
	assertSame(t, "added", added, updated)
	if !slices.Equal(added.AppendCells(nil), words) {
		t.Error("the cells come back changed")
	}
}
