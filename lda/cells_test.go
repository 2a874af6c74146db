package lda_test

import (
	"bytes"
	"errors"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
)

// Cells that something else keeps, by the layout that AddCells documents, make
// the same aggregator as Update.
func TestAddCells(t *testing.T) {
	config := lda.Config{Banks: [lda.MaxBanks]lda.Bank{{Rows: 64, Shift: 1}, {Rows: 32, Shift: 4}}, SumBits: 64, DigestBits: 16}
	updated, err := lda.New(config)
	if err != nil {
		t.Fatal(err)
	}
	words := make([]uint64, config.MemorySize()/8)
	random := rand.New(rand.NewPCG(1, 2))
	for range 10000 {
		p, now := random.Uint64(), random.Int64()
		updated.Update(hashing.Packet(p), now)
		cell := 64 + 32 + p%16
		switch zeros := bits.LeadingZeros64(p); {
		case zeros >= 4:
			cell = 64 + p%32
		case zeros >= 1:
			cell = p % 64
		}
		words[2*cell] += uint64(now)
		words[2*cell+1] += p>>32<<32 + 1
	}
	added, err := lda.New(config)
	if err != nil {
		t.Fatal(err)
	}
	before, _ := added.MarshalBinary()
	if err := added.AddCells(words[2:]); !errors.Is(err, estimate.ErrMismatch) {
		t.Errorf("too few words: error %v, want ErrMismatch", err)
	}
	if after, _ := added.MarshalBinary(); !bytes.Equal(before, after) {
		t.Error("refused cells changed the aggregator")
	}
	if err := added.AddCells(words); err != nil {
		t.Fatal(err)
	}
	want, _ := updated.MarshalBinary()
	got, _ := added.MarshalBinary()
	if !bytes.Equal(got, want) {
		t.Error("added cells make another aggregator than the same packets")
	}
	if words := added.AppendCells(nil); !slices.Equal(words, updated.AppendCells(nil)) || len(words) != config.MemorySize()/8 {
		t.Error("the cells come back changed")
	}
}
