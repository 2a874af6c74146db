package estimate

import "math"

// Cells estimates the mean and deviation of delays of which only sums over
// groups are known: each cell is the sum of the delays of count packets, and
// the groups were made without regard to the delays. A cell's sum has mean
// count·μ and variance count·σ², whatever the distribution, so with sums Xᵢ
// and counts nᵢ over M cells
//
//	D  = ΣXᵢ / Σnᵢ
//	σ² = Σ (Xᵢ − nᵢD)²/nᵢ ÷ (M − 1)
//
// are unbiased for given counts, where a sum of signs and squares (LDA §III-C)
// would add the spread of the counts, times D, to that of the delays.
// Both are computed in one stable pass. The zero value is empty and ready.
//
// A constant added to every delay, such as an offset between clocks, shifts
// the mean and leaves the variance. Delays that depend on one another within
// a cell break the assumption.
//
// Single writer, no locks: one Cells per goroutine, then [Cells.Merge].
type Cells struct {
	cells   uint64
	packets Moments // weighted by count, of the cells' means
}

// Add accumulates a cell that holds the sum of the delays of count packets,
// in nanoseconds, exact below 2^53 (104 days). A cell without packets says
// nothing and is passed over.
func (c *Cells) Add(sum float64, count uint64) {
	if count == 0 {
		return
	}
	c.cells++
	// One rounding: the product is not rounded before the mean is taken off.
	c.packets.absorb(math.FMA(-float64(count), c.packets.mean, sum), count)
}

// Merge accumulates all cells of b.
func (c *Cells) Merge(b Cells) {
	c.cells += b.cells
	c.packets.Merge(b.packets)
}

// Cells is how many cells with packets were accumulated (M).
func (c *Cells) Cells() uint64 { return c.cells }

// N is how many packets they hold (Σnᵢ).
func (c *Cells) N() uint64 { return c.packets.n }

// Mean is the mean delay of the packets (D), in the unit of the sums. Without
// packets it is 0 and means nothing: ask [Cells.N] first.
func (c *Cells) Mean() float64 { return c.packets.mean }

// DegreesOfFreedom is how many cells there are beyond the first: what the
// variance rests on. With none, the deviation is unknown.
func (c *Cells) DegreesOfFreedom() uint64 {
	return max(c.cells, 1) - 1
}

// Variance is the unbiased estimate of the variance of the delay of a packet
// (σ²). Without degrees of freedom it is 0 and means nothing.
func (c *Cells) Variance() float64 {
	if c.cells < 2 {
		return 0
	}
	return c.packets.squares / float64(c.cells-1)
}

// StdDev is the square root of [Cells.Variance].
func (c *Cells) StdDev() float64 { return math.Sqrt(c.Variance()) }

// Delay returns mean, deviation and number of packets as a result, or
// ErrNoSamples. Of a single cell the deviation is 0, because it is unknown.
func (c *Cells) Delay() (Delay, error) {
	if c.packets.n == 0 {
		return Delay{}, ErrNoSamples
	}
	return Delay{Mean: c.Mean(), StdDev: c.StdDev(), N: c.N()}, nil
}

// MeanInterval is a confidence interval of the mean: [StudentInterval] with
// the cells' degrees of freedom, which is exact where the cells' sums are
// normal, and unbounded with fewer than two cells.
func (c *Cells) MeanInterval(confidence float64) Interval {
	return StudentInterval(Delay{Mean: c.Mean(), StdDev: c.StdDev(), N: c.N()}, c.DegreesOfFreedom(), confidence)
}

// DeviationInterval is a confidence interval of the deviation:
// [DeviationInterval] with the cells' degrees of freedom, which is exact
// where the cells' sums are normal. Cells of few packets with heavy-tailed
// delays are not, and it is then too narrow.
func (c *Cells) DeviationInterval(confidence float64) Interval {
	return DeviationInterval(c.StdDev(), c.DegreesOfFreedom(), confidence)
}
