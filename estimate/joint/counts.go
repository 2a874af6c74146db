package joint

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/hoplag/hoplag/estimate"
)

// Counts are the numbers of packets in the cells of a synopsis, from which those of its flows follow. All rows
// have the same number of cells, and follow one another; the other fields are those of a Problem.
//
// A cell's count is the sum of its flows' packets, so a flow's packets are what its cells hold less what the
// other flows have. Expectation propagation (T. Minka, UAI 2001) finds all of them together, in rounds:
//
//	A row   says to each flow what its cells leave for it once the expected packets of the others are subtracted, and with what
//	        precision: by the variances of the others, and by the way packets fall into cells and samples.
//	A flow  weighs what its rows say by how rare sizes are. The result is a mean and a variance. A row hears them without its
//	        own message, or it would take its echo for news.
//
// A round goes from flow to flow, and the next flow uses the new belief about the one before at once. If cells are farther from
// their expected counts than the variances allow, as when flows are missing from the list, all variances grow by that factor.
type Counts struct {
	Held              []uint64
	Rows, CellsPerRow int
	Rates             []float64
	Cells             []uint32
}

const (
	countRounds = 9   // more gain little
	countStep   = 0.9 // fraction of the way that a row's message moves to its new value
	// Once no more than this fraction of the packets moves, counts nearly determine the flows, and rounds go on.
	countNear    = 1e-3
	countSettled = 1e-7
	countMost    = 20
	// When a row's own message is taken out of the belief about a flow, it counts as at most this fraction of the
	// belief's precision. Otherwise the rest could be next to nothing, and its variance without bound.
	mostTold = 0.75
	// The least variance of a decoded flow, so that its neighbours can still correct it.
	surest = 0.01
	// Other variances are at least this, so that precisions stay finite.
	leastVariance = 1e-6
	// In the misfit, squares count as at most so many times their variance, so that one cell does not decide.
	mostMisfit = 100
)

// counting is the state of Decode.
type counting struct {
	*Counts
	prior  *sizePrior
	told   []message // from the rows to the flows, Rows for each
	sent   []amount  // from the flows to each cell of a row, Rows for each
	rest   []amount  // what cells hold beyond the expected packets of their flows
	shares []float64 // by row: the share of a flow's packets in each of its cells
	alike  float64   // see expected

	// The current belief about each flow's packets, and an upper bound. A variance of 0 means no packets. Known ones are fixed.
	mean, variance, most []float64
	fixed                []bool
}

// A message is a mean number of packets times its precision, and that precision.
type message struct{ weighted, precision float64 }

// An amount is an expected number of packets, with its variance.
type amount struct{ packets, variance float64 }

// Decode returns the records with their packets, decoded where they are 0. It assumes that large sizes are
// rarer (Pareto with shape 0.8). A flow has at least one packet, unless the counts prove that it has none.
//
// Doubt is the standard deviation of the error of Packets. Over all flows, the root mean square error is about that of the doubts.
// It is greater than they say for large flows if there are dozens of flows in a cell, and if flows are missing from the list.
//
// The error is [estimate.ErrConfig] if the sizes do not fit together, and the context's error once the context is done.
func (c *Counts) Decode(ctx context.Context, flows []FlowRecord) ([]FlowRecord, error) {
	width := c.Rows * c.CellsPerRow
	if width < 1 || len(c.Rates) != c.Rows || len(c.Held)%c.Rows != 0 || len(c.Cells) != width*len(flows) {
		return nil, fmt.Errorf("%w: %d cells and %d rates for %d flows of %d × %d", estimate.ErrConfig, len(c.Cells), len(c.Rates),
			len(flows), c.Rows, c.CellsPerRow)
	}
	d, err := c.begin(ctx, flows)
	if err != nil {
		return nil, err
	}
	step, moved := 1.0, 1.0
	for round := 0; round < countRounds || round < countMost && moved < countNear && moved > countSettled; round++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		moved = d.round(step)
		step = countStep
	}
	records := slices.Clone(flows)
	for i, fixed := range d.fixed {
		if !fixed {
			records[i].Packets, records[i].Doubt = d.mean[i], math.Sqrt(d.variance[i])
		}
	}
	return records, nil
}

// begin starts with flows that are alike, as far as their cells hold so much.
func (c *Counts) begin(ctx context.Context, flows []FlowRecord) (*counting, error) {
	n, k := len(flows), float64(c.CellsPerRow)
	d := &counting{
		Counts: c, prior: newSizePrior(), shares: make([]float64, c.Rows),
		fixed: make([]bool, n), mean: make([]float64, n), variance: make([]float64, n), most: make([]float64, n),
		told: make([]message, n*c.Rows), sent: make([]amount, n*c.Rows), rest: make([]amount, len(c.Held)),
		// Two flows that meet in one cell of a row mostly meet in its neighbours too, and the error of one then
		// appears in all of these. This factor, taken over all distances between the two, corrects for it.
		alike: 1 + (k-1)*(2*k-1)/(3*k),
	}
	for r, rate := range c.Rates {
		d.shares[r] = rate / k
	}
	usual := 0.0
	for at, held := range c.Held {
		d.rest[at].packets = float64(held)
		if at < len(c.Held)/c.Rows {
			usual += float64(held) / c.Rates[0] / float64(n)
		}
	}
	for i, f := range flows {
		if i%4096 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		d.most[i] = c.bound(i)
		switch {
		case f.Packets > 0:
			d.fixed[i], d.mean[i], d.variance[i] = true, f.Packets, max(f.Doubt*f.Doubt, leastVariance)
		case d.most[i] > 0:
			d.mean[i] = max(1, min(usual, d.most[i]))
			d.variance[i] = d.mean[i] * d.mean[i]
		}
		if d.variance[i] > 0 {
			for r := range c.Rows {
				d.send(i, r)
			}
		}
	}
	return d, nil
}

// run returns the cells of flow i in row r.
func (c *Counts) run(i, r int) []uint32 {
	return c.Cells[(i*c.Rows+r)*c.CellsPerRow:][:c.CellsPerRow]
}

// bound returns the most packets that flow i may have, by the rows that see every packet: 0 if one holds none.
func (c *Counts) bound(i int) float64 {
	most := math.Inf(1)
	for r, rate := range c.Rates {
		held := 0.0
		for _, at := range c.run(i, r) {
			held += float64(c.Held[at])
		}
		if rate == 1 {
			most = min(most, held)
		}
	}
	return most
}

// round does one round, in which messages move this fraction of the way. It returns the fraction of the packets
// that moved from flow to flow.
func (d *counting) round(step float64) (moved float64) {
	misfit := d.misfit()
	var packets float64
	for i, v := range d.variance {
		if v == 0 || d.fixed[i] {
			continue
		}
		packets += d.mean[i]
		var all message
		for r := range d.Rows {
			row := d.tells(i, r, d.sent[i*d.Rows+r], misfit)
			told := &d.told[i*d.Rows+r]
			told.weighted += step * (row.weighted - told.weighted)
			told.precision += step * (row.precision - told.precision)
			all.weighted += told.weighted
			all.precision += told.precision
		}
		was := d.mean[i]
		d.mean[i], d.variance[i] = d.prior.weigh(all.weighted/all.precision, 1/all.precision, d.most[i])
		moved += math.Abs(d.mean[i] - was)
		for r := range d.Rows {
			d.send(i, r)
		}
	}
	return moved / max(packets, 1)
}

// misfit returns by what factor the squares of cells' rests exceed their variances: some flows may not be listed.
func (d *counting) misfit() float64 {
	var squares, cells float64
	for _, rest := range d.rest {
		if rest.variance > 0 {
			squares += min(rest.packets*rest.packets/rest.variance, mostMisfit)
			cells++
		}
	}
	return max(1, squares/max(1, cells))
}

// tells returns what row r says about flow i, given the amount expected in each cell. It first takes each cell by itself, with the number
// of the flow's own packets as noise. Then it takes the cells together, because packets that are not in one cell are in another.
func (d *counting) tells(i, r int, expected amount, misfit float64) (row message) {
	share := d.shares[r]
	own := share * d.mean[i]
	apart := 1 - d.Rates[r]
	for _, at := range d.run(i, r) {
		rest := d.rest[at]
		others := misfit*max(0, rest.variance-expected.variance) + leastVariance
		precision := share / (others + own)
		row.weighted += precision * (rest.packets + expected.packets)
		row.precision += precision * share
		apart += precision * others
	}
	return message{row.weighted / apart, row.precision / apart}
}

// send takes what flow i is newly expected to have in row r off what is left of its cells, instead of what it had before.
func (d *counting) send(i, r int) {
	sent, now := &d.sent[i*d.Rows+r], d.expected(i, r)
	packets, variance := now.packets-sent.packets, now.variance-sent.variance
	*sent = now
	for _, at := range d.run(i, r) {
		d.rest[at].packets -= packets
		d.rest[at].variance += variance
	}
}

// expected returns what flow i is believed to bring to each of its cells in row r, without what that row said.
func (d *counting) expected(i, r int) amount {
	mean, variance, told := d.mean[i], d.variance[i], d.told[i*d.Rows+r]
	part := variance * told.precision
	if part > mostTold {
		told.weighted *= mostTold / part
		part = mostTold
	}
	left := 1 / (1 - part)
	mean = max((mean-variance*told.weighted)*left, 1)
	variance = max(variance, surest) * left
	share := d.shares[r]
	return amount{share * mean, d.alike*share*share*variance + share*(1-share)*mean}
}
