package lds

import (
	"fmt"
	"math"
	"slices"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// errNoSamples is made once, so that answering with it allocates nothing.
var errNoSamples = fmt.Errorf("lds: %w", estimate.ErrNoSamples)

// A Result is what two sketches say about one flow.
type Result struct {
	// Delay is the estimate of the flow's delays from the least contaminated
	// of its cells. Mean is that of Fig. 6. StdDev is count-conditioned over
	// cells of one row. N counts the packets of the row that contributed most:
	// a packet is in every row and counts once.
	estimate.Delay

	// DegreesOfFreedom is what StdDev rests on: the number of selected cells
	// beyond the first of each row. With 0 the deviation is unknown, and
	// StdDev is 0 and means nothing; that is always so with a Spread of 1. The
	// relative error of a deviation is at best about 1/√(2·DegreesOfFreedom).
	// Flows that share the cells add their distance from this one.
	DegreesOfFreedom uint64

	// MeanError is the expected root mean square error of Mean, in
	// nanoseconds. It is +Inf if the cells next to the flow's do not reveal it.
	// [Result.MeanInterval] is made from it.
	MeanError float64

	// Share is the fraction of the flow's packets behind the answer, as far as
	// counts can tell. It is 1 unless some cells of a spread flow are unusable
	// or the runs of an [Accumulator] leave some packets out.
	Share float64

	// Sent and Received are [Sketch.Packets] at the two points: the packets of
	// the flow and of some of its neighbours. Lost is an upper bound of the
	// flow's losses: the smallest difference over the rows that see every
	// packet, including losses of neighbours and packets that were on their way
	// when the interval ended. A duplicate hides one loss. So does a packet that
	// was on its way when the one interval of [Estimate] began; an [Accumulator]
	// allows for those.
	//
	// Overdue is a lower bound of what the same cells lost, of the flow's
	// packets or its neighbours': packets that did not arrive within eight
	// intervals after they were sent. Only an Accumulator knows of any;
	// otherwise it is 0. In cells that always have packets on their way, Lost
	// and Overdue differ by as many packets as pass in eight intervals or
	// more.
	Sent, Received, Lost, Overdue uint64

	// Of the flow's Rows × Spread cells, Usable cells had packets, the same
	// ones at both points, and Selected of those made the estimate. Lossy
	// cells had different counts at the two points. Reordered cells had equal
	// counts but different packets: packets crossed the interval's boundary,
	// or one came where another was lost.
	Usable, Selected, Lossy, Reordered int
}

// Estimate returns the delay of flow f between two points, from its cells in
// their sketches of one interval (Fig. 6). It uses the least loaded of the
// usable cells, and those that hold up to Config.Tolerance more.
//
// If rows sample at different rates, Estimate compares cells by an upper bound
// of the packets they stand for, where section 4.2 divides counts by rates. So a
// cell that happened to sample few of many packets does not pass for the purest.
// This pays if delays within a flow differ, because few samples make a poor mean.
//
// A cell that lost packets tells the delays of the others but for the times at
// which the lost ones were sent, which it takes to be like those of all its packets.
// So it is worth something unless intervals are much longer than delays. A cell of so many packets that its sum may have wrapped
// (Config.SumBits) has no part in the answer.
//
// It returns [estimate.ErrNoSamples] if no cell of the flow tells anything, or if
// the sketches prove that the flow had no packets. The rest of the Result, all
// but its Delay, is valid even then, so it reports the loss of a flow that
// lost too much. It returns [estimate.ErrMismatch] if the Configs or the
// intervals differ.
//
// Flows that share the selected cells draw the mean towards theirs; the larger
// they are beside f, the more. [Decode] tells them apart. An offset between
// the points' clocks is added to the mean.
func Estimate(up, down *Sketch, f hashing.Flow) (Result, error) {
	if err := match(up, down); err != nil {
		return Result{}, err
	}
	c := &up.config
	result := Result{Sent: up.Packets(f), Received: down.Packets(f), Lost: lost(up, down, f)}
	for k := range c.Rows * c.Spread {
		at := c.at(k/c.Spread, f, k%c.Spread)
		switch compare(&up.cells[at], &down.cells[at], c.DigestBits) {
		case usable:
			result.Usable++
		case lossy:
			result.Lossy++
		case reordered:
			result.Reordered++
		}
	}
	var near [MaxRows * (maxSpread + 2*nearCells)]uint32
	cells := newPairs(up, down, c.nearby(near[:0], f))
	if up.absent(f) || !cells.read(f, &result) {
		return result, errNoSamples
	}
	result.Mean += float64(cells.around.delay)
	result.MeanError += rounding * math.Abs(result.Mean)
	return result, nil
}

// read sets the mean, beyond the centre, and all that goes with it, from the best
// of the flow's cells: the least loaded, where one that lost packets counts as
// loaded by more. It reports whether there is one.
func (p *pairs) read(f hashing.Flow, result *Result) bool {
	c := &p.up.config
	best, least, purest := content{}, math.Inf(1), 0
	for r := range c.Rows {
		for offset := range c.Spread {
			if one := p.at(c.at(r, f, offset)); one.usable && one.packets > 0 {
				if load := p.load(&one, c.Rates[r]); load < least {
					best, least, purest = one, load, r
				}
			}
		}
	}
	if best.packets == 0 {
		return false
	}
	// A row's cells hold different packets, so their sums reveal the
	// deviation. Cells of two rows hold the same packets.
	var rows [MaxRows]estimate.Cells
	var parts [MaxRows]int
	for r := range c.Rows {
		for offset := range c.Spread {
			one := p.at(c.at(r, f, offset))
			if one.usable && one.packets > 0 && p.load(&one, c.Rates[r]) <= (1+c.Tolerance)*least {
				result.Selected++
				parts[r]++
				rows[r].Add(one.beyond, uint64(one.packets))
			}
		}
	}
	var o others
	o.look(*p, f)
	result.Mean = result.deviate(&rows)
	result.Share = float64(slices.Max(parts[:])) / float64(c.Spread)
	result.MeanError = o.meanError(f, purest, best)
	return true
}

// deviate sets StdDev, DegreesOfFreedom and N from the selected cells of each
// row. It returns the mean of all cells.
func (r *Result) deviate(rows *[MaxRows]estimate.Cells) (mean float64) {
	var all estimate.Cells
	var squares float64
	for i := range rows {
		row := &rows[i]
		if row.N() == 0 {
			continue
		}
		all.Merge(*row)
		squares += row.Variance() * float64(row.DegreesOfFreedom())
		r.DegreesOfFreedom += row.DegreesOfFreedom()
		r.N = max(r.N, row.N())
	}
	if r.DegreesOfFreedom > 0 {
		r.StdDev = math.Sqrt(squares / float64(r.DegreesOfFreedom))
	}
	return all.Mean()
}
