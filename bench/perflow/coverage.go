package perflow

import "github.com/hoplag/hoplag/estimate"

// A Coverage counts the intervals that contain the truth, and records their widths.
type Coverage struct {
	Held, All uint64
	halves    []float64 // relative to the truth
}

// Add adds an interval and the truth that it should contain.
func (c *Coverage) Add(i estimate.Interval, truth float64) {
	c.Count(i.Contains(truth))
	c.halves = append(c.halves, (i.High-i.Low)/2/truth)
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
	c.halves = append(c.halves, o.halves...)
}

// Share returns the fraction of the intervals that contain the truth, NaN without any.
func (c *Coverage) Share() float64 { return float64(c.Held) / float64(c.All) }

// HalfWidth returns the median of half the intervals' widths, relative to the truth; NaN without any.
func (c *Coverage) HalfWidth() float64 { return Quantile(c.halves, 0.5) }
