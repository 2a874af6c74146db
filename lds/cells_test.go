package lds_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/lds"
)

// Cells can be added once: those of another shape are refused, and each word
// is where the layout says. The kernel's differential test holds the rest.
func TestAddCells(t *testing.T) {
	config := lds.DefaultConfig
	config.Columns = 8
	s, err := lds.New(config)
	if err != nil {
		t.Fatal(err)
	}
	words := make([]uint64, 2*config.Rows*config.Columns)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range words {
		words[i] = random.Uint64()
	}
	if err := s.AddCells(words[1:]); !errors.Is(err, estimate.ErrMismatch) {
		t.Errorf("too few words: error %v, want ErrMismatch", err)
	}
	twice, err := lds.New(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.AddCells(words), twice.AddCells(words), twice.AddCells(words), s.Merge(s)); err != nil {
		t.Fatal(err)
	}
	a, _ := s.MarshalBinary()
	b, _ := twice.MarshalBinary()
	if string(a) != string(b) {
		t.Error("cells added twice are not twice the cells")
	}
}
