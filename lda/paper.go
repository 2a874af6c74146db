package lda

import (
	"fmt"
	"math"

	"github.com/hoplag/hoplag/estimate"
)

// Paper has the paper's own formulas where this package uses others, for
// comparison: the deviation by eq. (5), a bound on its variance, and the rate of
// sampling of section III-D.
var Paper PaperFormulas

// PaperFormulas are the methods of [Paper].
type PaperFormulas struct{}

// Besides the count-conditioned deviation of [Estimate] there are the paper's
// estimator of the second moment, eq. (5), and the mean of that estimator over
// all ways to pair rows. Both square differences between sums of cells whose
// counts differ by chance, and so include that spread, times the mean, as
// well: if delays vary little around a large mean, nothing else remains of
// them. They are here for comparison.
//
// The paper prints eq. (3) with the square of the mean inside the fraction;
// the variance is the mean of the squares less the square of the mean.

// CollapsedVariance returns the variance of delays by eq. (5): it collapses rows
// 2i and 2i+1 into one, with the lowest bit of the packet's hash as its sign,
//
//	F  = Σ ũ (T̃_B − T̃_A)² / S̃
//	σ² = F − D²
//
// over the pairs of rows that are usable (ũ) because their counts together agree;
// S̃ is the number of their packets. The result may be negative. A bank of one row
// has no pairs. The error wraps [estimate.ErrMismatch] or [estimate.ErrNoSamples].
func (PaperFormulas) CollapsedVariance(up, down *Aggregator) (float64, error) {
	return bySquares(up, down, func(sent, received []cell, agree uint64, width int) (squares, packets float64) {
		for row := 0; row+1 < len(sent); row += 2 {
			s, d := sent[row:row+2], received[row:row+2]
			// One comparison of the sums of the tallies compares counts and digests.
			if (s[0].tally+s[1].tally-d[0].tally-d[1].tally)&agree == 0 {
				signed := float64(estimate.Difference(s[1].sum-s[0].sum, d[1].sum-d[0].sum, width))
				squares += signed * signed
				packets += float64(s[0].count()) + float64(s[1].count())
			}
		}
		return squares, packets
	})
}

// PairedVariance returns the mean of [PaperFormulas.CollapsedVariance] over all ways
// to pair the usable rows of each bank, instead of the one that the hash gives.
// The squares of a random pairing of M rows with delay sums X add up to M·S² on
// average, where S² is the sample variance of X. So
//
//	F = Σ_banks M·S² / Σ n
//
// and the variance is F − D², which may be negative, too. The errors are the
// same.
func (PaperFormulas) PairedVariance(up, down *Aggregator) (float64, error) {
	return bySquares(up, down, func(sent, received []cell, agree uint64, width int) (squares, packets float64) {
		var sums estimate.Moments
		for row := range sent {
			s, d := &sent[row], &received[row]
			if (s.tally^d.tally)&agree == 0 {
				sums.Add(float64(estimate.Difference(s.sum, d.sum, width)))
				packets += float64(s.count())
			}
		}
		if sums.N() < 2 {
			return 0, 0
		}
		return float64(sums.N()) * sums.Variance(), packets
	})
}

// CollapsedBound returns the bound of section III-E on the variance of F, the
// second moment that eq. (5) estimates from a sample of the received packets.
// Their delays have the given means of squares and of fourth powers:
//
//	Var[F] ≤ 1/R² · ((R−S̃)/S̃ · Σ w⁴ + 2 Σ w²w'²)
//
// with the second sum over ordered pairs of different packets. It is infinite
// without a sample.
func (PaperFormulas) CollapsedBound(received, sample uint64, square, fourth float64) float64 {
	r, s := float64(received), float64(sample)
	if sample == 0 || received == 0 {
		return math.Inf(1)
	}
	return max(r-s, 0)/s*fourth/r + 2*max(square*square-fourth/r, 0)
}

// ShiftFor returns the sampling shift by p = αm/(L+1) of section III-D, or the
// nearest power of two below. The paper's evaluation has α = 0.5.
func (PaperFormulas) ShiftFor(rows int, lost, alpha float64) uint8 {
	return shiftOf(alpha * float64(rows) / (lost + 1))
}

// bySquares returns eq. (3), correctly printed: F − D². For each bank, of
// returns the squares and the number of packets behind them. The bits of agree
// are those in which the tallies of the same packets agree.
func bySquares(up, down *Aggregator, of func(sent, received []cell, agree uint64, width int) (squares, packets float64)) (float64, error) {
	r, err := Estimate(up, down)
	if err != nil {
		return 0, err
	}
	c := &up.config
	var squares, packets float64
	base := 0
	for _, b := range c.Banks[:c.banks()] {
		end := base + b.Rows
		s, n := of(up.cells[base:end], down.cells[base:end], c.digestMask()|(1<<32-1), int(c.SumBits))
		squares += s
		packets += n
		base = end
	}
	if packets == 0 {
		return 0, fmt.Errorf("lda: %w: no two rows of a bank to compare", estimate.ErrNoSamples)
	}
	return squares/packets - r.Mean*r.Mean, nil
}
