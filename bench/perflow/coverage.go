package perflow

import (
	"math"

	"github.com/hoplag/hoplag/estimate"
)

// A Coverage counts the intervals that contain the truth, and records their half-widths, as parts of the truth and of
// their middles, and how far their middles are off, in half-widths.
type Coverage struct {
	Held, All         uint64
	halves, told, off []float64
}

// Add adds an interval and the truth that it should contain.
func (c *Coverage) Add(i estimate.Interval, truth float64) {
	half, middle := (i.High-i.Low)/2, (i.High+i.Low)/2
	c.Count(i.Contains(truth))
	c.halves, c.told = append(c.halves, half/truth), append(c.told, half/math.Abs(middle))
	c.off = append(c.off, math.Abs(middle-truth)/max(half, 1e-300))
}

// Count adds an interval without its width.
func (c *Coverage) Count(held bool) {
	c.All++
	if held {
		c.Held++
	}
}

// Merge adds another's intervals.
func (c *Coverage) Merge(o *Coverage) {
	c.Held += o.Held
	c.All += o.All
	c.halves, c.told, c.off = append(c.halves, o.halves...), append(c.told, o.told...), append(c.off, o.off...)
}

// Share returns the fraction of the intervals that contain the truth, NaN without any.
func (c *Coverage) Share() float64 { return float64(c.Held) / float64(c.All) }

// HalfWidth returns the median of half the intervals' widths, relative to the truth; NaN without any.
func (c *Coverage) HalfWidth() float64 { return Quantile(c.halves, 0.5) }

// Least returns what HalfWidth would be if all intervals were as narrow as may be, so that in each fifth of the answers,
// by how sure they say to be, this share held of each class whose answers may be among them.
func (c *Coverage) Least(share float64, classes ...Coverage) float64 {
	const fifths, few = 5, 20
	var halves []float64
	for k := range fifths {
		low, high, factor := Quantile(c.told, float64(k)/fifths), Quantile(c.told, float64(k+1)/fifths), 0.0
		for _, class := range classes {
			var off []float64
			for i, x := range class.told {
				if low <= x && x <= high {
					off = append(off, class.off[i])
				}
			}
			if len(off) >= few {
				factor = max(factor, Quantile(off, share))
			}
		}
		for i, x := range c.told {
			if low <= x && x <= high {
				halves = append(halves, factor*c.halves[i])
			}
		}
	}
	return Quantile(halves, 0.5)
}
