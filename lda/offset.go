package lda

import (
	"fmt"

	"github.com/hoplag/hoplag/estimate"
)

// Offset estimates by how many nanoseconds the clock of point B is ahead of
// that of point A, from the delays measured from A to B and from B to A: half
// the difference of their means. That is right if both directions take equally
// long, and off by half of what they differ. The interval needs no such
// assumption, only that no packet takes less than no time: it runs from
// −back.Mean to there.Mean, as long as the round trip, with Confidence 1 but
// for the sampling errors of the two means. Subtract the offset from there.Mean
// and add it to back.Mean to correct them.
//
// The error wraps [estimate.ErrNoSamples] if one direction has no packets, or
// if the round trip would take less than no time, which no offset explains.
func Offset(there, back estimate.Delay) (float64, estimate.Interval, error) {
	if there.N == 0 || back.N == 0 {
		return 0, estimate.Interval{}, fmt.Errorf("lda: %w: offset of clocks needs both directions", estimate.ErrNoSamples)
	}
	if there.Mean+back.Mean < 0 {
		return 0, estimate.Interval{}, fmt.Errorf("lda: %w: round trip of %v ns: points swapped, or clocks that drift", estimate.ErrNoSamples, there.Mean+back.Mean)
	}
	bounds := estimate.Interval{Low: -back.Mean, High: there.Mean, Confidence: 1}
	return (there.Mean - back.Mean) / 2, bounds, nil
}
