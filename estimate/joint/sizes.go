package joint

import (
	"math"
	"math/bits"
)

// sizePrior is the belief about any flow's packets, by steps: the middle of each, and its probability.
type sizePrior struct{ middle, likely [steps]float64 }

const sizeShape = 0.8 // of the Pareto distribution of sizes, which are rounded down to whole packets

func newSizePrior() *sizePrior {
	var p sizePrior
	for b := 1; b < steps; b++ {
		low, width := step(b)
		p.middle[b] = low + (width-1)/2
		p.likely[b] = math.Pow(low, -sizeShape) - math.Pow(low+width, -sizeShape)
	}
	return &p
}

// weigh returns the mean and variance of a flow's packets, at most the given number, when its rows say told with the given variance.
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
		return min(p.middle[first], most), leastVariance
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
	return min(mean, most), max(squares/total-mean*mean, leastVariance)
}

// Numbers of packets are binned in steps: one each below 16, eight to a power of two from there on.
const (
	single = 16
	steps  = single + 8*(64-4)
)

// stepOf returns the step of n.
func stepOf(n uint64) int {
	if n < single {
		return int(n)
	}
	length := bits.Len64(n)
	return single + 8*(length-5) + int(n>>(length-4)&7)
}

// step returns the smallest number of a step and how many numbers it has.
func step(b int) (low, width float64) {
	if b < single {
		return float64(b), 1
	}
	octave, eighth := (b-single)/8, (b-single)%8
	width = math.Ldexp(2, octave)
	return float64(8+eighth) * width, width
}
