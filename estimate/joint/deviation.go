package joint

import (
	"context"
	"math"

	"github.com/hoplag/hoplag/estimate"
)

// How far the packets of a flow are from its mean is in the squares of what the
// means leave of the cells. A cell that holds a share s of a flow's w packets
// differs from its part of their sum by w·s·(1−s)·σ² in the square, σ the
// deviation of the flow's packets; and as flows differ in delay, by how they fell
// into cells, for each packet by the square of the distance of its flow's mean
// from the cell's. Means are off too, and by what factor more or less than
// StdDev says, in such squares, is found along with the flows' variances: squares
// are put down to all of these in proportion to what they are believed to bring,
// and each becomes what its cells tell, in rounds (expectation maximisation for
// components of variance).
//
// A cell that holds all of a flow's packets tells nothing of it.
const (
	deviationRounds = 20
	// Every flow has besides its own so many squares that tell a deviation in
	// proportion to its delay, as all flows have it.
	typicalSquares = 1
	leastTypicalOf = 0.1 // of what is not known, at least
	// A square of a sum of few packets varies more than a normal one's: by this
	// part for a single packet, as of exponential delays.
	packetTails = 3
	// Squares of more than this times what is expected count as this.
	mostSquare = 50
	// Freedom counts squares as if what others bring to them were known.
	freedomKnown = 0.5
)

// A deviating is the state of finding deviations.
type deviating struct {
	*weighted
	known    []float64 // by cell: what is known of the square, by how flows fell
	doubtful []float64 // by cell: what means that are off bring, by their StdDev
	factor   float64   // of doubtful
	square   []float64 // by cell: what the means leave
	expect   []float64 // by cell: the square, as flows are believed to be
	times    []float64 // by cell: packets that are there for each expected one
	variance []float64 // by flow
	typical  []float64 // by flow: variance that goes with its delay
}

// deviate fills in the deviations of packets, of delays above base.
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

// brings is what flow f's entry adds to its cell's square for each unit of its
// variance.
func (d *deviating) brings(f, at int, cell uint32) float64 {
	share := d.of(at)
	return d.Packets[f] * share * (1 - share) * d.times[cell]
}

// begin finds the squares and what is known of them, and takes every flow's
// deviation for as large, beside its delay, as all leave it.
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
	unit := make([]float64, len(d.Sum)) // the square for deviations as large as delays
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
	relative := 1.0 // of the variance of packets to the square of their delay
	if all > 0 {
		relative = max(left/all, leastTypicalOf)
	}
	for f, x := range d.typical {
		d.typical[f] = relative * x
		d.variance[f] = d.typical[f]
	}
}

// round makes every flow's variance what its cells tell, and fills in how many
// squares that is.
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
	var off told
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

// DeviationInterval is the interval of the deviation of flow f's packets at the
// given confidence, by Freedom: from 0 and unbounded where that is below 1, and
// without Options.Deviations.
func (r *Result) DeviationInterval(f int, confidence float64) estimate.Interval {
	if r.Deviation == nil || r.Freedom[f] < 1 {
		return estimate.Interval{High: math.Inf(1), Confidence: confidence}
	}
	return estimate.DeviationInterval(r.Deviation[f], uint64(r.Freedom[f]), confidence)
}
