package joint

import (
	"math"
	"math/bits"
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

// alone returns the mean and variance of flow i's packets by its own cells. It
// weighs each size by how likely it is that the rest of the flow's rows belongs
// to others.
func (d *counting) alone(i int, others [][steps]float64) (mean, variance float64) {
	held, most := d.held, math.Inf(1)
	for r, rate := range d.Rates {
		held[r] = float64(d.place(i, r))
		most = min(most, (held[r]+(1-rate)*3*(1.5+math.Sqrt(held[r]+2.25)))/rate)
	}
	p := d.prior
	var total, sum, squares float64
	for b := 1; b < steps && (b == 1 || p.middle[b] <= most); b++ {
		weight := p.likely[b]
		for r, rate := range d.Rates {
			weight *= others[r][stepOf(uint64(max(0, held[r]-p.middle[b]*rate)+0.5))]
		}
		total += weight
		sum += weight * p.middle[b]
		squares += weight * (p.middle[b]*p.middle[b] + p.within[b])
	}
	mean = sum / total
	return mean, max(squares/total-mean*mean, leastVariance)
}

// densities returns, by row, the distribution of what others bring to a flow's cells.
// It equals that of any neighbouring cells' contents, because flows fall at random:
// per packet and by steps, smoothed over neighbouring steps and nowhere 0.
func (c *Counts) densities() [][steps]float64 {
	all, columns := make([][steps]float64, c.Rows), len(c.Held)/c.Rows
	for r := range all {
		cells := c.Held[r*columns : (r+1)*columns]
		var held uint64
		for _, n := range cells[:min(c.CellsPerRow, columns)] {
			held += n
		}
		var places [steps]float64
		for i := range cells {
			places[stepOf(held)]++
			held += cells[(i+c.CellsPerRow)%columns] - cells[i]
		}
		kernel := [...]float64{0.1, 0.2, 0.4, 0.2, 0.1}
		for b := range all[r] {
			var near, weights float64
			for k, weight := range kernel {
				if at := b + k - len(kernel)/2; at >= 0 && at < steps {
					near += weight * places[at]
					weights += weight
				}
			}
			_, width := step(b)
			all[r][b] = max(near/weights, 0.01) / float64(columns) / width
		}
	}
	return all
}

// Numbers of packets are binned in steps: one each below 16, eight to a power
// of two from there on.
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
