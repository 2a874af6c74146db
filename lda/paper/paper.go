// Package paper has the formulas of the LDA paper where package lda uses others, for
// comparison: the deviation by eq. (5), and the rate of sampling of section III-D.
//
// Both variances square differences between sums of cells whose counts differ by
// chance, and so include that spread, times the mean: if delays vary little around a
// large mean, nothing else remains of them. The paper prints eq. (3) with the square of
// the mean inside the fraction; the variance is the mean of the squares less the square
// of the mean.
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
// over the pairs of rows that are usable (ũ) because their counts together agree;
// S̃ is the number of their packets. The result may be negative. A bank of one row
// has no pairs. The error wraps [estimate.ErrMismatch] or [estimate.ErrNoSamples].
func CollapsedVariance(up, down *lda.Aggregator) (float64, error) {
	return bySquares(up, down, func(b bank) (squares, packets float64) {
		for row := 0; row+1 < b.rows; row += 2 {
			// One comparison of the sums of the tallies compares counts and digests.
			if (b.tally(b.up, row)+b.tally(b.up, row+1)-b.tally(b.down, row)-b.tally(b.down, row+1))&b.agree == 0 {
				signed := float64(estimate.SignExtend(b.delay(row+1)-b.delay(row), b.width))
				squares += signed * signed
				packets += b.packets(row) + b.packets(row+1)
			}
		}
		return squares, packets
	})
}

// PairedVariance returns the mean of CollapsedVariance over all ways to pair the
// usable rows of each bank, instead of the one that the hash gives. The squares of a
// random pairing of M rows with delay sums X add up to M·S² on average, where S² is
// the sample variance of X. So
//
//	F = Σ_banks M·S² / Σ n
//
// and the variance is F − D², which may be negative, too. The errors are the same.
func PairedVariance(up, down *lda.Aggregator) (float64, error) {
	return bySquares(up, down, func(b bank) (squares, packets float64) {
		var sums estimate.Moments
		for row := range b.rows {
			if (b.tally(b.up, row)-b.tally(b.down, row))&b.agree == 0 {
				sums.Add(float64(estimate.SignExtend(b.delay(row), b.width)))
				packets += b.packets(row)
			}
		}
		if sums.N() < 2 {
			return 0, 0
		}
		return float64(sums.N()) * sums.Variance(), packets
	})
}

// ShiftFor returns the sampling shift by p = αm/(L+1) of section III-D, or the
// nearest power of two below. The paper's evaluation has α = 0.5.
func ShiftFor(rows int, lost, alpha float64) uint8 {
	p, shift := alpha*float64(rows)/(lost+1), uint8(0)
	for ; math.Ldexp(1, -int(shift)) > p && shift < 32; shift++ {
	}
	return shift
}

// A bank is what both points have in the cells of one bank: two words a cell.
type bank struct {
	up, down    []uint64
	rows, width int
	agree       uint64 // bits in which the tallies of the same packets agree
}

func (b *bank) tally(of []uint64, row int) uint64 { return of[2*row+1] }

func (b *bank) packets(row int) float64 { return float64(uint32(b.up[2*row+1])) }

// delay returns the sum of a cell's delays, wrapped.
func (b *bank) delay(row int) uint64 { return b.down[2*row] - b.up[2*row] }

// bySquares returns eq. (3), correctly printed: F − D². For each bank, of returns the
// squares and the number of packets behind them.
func bySquares(up, down *lda.Aggregator, of func(bank) (squares, packets float64)) (float64, error) {
	r, err := lda.Estimate(up, down)
	if err != nil {
		return 0, err
	}
	c, sent, received := up.Config(), up.AppendCells(nil), down.AppendCells(nil)
	var squares, packets float64
	for _, b := range c.Banks {
		s, n := of(bank{sent, received, b.Rows, int(c.SumBits), (1<<c.DigestBits-1)<<32 | math.MaxUint32})
		squares += s
		packets += n
		sent, received = sent[2*b.Rows:], received[2*b.Rows:]
	}
	if packets == 0 {
		return 0, fmt.Errorf("lda: %w: no two rows of a bank to compare", estimate.ErrNoSamples)
	}
	return squares/packets - r.Mean*r.Mean, nil
}
