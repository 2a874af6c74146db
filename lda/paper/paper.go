// Package paper has the deviation by eq. (5) of the LDA paper, for comparison: package lda uses another.
package paper

import (
	"fmt"
	"math"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/lda"
)

// CollapsedVariance returns the variance of delays by eq. (5): it collapses rows
// 2i and 2i+1 into one, with the lowest bit of the packet's hash as its sign,
//
//	F  = Σ ũ (T̃_B − T̃_A)² / S̃
//	σ² = F − D²
//
// over the pairs of rows that are usable (ũ) because their counts together agree; S̃ is the number of their
// packets. The paper prints eq. (3) with the square of the mean inside the fraction; the variance is the mean
// of the squares less the square of the mean. F squares differences between sums of cells whose counts differ
// by chance: if delays vary little around a large mean, nothing else remains of them, and the result may be
// negative. A bank of one row has no pairs. The error wraps [estimate.ErrMismatch] or [estimate.ErrNoSamples].
func CollapsedVariance(up, down *lda.Aggregator) (float64, error) {
	r, err := lda.Estimate(up, down)
	if err != nil {
		return 0, err
	}
	c, sent, received := up.Config(), up.AppendCells(nil), down.AppendCells(nil) // sum and tally of each cell
	agree, squares, packets := uint64(1<<c.DigestBits-1)<<32|math.MaxUint32, 0.0, 0.0
	for _, b := range c.Banks {
		for i := 0; i+3 < 2*b.Rows; i += 4 {
			// One comparison of the sums of the tallies compares counts and digests.
			if (sent[i+1]+sent[i+3]-received[i+1]-received[i+3])&agree == 0 {
				signed := float64(estimate.SignExtend(received[i+2]-sent[i+2]-received[i]+sent[i], int(c.SumBits)))
				squares += signed * signed
				packets += float64(uint32(sent[i+1])) + float64(uint32(sent[i+3]))
			}
		}
		sent, received = sent[2*b.Rows:], received[2*b.Rows:]
	}
	if packets == 0 {
		return 0, fmt.Errorf("lda: %w: no two rows of a bank to compare", estimate.ErrNoSamples)
	}
	return squares/packets - r.Mean*r.Mean, nil
}
