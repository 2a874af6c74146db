package lds

import (
	"math"
	"math/bits"

	"github.com/hoplag/hoplag/hashing"
)

// sizePrior is the belief about any flow's packets before cells are read, by
// steps: the middle of each, the variance within it, and its probability.
type sizePrior struct{ middle, within, likely [steps]float64 }

// sizeShape is the shape of the Pareto distribution of sizes, of which flows have
// the whole packets.
const sizeShape = 0.8

func newSizePrior() *sizePrior {
	var p sizePrior
	for b := 1; b < steps; b++ {
		low, width := step(b)
		p.middle[b] = low + (width-1)/2
		p.within[b] = (width*width - 1) / 12
		p.likely[b] = math.Pow(low, -sizeShape) - math.Pow(low+width, -sizeShape)
	}
	return &p
}

// weigh returns the mean and variance of a flow's packets, at most the given
// number, when its rows say a mean of told with the given variance.
func (p *sizePrior) weigh(told, variance, most float64) (float64, float64) {
	nearest := min(max(told, 1), most)
	if _, width := step(stepOf(uint64(nearest + 1))); width > 1 && variance < width*width {
		// Steps are too wide here, but the prior is close to an exponential.
		slope := (1 + sizeShape) / nearest
		return min(max(told-variance*slope, 1), most), variance / (1 - variance*slope/nearest)
	}
	reach := 4 * math.Sqrt(variance)
	first, last := stepOf(uint64(max(1, nearest-reach))), stepOf(uint64(min(most, nearest+reach+0.5)))
	if first == last {
		return min(p.middle[first], most), decodeLeast
	}
	scale := 0.5 / variance
	least := p.middle[stepOf(uint64(nearest+0.5))] - told // so that not all weights are 0
	var total, sum, squares float64
	for b := first; b <= last; b++ {
		off := p.middle[b] - told
		weight := p.likely[b] * math.Exp(min(0, (least*least-off*off)*scale))
		total += weight
		weight *= p.middle[b]
		sum += weight
		squares += weight * p.middle[b]
	}
	mean := sum / total
	return min(mean, most), max(squares/total-mean*mean, decodeLeast)
}

// likely returns the mean and variance of flow f's packets. It weights each
// size by how likely the flow's rows are to hold the rest for others.
func (c counts) likely(f hashing.Flow, prior *sizePrior, others *densities) (mean, variance float64) {
	var held [MaxRows]float64
	for r := range c.Rows {
		held[r] = float64(c.place(r, f))
	}
	most := c.bound(f)
	var total, sum, squares float64
	for b := 1; b < steps && (b == 1 || prior.middle[b] <= most); b++ {
		weight := prior.likely[b]
		for r := range c.Rows {
			left := max(0, held[r]-prior.middle[b]*c.Rates[r])
			weight *= others[r][stepOf(uint64(left+0.5))]
		}
		total += weight
		sum += weight * prior.middle[b]
		squares += weight * (prior.middle[b]*prior.middle[b] + prior.within[b])
	}
	mean = sum / total
	return mean, max(squares/total-mean*mean, decodeLeast)
}

// densities says, by row, how likely places are to hold a given number of
// packets.
type densities [MaxRows][steps]float64

// densities returns the distribution of what others bring to a flow's cells.
// It equals that of any cells' contents, because flows fall at random.
func (c counts) densities() (d densities) {
	for r := range c.Rows {
		d[r] = c.density(r)
	}
	return d
}

// density returns the fraction of the places for a flow in row r, Spread
// neighbouring cells each, that hold a given number of packets, per packet and
// by steps. It is smoothed over neighbouring steps and nowhere 0.
func (c counts) density(r int) (d [steps]float64) {
	cells := c.held[r*c.Columns : (r+1)*c.Columns]
	var held uint64
	for _, n := range cells[:c.Spread] {
		held += n
	}
	var places [steps]float64
	for i := range cells {
		places[stepOf(held)]++
		held += cells[(i+c.Spread)%c.Columns] - cells[i]
	}
	kernel := [...]float64{0.1, 0.2, 0.4, 0.2, 0.1}
	for b := range d {
		var near, weights float64
		for k, weight := range kernel {
			if at := b + k - len(kernel)/2; at >= 0 && at < steps {
				near += weight * places[at]
				weights += weight
			}
		}
		_, width := step(b)
		d[b] = max(near/weights, 0.01) / float64(len(cells)) / width
	}
	return d
}

// Numbers of packets are binned in steps: one each below 16, eight to a power
// of two from there on.
const (
	exact = 16
	steps = exact + 8*(64-4)
)

// stepOf returns the step of n.
func stepOf(n uint64) int {
	if n < exact {
		return int(n)
	}
	length := bits.Len64(n)
	return exact + 8*(length-5) + int(n>>(length-4)&7)
}

// step returns the smallest number of a step and how many numbers it has.
func step(b int) (low, width float64) {
	if b < exact {
		return float64(b), 1
	}
	octave, eighth := (b-exact)/8, (b-exact)%8
	width = math.Ldexp(2, octave)
	return float64(8+eighth) * width, width
}
