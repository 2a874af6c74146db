package lds

import (
	"math"
	"math/bits"
	"slices"

	"github.com/hoplag/hoplag/estimate"
)

// Flows fall at random, so others bring to a flow's cell what the cells next to it hold: each
// of these is a candidate. If others brought u packets with the sum s to a cell of n packets and
// the mean m, the mean of the flow is off by (s − u·m) ÷ (n − u). A candidate is the likelier, the
// better the n − u packets that it leaves explain the flow's cells in all rows (METHODS, section 8).
const lengths = 33 // classes of packet counts, by their binary length

// A candidate is an error of a mean, with its likelihood.
type candidate struct{ off, weight float64 }

// others look for candidates.
type others struct {
	*view
	row     int                       // of the cell that was read
	counts  [MaxRows]float64          // packets of the flow's least loaded cell in each row
	alike   [MaxRows]int              // the first row of the same rate
	density [MaxRows][lengths]float64 // relative likelihood that a cell holds a number of packets

	list [2 * nearCells * MaxRows]candidate
	used int

	doubt float64 // variance of how many packets the cell that was read stands for
	// How far the means of cells next to the flow's are from its own.
	beside, distances, farthest float64
}

// meanError returns the scale of the error of the mean of the cell that was read, for
// Student's distribution of intervalDegrees. It is +Inf if there is no candidate.
func (o *others) meanError(own *content) float64 {
	c, n, mean := o.config, own.packets, own.beyond/own.packets
	o.look()
	part := c.Rates[o.row] / float64(c.Spread)
	o.doubt = n * (1 - part) / (part * part)
	for r := range c.Rows {
		for _, near := range o.near(r) {
			o.add(&near, n, part, mean, o.alike[r] == o.alike[o.row])
		}
	}
	off, most := 0.0, 2*o.apart
	if o.beside > 0 {
		most = o.farthest + math.Sqrt(o.distances/o.beside)
	}
	if !o.alone(own) {
		off = o.quantile(most)
	}
	// Which of the flow's packets are in the cell is chance, and so is how long
	// those took that are not known.
	sampled := 0.0
	if part < 1 {
		sampled = o.single * (1 - part) / n
	}
	return math.Sqrt(off*off+sampled+own.variance/(n*n)) + rounding*math.Abs(mean)
}

// alone reports whether the flow is alone in the cell that was read, because rows that
// see every packet have the same packets in its cells. The chance that others are in
// all of these cells, too, has to be small.
func (o *others) alone(own *content) bool {
	const mostChance = 3e-4
	columns := float64(o.config.Columns)
	chance, cells, empty := columns, 0.0, 0.0
	for r, rate := range o.config.Rates[:o.config.Rows] {
		if rate < 1 || o.config.Spread > 1 || o.own(r)[0] != *own {
			continue
		}
		chance /= columns
		for _, near := range o.near(r) {
			cells++
			if near.packets == 0 {
				empty++
			}
		}
	}
	flows := -math.Log(empty / (cells + 1)) // of a cell, on average, at most
	return cells > 0 && chance*flows <= mostChance
}

// look reads what the flow's cells and those next to them hold.
func (o *others) look() {
	c := o.config
	for r := range c.Rows {
		for o.alike[r] < r && c.Rates[o.alike[r]] != c.Rates[r] {
			o.alike[r]++
		}
		o.counts[r] = math.Inf(1)
		for _, own := range o.own(r) {
			o.counts[r] = min(o.counts[r], own.packets)
		}
		for _, near := range o.near(r) {
			o.density[o.alike[r]][bits.Len32(uint32(near.packets+0.5))]++
		}
	}
	for r := range c.Rows {
		if o.alike[r] == r {
			smooth(&o.density[r])
		}
	}
}

// smooth turns numbers of cells into densities. No number of packets is
// impossible.
func smooth(cells *[lengths]float64) {
	const seldom = 0.05
	before, width := cells[0], 1.0
	for b, n := range cells {
		after := cells[min(b+1, lengths-1)]
		cells[b] = ((before+2*n+after)/4 + seldom) / width
		before = n
		if b > 0 {
			width *= 2
		}
	}
}

// likely returns how likely others are to bring n packets to a cell of row r,
// if n is uncertain by a variance.
func (o *others) likely(r int, n, variance float64) float64 {
	miss := 1.0
	if n < 0 {
		if variance == 0 {
			return 0
		}
		miss = math.Exp(-n * n / (2 * variance))
	}
	if n*n < variance {
		n = math.Sqrt(variance)
	}
	return miss * o.density[o.alike[r]][bits.Len32(uint32(n+0.5))]
}

// sizeShape is the shape of the Pareto distribution of sizes.
const sizeShape = 0.8

// explains returns how likely it is that the flow has this many packets, by the
// rows other than its own.
func (o *others) explains(packets float64) float64 {
	likely := math.Pow(packets, -1-sizeShape)
	for r, rate := range o.config.Rates[:o.config.Rows] {
		if part := rate / float64(o.config.Spread); r != o.row {
			likely *= o.likely(r, o.counts[r]-part*packets, part*(1-part)*packets+part*part*o.doubt)
		}
	}
	return likely
}

// add adds a cell next to the flow's.
func (o *others) add(near *content, n, part, mean float64, alike bool) {
	u, sum := near.packets, near.beyond
	switch {
	case u == 0:
		if alike {
			o.list[o.used] = candidate{0, o.explains(n / part)}
			o.used++
		}
		return
	case !near.usable || near.variance > certain*u*u*o.apart*o.apart:
		return
	}
	o.beside++
	distance := math.Abs(sum/u - mean)
	o.distances += distance * distance
	o.farthest = max(o.farthest, distance)
	if u < n && alike {
		o.list[o.used] = candidate{math.Abs(sum-u*mean) / (n - u), o.explains((n - u) / part)}
		o.used++
	}
}

// certain is the greatest variance of a cell's mean that tells of others, in
// variances of means of cells.
const certain = 0.1

// quantile returns that of the candidates at intervalOf, but at most the given error,
// as a part of Student's.
func (o *others) quantile(most float64) float64 {
	list, total, squares, mean := o.list[:o.used], 0.0, 0.0, 0.0
	for _, c := range list {
		total += c.weight
		squares += c.weight * c.weight
		mean += c.weight * sq(min(c.off, most))
	}
	if total == 0 {
		return math.Inf(1)
	}
	slices.SortFunc(list, func(a, b candidate) int {
		if a.off < b.off {
			return -1
		}
		return 1
	})
	// As many candidates as these are worth miss the next one with a probability
	// of one in as many and one.
	worth := total * total / squares
	left, at := min(1, intervalOf*(worth+1)/worth)*total, 0
	for ; at < len(list)-1 && left > list[at].weight; at++ {
		left -= list[at].weight
	}
	if off := min(list[at].off, most); off > 0 {
		return off / studentAt
	}
	// Nearly all are right: what the others are off by, and the next one.
	return math.Sqrt((worth*mean/total + sq(most)) / (worth + 1))
}

// intervalDegrees are the degrees of freedom of the Student distribution
// behind MeanInterval: its tails are as heavy as those of sizes.
const intervalDegrees = 4

const intervalOf = 0.95 // of the candidates, within studentAt times MeanError

var studentAt = estimate.StudentQuantile((1+intervalOf)/2, intervalDegrees)

// MeanInterval returns the interval of the flow's mean at the given
// confidence, between 0 and 1: Student's, from MeanError, and Late above it. That of an
// [Accumulator] also holds what the ends of the report owe it. It is infinite if MeanError is.
func (r *Result) MeanInterval(confidence float64) estimate.Interval {
	if r.N == 0 || math.IsInf(r.MeanError, 1) {
		return estimate.Interval{Low: math.Inf(-1), High: math.Inf(1), Confidence: confidence}
	}
	i := estimate.StudentInterval(estimate.Delay{Mean: r.Mean, StdDev: r.MeanError, N: 1}, intervalDegrees, confidence)
	i.Low -= r.less
	i.High += r.Late + r.more
	return i
}
