package lda

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/hoplag/hoplag/estimate"
)

// ErrContradiction says that the cells that look usable cannot all be right:
// nothing tells how often their sums wrapped, or their means differ by more
// than chance explains. There is no mean.
var ErrContradiction = errors.New("cells contradict each other")

// A settlement is the result of adding up usable cells, once their wrapped
// sums are settled. Sums of delays are relative to base for each packet, so an
// offset between clocks, however large, costs no digits.
type settlement struct {
	base     int64
	cells    estimate.Cells
	packets  uint64  // of all cells
	sum      float64 // of their delays
	distinct int     // cells
	negative int     // cells whose delays add up to less than 0
}

// settle finds how often the sums of cells, whose low bits alone are known,
// have wrapped. It assumes that the cells with the fewest packets have a total
// delay below 2^(bits-1) ns in absolute value. Their mean predicts the cells
// with more packets, which follow by rising count, each with the value closest
// to the prediction. A line through all cells, sum against count, then shows a
// multiple of 2^bits at count 0 if the first ones had wrapped as well; that
// starts the search again.
func settle(all *pairing, width int) (settlement, error) {
	var present uint64 // bit i: there are counts of i+1 bits
	least, first := uint64(math.MaxUint64), uint64(0)
	for i := range all.len() {
		n, sum := all.at(i)
		if n == 0 {
			continue
		}
		present |= 1 << (bits.Len64(n) - 1)
		if n < least {
			least, first = n, sum
		}
	}
	if present == 0 {
		return settlement{}, estimate.ErrNoSamples
	}
	base := int64(math.Round(float64(estimate.SignExtend(first, width)) / float64(least)))
	for range 4 {
		var l line
		l.run(all, present, base, width)
		intercept, slope, doubt := l.fit()
		modulus := math.Ldexp(1, width)
		if math.Abs(intercept) > modulus/2 {
			base += int64(math.Round(slope))
			continue
		}
		if l.widest >= modulus/4 || 5*doubt > modulus/2 {
			return settlement{}, fmt.Errorf("%w: sums of %d bits have wrapped, and delays vary too much to tell how often", ErrContradiction, width)
		}
		s := settlement{base: base + int64(math.Round(l.sum/l.packets))}
		s.fill(all, width)
		return s, nil
	}
	return settlement{}, fmt.Errorf("%w: no number of wraps of %d bits fits all sums", ErrContradiction, width)
}

// fill adds up the cells, relative to the base.
func (s *settlement) fill(all *pairing, width int) {
	for i := range all.len() {
		n, sum := all.at(i)
		if n == 0 {
			continue
		}
		x := float64(estimate.SignExtend(sum-n*uint64(s.base), width))
		s.cells.Add(x, n)
		s.packets += n
		s.sum += x
		s.distinct++
		if x+float64(n)*float64(s.base) < 0 {
			s.negative++
		}
	}
}

// A line is the least-squares fit of sums, relative to a base for each packet,
// to counts. The variance of a sum is proportional to the count.
type line struct {
	cells, packets, inverse float64 // M, Σn, Σ1/n
	sum, mean, squares      float64 // Σx, Σx/n, Σx²/n
	widest                  float64 // greatest distance of a sum from its prediction
}

// run takes the cells by rising count, to powers of two.
func (l *line) run(all *pairing, present uint64, base int64, width int) {
	wide := width == 64 // sums that do not wrap, in any order
	if wide {
		present = 1
	}
	for ; present != 0; present &= present - 1 {
		size := bits.TrailingZeros64(present) + 1
		for i := range all.len() {
			n, sum := all.at(i)
			if bits.Len64(n) != size && (!wide || n == 0) {
				continue
			}
			expected := int64(0)
			if l.packets > 0 {
				expected = int64(math.Round(l.sum / l.packets))
			}
			off := float64(estimate.SignExtend(sum-n*uint64(base+expected), width))
			l.widest = max(l.widest, math.Abs(off))
			x, count := off+float64(n)*float64(expected), float64(n)
			l.cells++
			l.packets += count
			l.inverse += 1 / count
			l.sum += x
			l.mean += x / count
			l.squares += x * x / count
		}
	}
}

// fit returns the line at count 0, its slope, and the standard error of the
// former. If all counts are equal there is no line: the sums are taken as they
// are.
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
