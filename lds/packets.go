package lds

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
)

// How DecodePackets decodes. A cell's count is the sum of its flows' packets in
// it, so that what a flow had is what its cells hold less what the others had.
// All are found together by expectation propagation (T. Minka, UAI 2001), in
// rounds:
//
//	A row   tells each flow what its cells there leave for it when the others
//	        are taken away as they are believed to be, and with what precision:
//	        by the variances of the others, and by how packets fall into cells
//	        and samples.
//	A flow  weighs what its rows tell by how rare sizes are, and is believed to
//	        have the mean and the variance of what comes out. A row hears these
//	        without what it told itself, or it would take its echo for news.
//
// What a row tells moves only halfway to what it should be in each round, which
// keeps the rounds from swinging. Where cells are farther from what is expected
// of them than variances say, as when flows are missing from the list, all
// variances grow by that.
//
// Where flows are spread, and rows sample, much is left open, and a flow of dozens
// of packets is then too often believed to have had a few, which makes its delay
// too long by as much. So there the counts have the last word: what is in a cell
// beyond what is expected is shared out in proportion to that.
const (
	decodeRounds = 20 // errors fall little after that
	decodeStep   = 0.5
	shareRounds  = 30 // further ones fit noise
	// No row is taken to have told more than this part of what is believed of a
	// flow: without it there would be next to nothing left.
	decodeMostTold = 0.75
	// Variances below which no flow is taken away from others, and nothing is
	// believed at all.
	decodeSurest = 0.01
	decodeLeast  = 1e-6
	// A single cell has no more weight than this in how wrong variances are.
	decodeMisfit = 100
)

// DecodePackets estimates how many packets each of the interval's flows sent,
// from the counts of all cells at once, and returns a record of each, as
// [Decode] takes them. Large sizes are taken to be the rarer (Pareto with the
// shape of the paper's traffic, 0.8). A flow has at least one packet, unless
// the sketch proves that it has none.
//
// Doubt is how far Packets may be off, as a standard deviation. Over all
// flows, the root mean square of the errors is about that of the doubts. It is
// larger for large flows where there are dozens to a cell, and where flows are
// missing from the list.
//
// progress, if not nil, is told which part of the work is done, from 0 to 1.
// The error is [estimate.ErrConfig] if a flow is listed twice, and the
// context's, once it is done.
func (s *Sketch) DecodePackets(ctx context.Context, flows []hashing.Flow, progress func(done float64)) ([]joint.FlowRecord, error) {
	records := make([]joint.FlowRecord, len(flows))
	for i, f := range flows {
		records[i].Flow = f
	}
	if _, err := keysOf(records); err != nil {
		return nil, err
	}
	return s.counts().decode(ctx, records, progress)
}

// decode decodes the packets of those flows of which they are 0.
func (c counts) decode(ctx context.Context, flows []joint.FlowRecord, progress func(done float64)) ([]joint.FlowRecord, error) {
	keys, n := make([]hashing.Flow, len(flows)), len(flows)
	for i, f := range flows {
		keys[i] = f.Flow
	}
	d := counting{
		counts: c, prior: newSizePrior(), cells: c.cellsOf(keys),
		fixed: make([]bool, n), mean: make([]float64, n), variance: make([]float64, n), most: make([]float64, n),
		told: make([]message, n*c.Rows), rest: make([]amount, len(c.held)),
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
	}
	step := 1.0
	for round := range decodeRounds {
		if err := decodingEnds(ctx); err != nil {
			return nil, err
		}
		d.round(step)
		step = decodeStep
		if progress != nil {
			progress(float64(round+1) / decodeRounds)
		}
	}
	if c.Spread > 1 {
		d.shareOut()
	}
	records := slices.Clone(flows)
	for i, fixed := range d.fixed {
		if !fixed {
			records[i].Packets, records[i].Doubt = d.mean[i], math.Sqrt(d.variance[i])
		}
	}
	return records, nil
}

// counting is the state of DecodePackets.
type counting struct {
	counts
	prior *sizePrior
	cells []uint32  // of all flows, Rows × Spread each
	told  []message // by the rows to the flows, Rows for each
	rest  []amount  // what cells hold beyond what their flows are believed to have there

	// What is believed of each flow's packets, and how many it had at most. With
	// a variance of 0 it had none. Those that were known are fixed.
	mean, variance, most []float64
	fixed                []bool
}

// A message is a mean of packets, times its precision, and that.
type message struct{ weighted, precision float64 }

// An amount is a number of packets that is believed, and its variance.
type amount struct{ packets, variance float64 }

// round is one round, in which messages move by this part of the way.
func (d *counting) round(step float64) {
	c := d.Config
	for at := range d.rest {
		d.rest[at] = amount{packets: float64(d.held[at])}
	}
	for i, v := range d.variance {
		if v == 0 {
			continue
		}
		for r := range c.Rows {
			expected := d.expected(i, r)
			for _, at := range d.run(i, r) {
				d.rest[at].packets -= expected.packets
				d.rest[at].variance += expected.variance
			}
		}
	}
	misfit := d.misfit()
	for i, v := range d.variance {
		if v == 0 || d.fixed[i] {
			continue
		}
		var all message
		for r := range c.Rows {
			// Each cell by itself, where the flow's own packets are a noise of
			// their number; then together, as those that are not in one cell
			// are in another.
			share := c.Rates[r] / float64(c.Spread)
			own := share * d.mean[i]
			expected := d.expected(i, r)
			var row message
			apart := 1 - c.Rates[r]
			for _, at := range d.run(i, r) {
				others := misfit*max(0, d.rest[at].variance-expected.variance) + decodeLeast
				precision := share / (others + own)
				row.weighted += precision * (d.rest[at].packets + expected.packets)
				row.precision += precision * share
				apart += precision * others
			}
			told := &d.told[i*c.Rows+r]
			told.weighted += step * (row.weighted/apart - told.weighted)
			told.precision += step * (row.precision/apart - told.precision)
			all.weighted += told.weighted
			all.precision += told.precision
		}
		d.mean[i], d.variance[i] = d.prior.weigh(all.weighted/all.precision, 1/all.precision, d.most[i])
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
	c := d.Config
	mean, variance, told := d.mean[i], d.variance[i], d.told[i*c.Rows+r]
	part := variance * told.precision
	if part > decodeMostTold {
		told.weighted *= decodeMostTold / part
		part = decodeMostTold
	}
	mean = max((mean-variance*told.weighted)/(1-part), 1)
	variance = max(variance, decodeSurest) / (1 - part)
	// Two flows that meet in one cell of a row mostly meet in its neighbours,
	// too, and what one is off by is then in all of these: so many times as if
	// they were independent, over all distances between the two.
	alike := 1 + float64((c.Spread-1)*(2*c.Spread-1))/float64(3*c.Spread)
	share := c.Rates[r] / float64(c.Spread)
	return amount{share * mean, alike*share*share*variance + share*(1-share)*mean}
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

// shareOut shares every cell's count out among its flows in proportion to what
// they are believed to have there beyond their first packets, in rounds
// (expectation maximisation for Poisson counts).
func (d *counting) shareOut() {
	c := d.Config
	var rates float64
	for _, rate := range c.Rates {
		rates += rate
	}
	count := make([]float64, len(d.held)) // beyond first packets
	for at := range count {
		count[at] = float64(d.held[at])
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
		for r := range c.Rows {
			for _, at := range d.run(i, r) {
				count[at] -= taken * c.Rates[r] / float64(c.Spread)
			}
		}
	}
	times := make([]float64, len(count)) // what is expected, then what there is of it
	for range shareRounds {
		clear(times)
		for i, n := range d.mean {
			if d.fixed[i] {
				continue
			}
			for r := range c.Rows {
				for _, at := range d.run(i, r) {
					times[at] += n * c.Rates[r] / float64(c.Spread)
				}
			}
		}
		for at, n := range times {
			if n > 0 {
				times[at] = max(0, count[at]) / n
			}
		}
		for i, n := range d.mean {
			if d.fixed[i] {
				continue
			}
			var found float64
			for r := range c.Rows {
				for _, at := range d.run(i, r) {
					found += times[at] * c.Rates[r] / float64(c.Spread)
				}
			}
			d.mean[i] = n * found / rates
		}
	}
	for i, v := range d.variance {
		if v > 0 && !d.fixed[i] {
			d.mean[i]++
		}
	}
}

// decodingEnds is the context's error, once it is done.
func decodingEnds(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("lds: decoding packet counts: %w", err)
	}
	return nil
}
