package lda

import (
	"fmt"
	"math"

	"github.com/hoplag/hoplag/estimate"
)

const (
	tooFar     = 8  // between means of banks; chance makes them never
	leastAlone = 20 // packets
)

// effects are what cells with few and with many packets tell when they are
// compared.
type effects struct {
	slope float64 // how many standard errors fuller cells are slower per packet
	apart float64 // how many the mean of a bank is away from that of all
	alone estimate.Cells
}

// compareCells compares the usable cells of a settlement.
func compareCells(s *pairing, found *settlement) (e effects) {
	config := &s.up.config
	mean, variance, width := found.sum/float64(found.packets), found.cells.Variance(), int(config.SumBits)
	var sum, squares float64
	from := 0
	for _, b := range config.Banks[:config.banks()] {
		end := from + b.Rows
		var packets, cells, total, noise float64 // total: of the delays beyond the mean
		each := func(f func(n, beyond float64)) {
			for i := from; i < end; i++ {
				if n, wrapped := s.at(i); n > 0 {
					f(float64(n), float64(estimate.SignExtend(wrapped-n*uint64(found.base), width))-float64(n)*mean)
				}
			}
		}
		for i := from; i < end; i++ {
			if s.usable(i) {
				cells++ // also an empty one
			}
		}
		each(func(n, beyond float64) { packets, total = packets+n, total+beyond })
		each(func(n, beyond float64) {
			term := beyond * (n - packets/cells)
			sum += term
			squares += term * term
			own := beyond - n*total/packets
			noise += own * own
			if n == 1 {
				e.alone.Add(beyond, 1)
			}
		})
		if cells >= leastAlone && packets > 0 {
			// Few packets may miss the rare slow ones that all have.
			rounding := packets * (1 + 1e-12*math.Abs(float64(found.base)))
			e.apart = max(e.apart, math.Abs(total)/(math.Sqrt(noise+packets*variance)+rounding))
		}
		from = end
	}
	if squares > 0 {
		e.slope = sum / math.Sqrt(squares)
	}
	return e
}

// contradiction returns the error if banks cannot both be right. Copies that
// share cells, however slow they are, are in every bank alike.
func (e *effects) contradiction() error {
	if e.apart > tooFar {
		return fmt.Errorf("%w: the means of banks differ by %.3g standard errors", ErrContradiction, e.apart)
	}
	return nil
}

// seeRepeats looks for copies in groups too small to overfill a cell, by their
// effects. Cells that lost a packet hold more of those that arrived than they
// should: the copies of the lost one. Fuller cells are slower or faster per
// packet, for a cell is full because of its copies. And full cells scatter more
// than packets that are alone.
func (r *Result) seeRepeats(c *census, e *effects) {
	if c.excess.sure() || math.Abs(e.slope) > surely {
		r.Repeats.excess = uint64(c.missing() * float64(r.spoken))
	}
	if e.alone.Cells() < leastAlone {
		return
	}
	// The logarithm of the variance of n exponential delays has the variance 8/n.
	// Heavier tails err more, and are taken for copies: all that costs is width.
	variance := e.alone.Variance()
	if math.Log(r.StdDev*r.StdDev/variance) > surely*math.Sqrt(8/float64(e.alone.Cells())) {
		r.Repeats.aloneStdDev, r.Repeats.aloneDegrees = math.Sqrt(variance), e.alone.EffectiveDegrees(0)
	}
}
