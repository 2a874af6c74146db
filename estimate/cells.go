package estimate

import (
	"math"
	"math/bits"
)

// Cells estimates the mean and deviation of delays of which only sums over groups are known. Each cell is the
// sum of the delays of count packets, and packets were put into cells without regard to their delays. Whatever
// the distribution, a cell's sum has mean count·μ and variance count·σ². So with sums Xᵢ and counts nᵢ over M
// cells
//
//	D  = ΣXᵢ / Σnᵢ
//	yᵢ = (Xᵢ − nᵢD)²/nᵢ
//	σ² = Σ wᵢyᵢ / Σ wᵢ(1 − nᵢ/Σnⱼ)
//
// are unbiased for given counts and weights. The best weights are 1/(2 + κ/nᵢ), with κ the excess kurtosis of
// the delays, of which classes of cells of similar counts give an estimate: METHODS.md, section 1.
//
// A clock's offset shifts the mean and does not change the variance. Delays that depend on one another within a
// cell break the assumption. The zero value is empty and ready to use. Cells are not safe for concurrent use.
type Cells struct {
	classes [cellClasses]cellClass
}

const cellClasses = 10 // of counts 1 to 3, 4 to 15, and so on by factors of four

// A cellClass has the cells of similar count.
type cellClass struct {
	cells   uint64
	packets Moments   // weighted by count, of the cells' means
	inverse float64   // sum of 1/count
	powers  powerSums // of the cells' means about that mean
}

// Add adds a cell that holds the sum of the delays of count packets in
// nanoseconds, exact below 2^53 (104 days). It ignores a cell without packets.
func (c *Cells) Add(sum float64, count uint64) {
	if count == 0 {
		return
	}
	class := &c.classes[min((bits.Len64(count)-1)/2, cellClasses-1)]
	n, before := float64(count), class.packets.mean
	// Round once: the product is not rounded before the mean is subtracted.
	excess := math.FMA(-n, before, sum)
	class.packets.absorb(excess, count)
	shift := class.packets.mean - before
	class.powers.shift(shift)
	class.powers.add(excess/n-shift, n)
	class.inverse += 1 / n
	class.cells++
}

// Cells returns the number of cells with packets (M).
func (c *Cells) Cells() uint64 {
	var m uint64
	for i := range c.classes {
		m += c.classes[i].cells
	}
	return m
}

// N returns the number of packets in the cells (Σnᵢ).
func (c *Cells) N() uint64 {
	var n uint64
	for i := range c.classes {
		n += c.classes[i].packets.n
	}
	return n
}

// Mean returns the mean delay of the packets (D), in the unit of the sums.
// Without packets it is 0 and means nothing; check [Cells.N] first.
func (c *Cells) Mean() float64 {
	var all Moments
	for i := range c.classes {
		all.Merge(c.classes[i].packets)
	}
	return all.mean
}

// DegreesOfFreedom returns the number of cells beyond the first. If it is 0, the deviation is unknown.
func (c *Cells) DegreesOfFreedom() uint64 { return max(c.Cells(), 1) - 1 }

// kurtosisRounds is how often weights and kurtosis are fitted to each other.
const kurtosisRounds = 3

// A weight is 1/(2 + κ/n) along a class, as a line through its mean count: flat
// for light tails, and proportional to n for heavy ones.
type weight struct{ flat, slope float64 }

func (k *cellClass) weight(kurtosis float64) weight {
	n := float64(k.packets.n) / float64(k.cells)
	below := 2*n + kurtosis
	slope := kurtosis / (below * below)
	return weight{flat: n/below - slope*n, slope: slope}
}

// cellSquares holds, for each class, the sums of yᵢ, nᵢyᵢ and yᵢ² about one mean.
type cellSquares struct{ plain, counted, quartic float64 }

// squares returns the classes' squares about the overall mean.
func (c *Cells) squares() (squares [cellClasses]cellSquares) {
	mean := c.Mean()
	for i := range c.classes {
		k := &c.classes[i]
		d := mean - k.packets.mean
		powers := k.powers
		powers.shift(d)
		squares[i] = cellSquares{k.packets.squares + float64(k.packets.n)*d*d, powers[2], powers[4]}
	}
	return squares
}

// fit estimates the variance σ² and the kurtosis κ, which is at least 0. There is at least one degree of freedom.
func (c *Cells) fit() (variance, kurtosis float64) {
	squares, total := c.squares(), float64(c.N())
	weigh := func(of func(k *cellClass) weight) float64 {
		var sum, by float64
		for i := range c.classes {
			if k := &c.classes[i]; k.cells > 0 {
				w, n := of(k), float64(k.packets.n)
				sum += w.flat*squares[i].plain + w.slope*squares[i].counted
				by += w.flat*(float64(k.cells)-n/total) + w.slope*(n-k.powers[0]/total)
			}
		}
		return max(sum/by, 0)
	}
	variance = weigh(func(*cellClass) weight { return weight{slope: 1} })
	for range kurtosisRounds {
		kurtosis = 0
		for i := range c.classes {
			if k := &c.classes[i]; k.cells >= 2 && variance > 0 {
				// The kurtosis that this class is nearly sure of: less twice its standard error if tails are
				// light.
				m := float64(k.cells)
				excess := squares[i].quartic/(variance*variance) - 3*m - 2*math.Sqrt(96*m)
				kurtosis = max(kurtosis, excess/k.inverse)
			}
		}
		variance = weigh(func(k *cellClass) weight { return k.weight(kurtosis) })
	}
	return variance, kurtosis
}

// Variance returns the unbiased estimate of the variance of the delay of a
// packet (σ²). Without degrees of freedom it is 0 and means nothing.
func (c *Cells) Variance() float64 {
	if c.DegreesOfFreedom() == 0 {
		return 0
	}
	variance, _ := c.fit()
	return variance
}

// StdDev returns the square root of [Cells.Variance].
func (c *Cells) StdDev() float64 { return math.Sqrt(c.Variance()) }

// Delay returns mean, deviation and number of packets as a result, or
// ErrNoSamples. Of a single cell the deviation is 0, because it is unknown.
func (c *Cells) Delay() (Delay, error) {
	if c.N() == 0 {
		return Delay{}, ErrNoSamples
	}
	return Delay{Mean: c.Mean(), StdDev: c.StdDev(), N: c.N()}, nil
}

// EffectiveDegrees returns the degrees of freedom with which normal sums would give a variance as uncertain as
// this one, by Satterthwaite's rule: 2·mean²/variance of the weighted squares, at least 1 if there are two
// cells, and at most [Cells.DegreesOfFreedom]. Heavy tails in cells of few packets make them fewer, unless the
// cells hold all packets in question, and these count alike; share is the fraction that they hold. The result is
// itself an estimate: asked for 95 % with share 0 and 5 delays a cell, [DeviationInterval] covered 93 % with 100
// cells and 94 % with 1,000 for exponential delays, but 71 % and 74 % for Pareto delays of index 3, whose fourth
// moment is infinite.
func (c *Cells) EffectiveDegrees(share float64) uint64 {
	most := c.DegreesOfFreedom()
	if most == 0 {
		return 0
	}
	var by, spread, squares, own float64 // Σw, and Σw²y², Σw² and Σw²/n
	variance, kurtosis := c.fit()
	of := c.squares()
	for i := range c.classes {
		if k := &c.classes[i]; k.cells > 0 {
			m := float64(k.cells)
			w := 1 / (2 + kurtosis*k.inverse/m)
			by += w * m
			spread += w * w * max(of[i].quartic-of[i].plain*of[i].plain/m, 0)
			squares += w * w * m
			own += w * w * k.inverse
		}
	}
	all := float64(c.Cells())
	spread = max(spread/(variance*variance)*all/max(all-1, 1), 2*squares) // of the weighted squares, in σ⁴
	// A packet's own square counts by w/n. If all counted alike and the cells held all, their sum would be known. What
	// is not their own are the products of two packets.
	spread -= (spread - 2*(squares-own)) * min(max(share, 0), 1) * by * by / (float64(c.N()) * own)
	if d := 2 * by * by / spread; d >= 0 && d < float64(most) {
		return max(1, uint64(d))
	}
	return most
}

// powerSums holds, for k = 0…4, the sums over cells of their count squared times the k-th power of the distance
// of the cell's mean from a common centre.
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
