package lda

import (
	"fmt"

	"github.com/hoplag/hoplag/estimate"
)

// Besides the count-conditioned deviation of [Estimate] there are the paper's
// estimator of the second moment, eq. (5), and the mean of that estimator over
// all ways to pair rows. Both square differences between sums of cells whose
// counts differ by chance, and so carry that spread, times the mean, as well:
// where delays vary little around a large mean nothing is left of them but
// that. They are here to be compared.
//
// The paper prints eq. (3) with the square of the mean inside the fraction;
// the variance is the mean of the squares less the square of the mean.

// CollapsedVariance is the variance of delays by eq. (5): rows 2i and 2i+1
// are collapsed into one by the lowest bit of the packet's hash as its sign,
//
//	F  = Σ ũ (T̃_B − T̃_A)² / S̃
//	σ² = F − D²
//
// over the pairs of rows that are usable (ũ) because their counts together
// agree; S̃ is the packets of these. It is unclipped and may come out negative.
// A bank of one row has no pairs. The error wraps [estimate.ErrMismatch] or
// [estimate.ErrNoSamples].
func CollapsedVariance(up, down *Aggregator) (float64, error) {
	r, err := Estimate(up, down)
	if err != nil {
		return 0, err
	}
	// One comparison of the sums of the tallies compares counts and digests.
	agree := up.config.digestMask() | (1<<32 - 1)
	width := int(up.config.SumBits)
	var squares, packets float64
	base := 0
	for _, b := range up.config.Banks {
		for row := 0; row+1 < b.Rows; row += 2 {
			s, d := up.cells[base+row:base+row+2], down.cells[base+row:base+row+2]
			if (s[0].tally+s[1].tally-d[0].tally-d[1].tally)&agree == 0 {
				signed := float64(estimate.Difference(s[1].sum-s[0].sum, d[1].sum-d[0].sum, width))
				squares += signed * signed
				packets += float64(s[0].count()) + float64(s[1].count())
			}
		}
		base += b.Rows
	}
	return variance(squares, packets, r.Mean)
}

// PairedVariance is the mean of [CollapsedVariance] over all ways to pair the
// usable rows of each bank, instead of the one that the hash gives: of M rows
// with delay sums X a random pairing has squares that add up to M·S² on
// average, where S² is the sample variance of X. So
//
//	F = Σ_banks M·S² / Σ n
//
// and the variance is F − D². It may come out negative, too. The errors are
// the same.
func PairedVariance(up, down *Aggregator) (float64, error) {
	r, err := Estimate(up, down)
	if err != nil {
		return 0, err
	}
	agree := up.config.digestMask() | (1<<32 - 1)
	width := int(up.config.SumBits)
	var squares, packets float64
	base := 0
	for _, b := range up.config.Banks {
		var sums estimate.Moments
		var n float64
		for row := range b.Rows {
			s, d := &up.cells[base+row], &down.cells[base+row]
			if (s.tally^d.tally)&agree == 0 {
				sums.Add(float64(estimate.Difference(s.sum, d.sum, width)))
				n += float64(s.count())
			}
		}
		if sums.N() > 1 {
			squares += float64(sums.N()) * sums.Variance()
			packets += n
		}
		base += b.Rows
	}
	return variance(squares, packets, r.Mean)
}

// variance is eq. (3), rightly printed.
func variance(squares, packets, mean float64) (float64, error) {
	if packets == 0 {
		return 0, fmt.Errorf("lda: %w: no two rows of a bank to compare", estimate.ErrNoSamples)
	}
	return squares/packets - mean*mean, nil
}
