package rli

import (
	"strconv"
	"testing"

	"github.com/hoplag/hoplag/internal/compiler"
)

// What is done for every packet, or for every packet of a full buffer, is not
// behind a call, but for Update, settling and the search for a flow that was
// not where it was thought to be.
func TestInlining(t *testing.T) {
	if strconv.IntSize < 64 {
		t.Skip("a number of 64 bits takes two registers, and its operations are calls")
	}
	notes := compiler.Look(t)
	notes.WantInlined(t, "tag", "matches", "first", "(*table).mix", "(*table).guess", "(*table).fetch", "(*tracker).excess",
		"(*record).enter", "(*period).place", "scale", "(*spread).expect", "octave", "cellOf", "(*line).at", "longer",
		"round", "(*record).add")
	if notes.Inlined("(*table).find") {
		t.Error("the search for a flow is said to be inlined: the check sees anything")
	}
}
