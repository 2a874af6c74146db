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
	cells  []uint32         // of all flows, Rows × Spread for each
	told   []message        // from the rows to the flows, Rows for each
	sent   []amount         // from the flows to each cell of a row, Rows for each
	rest   []amount         // what cells hold beyond the expected packets of their flows
	shares [MaxRows]float64 // by row: the share of a flow's packets in each of its cells
	alike  float64          // see expected

	// The current belief about each flow's packets, and an upper bound. A
	// variance of 0 means no packets. Flows whose packets are known are fixed.
	mean, variance, most []float64
	fixed                []bool
}

// A message is a mean number of packets times its precision, and that
// precision.
type message struct{ weighted, precision float64 }

// An amount is an expected number of packets, with its variance.
type amount struct{ packets, variance float64 }

// counting starts with what each flow's cells say of it alone.
func (c counts) counting(ctx context.Context, flows []joint.FlowRecord) (*counting, error) {
	keys, n := make([]hashing.Flow, len(flows)), len(flows)
	for i, f := range flows {
		keys[i] = f.Flow
	}
	d := &counting{
		counts: c, prior: newSizePrior(), cells: c.cellsOf(keys),
		fixed: make([]bool, n), mean: make([]float64, n), variance: make([]float64, n), most: make([]float64, n),
		told: make([]message, n*c.Rows), sent: make([]amount, n*c.Rows), rest: make([]amount, len(c.held)),
		// Two flows that meet in one cell of a row mostly meet in its
		// neighbours too, and the error of one then appears in all of these.
		// This factor, taken over all distances between the two, corrects for
		// it.
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
				d.send(i, r)
			}
		}
	}
	return d, nil
}

// round does one round, in which messages move this fraction of the way. It
// returns the fraction of the packets that moved from flow to flow.
func (d *counting) round(step float64) (moved float64) {
	c := d.Config
	misfit := d.misfit()
	var packets float64
	for i, v := range d.variance {
		if v == 0 || d.fixed[i] {
			continue
		}
		packets += d.mean[i]
		var all message
		for r := range c.Rows {
			row := d.tells(i, r, d.sent[i*c.Rows+r], misfit)
			told := &d.told[i*c.Rows+r]
			told.weighted += step * (row.weighted - told.weighted)
			told.precision += step * (row.precision - told.precision)
			all.weighted += told.weighted
			all.precision += told.precision
		}
		was := d.mean[i]
		d.mean[i], d.variance[i] = d.prior.weigh(all.weighted/all.precision, 1/all.precision, d.most[i])
		moved += math.Abs(d.mean[i] - was)
		for r := range c.Rows {
			d.send(i, r)
		}
	}
	return moved / max(packets, 1)
}

// widen widens the variance of each flow whose cells are farther from what is
// expected of them than the variances allow. If flows were wrongly told apart,
// their other cells do not fit.
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

// tells returns what row r says about flow i, given the amount expected in
// each cell. It first takes each cell by itself, with the flow's own packets
// as noise of their number. Then it takes the cells together, because packets
// that are not in one cell are in another.
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

// send takes what flow i is newly expected to have in row r off what is left of
// its cells, instead of what it was expected to have before.
func (d *counting) send(i, r int) {
	sent, now := &d.sent[i*d.Rows+r], d.expected(i, r)
	packets, variance := now.packets-sent.packets, now.variance-sent.variance
	*sent = now
	for _, at := range d.run(i, r) {
		d.rest[at].packets -= packets
		d.rest[at].variance += variance
	}
}

// run returns the cells of flow i in row r.
func (d *counting) run(i, r int) []uint32 {
	c := d.Config
	return d.cells[(i*c.Rows+r)*c.Spread:][:c.Spread]
}

// expected returns what flow i is believed to bring to each of its cells in
// row r, leaving out what that row said itself.
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

// misfit returns by what factor the squares of the cells' rests exceed what
// they should be, at least 1: flows may be missing from the list.
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
