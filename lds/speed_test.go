package lds

import (
	"testing"

	"github.com/hoplag/hoplag/internal/compiler"
)

// TestUpdateIsInlined: Update is one call, to add, and that makes none.
func TestUpdateIsInlined(t *testing.T) {
	compiler.Look(t).WantInlined(t, "(*Sketch).Update", "(*cell).add", "split", "flowWord", "home", "tally", "sampling")
	if !newSketch(DefaultConfig).quick {
		t.Error("DefaultConfig does not take a short path")
	}
}
