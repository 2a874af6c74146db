package hashing_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/hoplag/hoplag/internal/compiler"
)

// What is called for every packet must be inlined: a call costs as much as
// the work.
func TestInlined(t *testing.T) {
	notes := compiler.Look(t)
	notes.WantInlined(t, "Row", "Sampled", "Threshold", "Mix", "short", "finish", "finishFlow", "mix",
		"isPlain4", "isPlain6", "plainTCP", "mix4", "mix6", "(*Tunnels).mayLead")
	if strconv.IntSize == 64 { // halves of words are too much code
		notes.WantInlined(t, "Word", "sipRound")
	}
	if notes.Inlined("Digest") {
		t.Error("Digest is inlined: the check sees nothing, or the documentation is out of date")
	}
	// Digest must not check bounds either, except where it slices: the compiler
	// knows that the length was tested.
	for _, check := range notes.BoundsChecks(t, "digest.go", "") {
		if !strings.Contains(check, "IsSliceInBounds") {
			t.Error(check)
		}
	}
}
