package perflow

import "github.com/hoplag/hoplag/estimate"

// A Coverage counts the intervals that hold the truth, and knows how wide they
// are.
type Coverage struct {
	Held, All uint64
	halves    []float64 // relative to the truth
}

// Add takes an interval, and what it should hold.
func (c *Coverage) Add(i estimate.Interval, truth float64) {
	c.Count(i.Contains(truth))
	c.halves = append(c.halves, (i.High-i.Low)/2/truth)
}

// Count takes an interval of whose width nothing is asked.
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

// Share is the part of the intervals that hold the truth, NaN without any.
func (c *Coverage) Share() float64 { return float64(c.Held) / float64(c.All) }

// HalfWidth is the median of half the intervals' widths, relative to the truth;
// NaN without any.
func (c *Coverage) HalfWidth() float64 { return Quantile(c.halves, 0.5) }
