package lds

import (
	"context"
	"math"

	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
)

// counting is the state of DecodePackets.
type counting struct {
	counts
	prior  *sizePrior
	cells  []uint32         // of all flows, Rows × Spread each
	told   []message        // by the rows to the flows, Rows for each
	rest   []amount         // what cells hold beyond what their flows are believed to have there
	shares [MaxRows]float64 // by row: the part of a flow's packets that each of its cells has
	alike  float64          // see expected

	// What is believed of each flow's packets, and how many it had at most. With
	// a variance of 0 it had none. Those that were known are fixed.
	mean, variance, most []float64
	fixed                []bool
	rests                []uint8 // for how many rounds a flow is left alone
}

// A message is a mean of packets, times its precision, and that.
type message struct{ weighted, precision float64 }

// An amount is a number of packets that is believed, and its variance.
type amount struct{ packets, variance float64 }

// counting begins with what each flow's cells tell of it alone.
func (c counts) counting(ctx context.Context, flows []joint.FlowRecord) (*counting, error) {
	keys, n := make([]hashing.Flow, len(flows)), len(flows)
	for i, f := range flows {
		keys[i] = f.Flow
	}
	d := &counting{
		counts: c, prior: newSizePrior(), cells: c.cellsOf(keys),
		fixed: make([]bool, n), rests: make([]uint8, n), mean: make([]float64, n), variance: make([]float64, n), most: make([]float64, n),
		told: make([]message, n*c.Rows), rest: make([]amount, len(c.held)),
		// Two flows that meet in one cell of a row mostly meet in its neighbours,
		// too, and what one is off by is then in all of these: as many times as if
		// they were independent, over all distances between the two.
		alike: 1 + float64((c.Spread-1)*(2*c.Spread-1))/float64(3*c.Spread),
	}
	for r := range c.Rows {
		d.shares[r] = c.Rates[r] / float64(c.Spread)
	}
	for at, n := range c.held {
		d.rest[at].packets = float64(n)
	}
	others := c.densities()
	for i, f := range flows {
		if i%4096 == 0 {
			if err := decodingEnds(ctx); err != nil {
				return nil, err
			}
		}
		switch {
		case f.Packets > 0:
			d.fixed[i], d.mean[i], d.variance[i] = true, f.Packets, max(f.Doubt*f.Doubt, decodeLeast)
		case !c.absent(f.Flow):
			d.mean[i], d.variance[i] = c.likely(f.Flow, d.prior, &others)
		}
		d.most[i] = c.most(f.Flow)
		if d.variance[i] > 0 {
			for r := range c.Rows {
				d.add(i, r, d.expected(i, r), 1)
			}
		}
	}
	return d, nil
}

// round is one round, in which messages move by this part of the way. It returns
// which part of the packets moved from flow to flow.
func (d *counting) round(step float64) (moved float64) {
	c := d.Config
	misfit := d.misfit()
	var packets float64
	for i, v := range d.variance {
		if v == 0 || d.fixed[i] {
			continue
		}
		packets += d.mean[i]
		if d.rests[i] > 0 {
			d.rests[i]--
			continue
		}
		var all message
		var before [MaxRows]amount
		for r := range c.Rows {
			before[r] = d.expected(i, r)
			row := d.tells(i, r, before[r], misfit)
			told := &d.told[i*c.Rows+r]
			told.weighted += step * (row.weighted - told.weighted)
			told.precision += step * (row.precision - told.precision)
			all.weighted += told.weighted
			all.precision += told.precision
		}
		was := d.mean[i]
		d.mean[i], d.variance[i] = d.prior.weigh(all.weighted/all.precision, 1/all.precision, d.most[i])
		off := math.Abs(d.mean[i] - was)
		moved += off
		if off < decodeStill*math.Sqrt(max(d.variance[i], decodeSurest)) {
			d.rests[i] = decodeRests
		}
		for r := range c.Rows {
			d.add(i, r, before[r], -1)
			d.add(i, r, d.expected(i, r), 1)
		}
	}
	return moved / max(packets, 1)
}

// widen makes flows' variances larger by as much as their cells are farther from
// what is expected of them than their variances say. Where flows were wrongly
// told apart, their other cells do not fit.
func (d *counting) widen() {
	for i, v := range d.variance {
		if v == 0 || d.fixed[i] {
			continue
		}
		var squares, cells float64
		for _, at := range d.cells[i*d.Rows*d.Spread : (i+1)*d.Rows*d.Spread] {
			if rest := d.rest[at]; rest.variance > 0 {
				squares += min(rest.packets*rest.packets/rest.variance, decodeMisfit)
				cells++
			}
		}
		d.variance[i] = v * max(1, squares/max(1, cells))
	}
}

// tells is what row r tells flow i, of which so much was expected in each cell:
// each cell by itself, where the flow's own packets are a noise of their number;
// then together, as those that are not in one cell are in another.
func (d *counting) tells(i, r int, expected amount, misfit float64) (row message) {
	share := d.shares[r]
	own := share * d.mean[i]
	apart := 1 - d.Rates[r]
	for _, at := range d.run(i, r) {
		rest := d.rest[at]
		others := misfit*max(0, rest.variance-expected.variance) + decodeLeast
		precision := share / (others + own)
		row.weighted += precision * (rest.packets + expected.packets)
		row.precision += precision * share
		apart += precision * others
	}
	apart = 1 / apart
	return message{row.weighted * apart, row.precision * apart}
}

// add takes what flow i is expected to have in row r off what is left of its
// cells, or with a sign of -1 gives it back.
func (d *counting) add(i, r int, expected amount, sign float64) {
	for _, at := range d.run(i, r) {
		d.rest[at].packets -= sign * expected.packets
		d.rest[at].variance += sign * expected.variance
	}
}

// run is the cells of flow i in row r.
func (d *counting) run(i, r int) []uint32 {
	c := d.Config
	return d.cells[(i*c.Rows+r)*c.Spread:][:c.Spread]
}

// expected is what flow i brings to each of its cells in row r, as it is believed
// to be but for what that row told.
func (d *counting) expected(i, r int) amount {
	mean, variance, told := d.mean[i], d.variance[i], d.told[i*d.Rows+r]
	part := variance * told.precision
	if part > decodeMostTold {
		told.weighted *= decodeMostTold / part
		part = decodeMostTold
	}
	left := 1 / (1 - part)
	mean = max((mean-variance*told.weighted)*left, 1)
	variance = max(variance, decodeSurest) * left
	share := d.shares[r]
	return amount{share * mean, d.alike*share*share*variance + share*(1-share)*mean}
}

// misfit is how much larger the squares of the cells' rests are than they should
// be, and at least 1.
func (d *counting) misfit() float64 {
	var sum, cells float64
	for _, at := range d.rest {
		if at.variance > 0 {
			sum += min(at.packets*at.packets/at.variance, decodeMisfit)
			cells++
		}
	}
	return max(1, sum/max(1, cells))
}

// beginSharing begins to share every cell's count out among its flows in
// proportion to what they are believed to have there beyond their first packets
// (expectation maximisation for Poisson counts). It returns what the cells hold
// beyond first packets and those of fixed flows.
func (d *counting) beginSharing() []float64 {
	left := make([]float64, len(d.held))
	for at, n := range d.held {
		left[at] = float64(n)
	}
	for i, v := range d.variance {
		if v == 0 {
			continue
		}
		taken := 1.0
		if d.fixed[i] {
			taken = d.mean[i]
		} else {
			// Something is left, so that every flow can grow.
			d.mean[i] = max(d.mean[i]-1, 1e-3)
		}
		for r := range d.Rows {
			for _, at := range d.run(i, r) {
				left[at] -= taken * d.shares[r]
			}
		}
	}
	return left
}

// share is one round of sharing. It uses the packets of rest for what flows of a
// cell are believed to have beyond their first packets.
func (d *counting) share(left []float64) {
	var rates float64
	for _, rate := range d.Rates {
		rates += rate
	}
	for at := range d.rest {
		d.rest[at].packets = 0
	}
	for i, n := range d.mean {
		if d.fixed[i] {
			continue
		}
		for r := range d.Rows {
			for _, at := range d.run(i, r) {
				d.rest[at].packets += n * d.shares[r]
			}
		}
	}
	for at, n := range left {
		if believed := &d.rest[at].packets; *believed > 0 {
			*believed = max(0, n) / *believed // what there is of it
		}
	}
	for i, n := range d.mean {
		if d.fixed[i] {
			continue
		}
		var found float64
		for r := range d.Rows {
			for _, at := range d.run(i, r) {
				found += d.rest[at].packets * d.shares[r]
			}
		}
		d.mean[i] = n * found / rates
	}
}

// endSharing gives every flow its first packet back.
func (d *counting) endSharing() {
	for i, v := range d.variance {
		if v > 0 && !d.fixed[i] {
			d.mean[i]++
		}
	}
}
