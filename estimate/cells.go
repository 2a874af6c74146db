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
// are unbiased for given counts. The squares of signed sums that LDA takes
// instead, its eq. (5), carry the spread of the counts, times D, as well as
// that of the delays. Both are computed in one stable pass. The zero value is
// empty and ready.
//
// A constant added to every delay, such as an offset between clocks, shifts
// the mean and leaves the variance. Delays that depend on one another within
// a cell break the assumption.
//
// Single writer, no locks: one Cells per goroutine, then [Cells.Merge].
type Cells struct {
	cells   uint64
	packets Moments   // weighted by count, of the cells' means
	powers  powerSums // of the cells' means about that mean
}

// Add accumulates a cell that holds the sum of the delays of count packets,
// in nanoseconds, exact below 2^53 (104 days). A cell without packets says
// nothing and is passed over.
func (c *Cells) Add(sum float64, count uint64) {
	if count == 0 {
		return
	}
	n, before := float64(count), c.packets.mean
	// One rounding: the product is not rounded before the mean is taken off.
	excess := math.FMA(-n, before, sum)
	c.packets.absorb(excess, count)
	shift := c.packets.mean - before
	c.powers.shift(shift)
	c.powers.add(excess/n-shift, n)
	c.cells++
}

// Merge accumulates all cells of b.
func (c *Cells) Merge(b Cells) {
	before := c.packets.mean
	c.cells += b.cells
	c.packets.Merge(b.packets)
	c.powers.shift(c.packets.mean - before)
	b.powers.shift(c.packets.mean - b.packets.mean)
	for k := range c.powers {
		c.powers[k] += b.powers[k]
	}
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
// [DeviationInterval] with the degrees of freedom that the cells' squares
// really have. Those of cells with normal sums have M−1; where delays have
// heavy tails and cells few packets, the squares vary more and are worth
// fewer, by Satterthwaite's rule 2·M·mean²/variance of the squares, floored
// and at least 1. It is still an estimate from finitely many squares: of 95 %
// asked with 5 delays a cell, it covered 93 % with 100 cells and 94 % with
// 1,000 of exponential delays (M−1 degrees: 87 % and 86 %), but 71 % and 74 %
// of Pareto delays of index 3 (39 % and 24 %), whose fourth moment is infinite.
func (c *Cells) DeviationInterval(confidence float64) Interval {
	return DeviationInterval(c.StdDev(), c.EffectiveDegrees(), confidence)
}

// EffectiveDegrees is how many degrees of freedom the variance would rest on
// if the cells' sums were normal, by Satterthwaite's rule: at least 1 where
// there are two cells, and at most [Cells.DegreesOfFreedom].
func (c *Cells) EffectiveDegrees() uint64 {
	degrees := c.DegreesOfFreedom()
	if degrees == 0 {
		return 0
	}
	// The squares are (Xᵢ − nᵢD)²/nᵢ = nᵢ·(mean of the cell − D)².
	m := float64(c.cells)
	mean := c.packets.squares / m
	variance := (c.powers[4] - m*mean*mean) / (m - 1)
	if effective := 2 * m * mean * mean / variance; effective >= 0 && effective < float64(degrees) {
		return uint64(max(effective, 1))
	}
	return degrees
}

// powerSums are, for k = 0…4, the sums over cells of their count squared times
// the k-th power of how far the mean of the cell is from a common centre.
type powerSums [5]float64

func (s *powerSums) add(distance, count float64) {
	term := count * count
	for k := range s {
		s[k] += term
		term *= distance
	}
}

// shift moves the centre by d, by the binomial theorem.
func (s *powerSums) shift(d float64) {
	s[4] += d * (-4*s[3] + d*(6*s[2]+d*(-4*s[1]+d*s[0])))
	s[3] += d * (-3*s[2] + d*(3*s[1]-d*s[0]))
	s[2] += d * (-2*s[1] + d*s[0])
	s[1] -= d * s[0]
}
