package rli_test

import (
	"testing"

	"github.com/hoplag/hoplag/rli"
)

func TestSequence(t *testing.T) {
	r := small(t, nil)
	at := int64(0)
	give := func(sequence int) {
		at += 1e6
		r.Reference(ref(sequence, 1000*int64(sequence)), at)
	}
	want := func(want rli.Counts) {
		t.Helper()
		if got := r.Counts(); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	for _, n := range []int{10, 11, 14} { // 12 and 13 are missing
		give(n)
	}
	want(rli.Counts{References: 3, Lost: 2})
	give(13) // late
	give(14) // again
	give(13) // again
	want(rli.Counts{References: 6, Lost: 2, Refused: 3})
	give(1000) // far ahead: 985 are missing
	give(900)  // late by more than is remembered, so taken for the first of its number
	give(900)
	want(rli.Counts{References: 9, Lost: 2 + 985, Refused: 5})
	r.Reference(ref(0, 2e6), at) // sent later than the larger number: begun anew
	r.Reference(ref(1, 3e6), at)
	want(rli.Counts{References: 11, Lost: 2 + 985, Refused: 5})
	r = small(t, nil)
	give(10)
	give(10) // the first one again
	want(rli.Counts{References: 2, Refused: 1})
}

// TestRestartWithClockBehind: an injector that restarts with a clock that has not been set yet is believed
// after some of its references.
func TestRestartWithClockBehind(t *testing.T) {
	r := small(t, nil)
	for n := range 100 {
		r.Reference(ref(n, 1e15+int64(n)*1000), 1e15+int64(n)*1000+500)
	}
	begun := 0
	for n := range 100 {
		at := 2e15 + int64(n)*1000
		r.Reference(ref(n, int64(n)*1000), at)
		if begun == 0 && r.Counts().Steps > 0 {
			begun = n
		}
		if begun > 0 {
			r.Update(1, 100, at)
		}
	}
	r.Flush()
	if res, err := r.Estimate(1); err != nil || res.Mean != 2e15 || begun != 64 || r.Counts().Steps != 1 {
		t.Errorf("%+v, %v, begun anew at reference %d, %+v", res, err, begun, r.Counts())
	}
}
