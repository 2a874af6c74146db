package joint

import (
	"context"
	"math"

	"github.com/hoplag/hoplag/estimate"
)

// The deviation of a flow's packets from its mean shows in the squares of what
// the means leave of the cells. Take a cell that holds a share s of a flow's w
// packets, with σ the deviation of the flow's packets. The square of its
// distance from its part of their sum has the mean w·s·(1−s)·σ². Flows differ
// in delay, too: by how they fell into cells, each packet adds the square of
// the distance of its flow's mean from the cell's. And means have errors; the
// factor by which these squares differ from what StdDev says is found along
// with the flows' variances. Squares are attributed to all of these in
// proportion to their expected contributions, and each becomes what its cells
// say, in rounds (expectation maximisation for components of variance).
//
// A cell that holds all of a flow's packets says nothing about their
// deviation.
const (
	deviationRounds = 20
	// Besides its own squares, every flow has this many that say a deviation
	// in proportion to its delay, as all flows have it.
	typicalSquares = 1
	leastTypicalOf = 0.1 // smallest fraction that stays in doubt
	// The square of a sum of few packets varies more than a normal one's: by
	// this part for a single packet, as for exponential delays.
	packetTails = 3
	// Squares above this many times their expectation count as this much.
	mostSquare = 50
	// Freedom counts squares as if the contributions of others were known to
	// this degree.
	freedomKnown = 0.5
)

// A deviating is the state of the search for deviations.
type deviating struct {
	*weighted
	known    []float64 // by cell: the known part of the square, from how flows fell
	doubtful []float64 // by cell: the part from errors of means, by their StdDev
	factor   float64   // of doubtful
	square   []float64 // by cell: what the means leave
	expect   []float64 // by cell: the expected square
	times    []float64 // by cell: packets present for each expected one
	variance []float64 // by flow
	typical  []float64 // by flow: variance in proportion to its delay
}

// deviate fills in the deviations of packets, for delays above base.
func (p *weighted) deviate(ctx context.Context, r *Result, base float64, work *progress) error {
	defer work.next()
	if p.Count == nil || r.StdDev == nil {
		return nil
	}
	cells := func() []float64 { return make([]float64, len(p.Sum)) }
	flows := func() []float64 { return make([]float64, len(p.Packets)) }
	d := &deviating{
		weighted: p, factor: 1, known: cells(), doubtful: cells(), square: cells(), expect: cells(), times: cells(),
		variance: flows(), typical: flows(),
	}
	d.begin(r, base)
	r.Deviation, r.Freedom = d.variance, make([]float32, len(p.Packets))
	for round := range deviationRounds {
		if err := ctx.Err(); err != nil {
			return err
		}
		d.round(r.Freedom)
		work.part(float64(round+1) / deviationRounds)
	}
	for f, v := range d.variance {
		r.Deviation[f] = math.Sqrt(v)
	}
	return nil
}

// brings returns what flow f's entry adds to its cell's square for each unit
// of its variance.
func (d *deviating) brings(f, at int, cell uint32) float64 {
	share := d.of(at)
	return d.Packets[f] * share * (1 - share) * d.times[cell]
}

// begin computes the squares and the known part of them. It starts every flow
// with a deviation that has the same ratio to its delay, the one that fits
// all.
func (d *deviating) begin(r *Result, base float64) {
	mean := d.expect
	d.scatter(mean, r.Mean)
	for c, n := range d.expected() {
		if n > 0 && d.usable(c) && d.Count[c] > 0 {
			d.times[c] = d.Count[c] / n
			mean[c] /= n
			off := d.Sum[c] - d.Count[c]*mean[c]
			d.square[c] = off * off
		}
	}
	unit := make([]float64, len(d.Sum)) // the square if deviations equalled delays
	for f := range d.Packets {
		x := r.Mean[f] - base
		d.typical[f] = x * x
		for i, c := range d.run(f) {
			brings := d.brings(f, f*d.width+i, c)
			apart := r.Mean[f] - mean[c]
			d.known[c] += brings * apart * apart
			d.doubtful[c] += brings * r.StdDev[f] * r.StdDev[f]
			unit[c] += brings * x * x
		}
	}
	var left, all float64
	for c, u := range unit {
		if u > 0 {
			known := d.known[c] + d.doubtful[c]
			left += (min(d.square[c], mostSquare*(u+known)) - known) / (u + known)
			all += u / (u + known)
		}
	}
	relative := 1.0 // ratio of the variance of packets to the square of their delay
	if all > 0 {
		relative = max(left/all, leastTypicalOf)
	}
	for f, x := range d.typical {
		d.typical[f] = relative * x
		d.variance[f] = d.typical[f]
	}
}

// round sets every flow's variance from its cells, and fills in the number of
// squares behind it.
func (d *deviating) round(freedom []float32) {
	for c, known := range d.known {
		d.expect[c] = known + d.factor*d.doubtful[c]
	}
	for f, v := range d.variance {
		for i, c := range d.run(f) {
			d.expect[c] += d.brings(f, f*d.width+i, c) * v
		}
	}
	ratio := func(c uint32) float64 { return min(d.square[c]/d.expect[c], mostSquare) }
	var off struct{ squares, weight float64 }
	for c, x := range d.doubtful {
		if x > 0 && d.expect[c] > 0 {
			part := d.factor * x / d.expect[c]
			off.squares += part * ratio(uint32(c))
			off.weight += part
		}
	}
	for f, v := range d.variance {
		squares, weight, free := typicalSquares*d.typical[f], float64(typicalSquares), 0.0
		for i, c := range d.run(f) {
			if d.expect[c] > 0 {
				part := d.brings(f, f*d.width+i, c) * v / d.expect[c]
				squares += part * ratio(c) * v
				weight += part
				free += part * part / (1 + packetTails/d.Count[c])
			}
		}
		freedom[f] = float32(freedomKnown * free)
		d.variance[f] = squares / weight
	}
	if off.weight > 0 {
		d.factor *= off.squares / off.weight
	}
}

// DeviationInterval returns the interval of the deviation of flow f's packets
// at the given confidence, from Freedom. If Freedom is below 1, or without
// Options.Deviations, it goes from 0 to infinity.
func (r *Result) DeviationInterval(f int, confidence float64) estimate.Interval {
	if r.Deviation == nil || r.Freedom[f] < 1 {
		return estimate.Interval{High: math.Inf(1), Confidence: confidence}
	}
	return estimate.DeviationInterval(r.Deviation[f], uint64(r.Freedom[f]), confidence)
}
