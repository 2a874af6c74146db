package lda

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/hoplag/hoplag/estimate"
)

// ErrContradiction means that the cells that look usable cannot all be right: nothing tells how often their
// sums wrapped, or packets joined and there is no digest. There is no mean.
var ErrContradiction = errors.New("cells contradict each other")

// A settlement is the sum of usable cells, whose low bits alone are known. Sums of delays are relative to base
// for each packet, so an offset between clocks, however large, costs no digits.
type settlement struct {
	width   int
	base    int64
	cells   estimate.Cells
	packets uint64  // of all cells
	sum     float64 // of their delays

	// How much less and more than the mean a packet may take, as far as is known: the greatest lack and excess
	// of a cell, as if all others in it took the mean.
	less, more float64
}

// relative returns the sum of the delays of packets, relative to the base for each.
func (s *settlement) relative(packets, wrapped uint64) float64 {
	return float64(estimate.SignExtend(wrapped-packets*uint64(s.base), s.width))
}

// settle finds how often the sums of cells have wrapped. It assumes that the cells with the fewest packets have a total delay below
// 2^(bits-1) ns in absolute value. Their mean predicts the cells with more packets, which follow by rising count, each with the
// value closest to the prediction. A line through all cells, sum against count, then shows a multiple of 2^bits at count 0 if the
// first ones had wrapped as well; that starts the search again.
func settle(all *pairing) (s settlement, err error) {
	least, first := uint64(math.MaxUint64), uint64(0)
	for n, sum := range all.of(0, maxBanks) {
		if n < least {
			least, first = n, sum
		}
	}
	switch {
	case least == math.MaxUint64 && all.any: // there are hardly any but those in overfull cells
		all.any = false
		return settle(all)
	case least == math.MaxUint64:
		return s, estimate.ErrNoSamples
	}
	s.width = int(all.up.config.SumBits)
	s.base = int64(math.Round(float64(estimate.SignExtend(first, s.width)) / float64(least)))
	if s.width < 64 {
		if err := s.unwrap(all); err != nil {
			return s, err
		}
	}
	for n, sum := range all.of(0, maxBanks) {
		x := s.relative(n, sum)
		s.cells.Add(x, n)
		s.packets += n
		s.sum += x
	}
	return s, nil
}

// unwrap moves the base to the mean, relative to which no sum has wrapped.
func (s *settlement) unwrap(all *pairing) error {
	modulus := math.Ldexp(1, s.width)
	for range 4 {
		l := s.line(all)
		intercept, slope, doubt := l.fit()
		if math.Abs(intercept) > modulus/2 {
			s.base += int64(math.Round(slope))
			continue
		}
		if l.widest >= modulus/4 || 5*doubt > modulus/2 {
			return fmt.Errorf("%w: sums of %d bits have wrapped, and delays vary too much to tell how often", ErrContradiction, s.width)
		}
		s.base += int64(math.Round(l.sum / l.packets))
		return nil
	}
	return fmt.Errorf("%w: no number of wraps of %d bits fits all sums", ErrContradiction, s.width)
}

// A line is the least-squares fit of sums, relative to a base for each packet,
// to counts. The variance of a sum is proportional to the count.
type line struct {
	cells, packets, inverse float64 // M, Σn, Σ1/n
	sum, mean, squares      float64 // Σx, Σx/n, Σx²/n
	widest                  float64 // greatest distance of a sum from its prediction
}

// line takes the cells by rising count, to powers of two.
func (s *settlement) line(all *pairing) (l line) {
	for size := range 33 {
		for n, sum := range all.of(0, maxBanks) {
			if bits.Len64(n) != size {
				continue
			}
			expected := int64(0)
			if l.packets > 0 {
				expected = int64(math.Round(l.sum / l.packets))
			}
			off := s.relative(n, sum-n*uint64(expected))
			x, count := off+float64(n)*float64(expected), float64(n)
			l.widest = max(l.widest, math.Abs(off))
			l.cells++
			l.packets += count
			l.inverse += 1 / count
			l.sum += x
			l.mean += x / count
			l.squares += x * x / count
		}
	}
	return l
}

// fit returns the line at count 0, its slope, and the standard error of the former. If all counts are equal
// there is no line: the sums are taken as they are.
func (l *line) fit() (intercept, slope, doubt float64) {
	spread := l.packets*l.inverse - l.cells*l.cells
	if l.cells < 3 || spread <= 1e-9*l.cells*l.cells {
		return 0, l.sum / l.packets, 0
	}
	intercept = (l.packets*l.mean - l.cells*l.sum) / spread
	slope = (l.inverse*l.sum - l.cells*l.mean) / spread
	variance := (l.squares - intercept*l.mean - slope*l.sum) / (l.cells - 2)
	return intercept, slope, math.Sqrt(max(variance, 0) * l.packets / spread)
}
