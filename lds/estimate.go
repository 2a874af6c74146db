package lds

import (
	"fmt"
	"math"
	"slices"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// errNoSamples is made once, so that an answer that there is none allocates
// nothing.
var errNoSamples = fmt.Errorf("lds: %w", estimate.ErrNoSamples)

// A Result is what two sketches say about one flow.
type Result struct {
	// Delay is the estimate of the flow's delays from the least contaminated
	// of its cells: Mean by Fig. 6, StdDev count-conditioned over cells of
	// one row, N the packets of the row that gave most (a packet is in every
	// row and counts once).
	estimate.Delay

	// DegreesOfFreedom is what StdDev rests on: how many selected cells there
	// are beyond the first of each row. With 0 the deviation is unknown, and
	// StdDev is 0 and means nothing; that is always so with a Spread of 1. The
	// relative error of a deviation is about 1/√(2·DegreesOfFreedom) at best,
	// and flows that share the cells add their distance from this one.
	DegreesOfFreedom uint64

	// MeanError is the root of the square that Mean's error is expected to
	// have, in nanoseconds, +Inf where the cells do not tell: with one row. It
	// is what [Result.MeanInterval] is made of.
	MeanError float64

	// Share is the part of the flow's packets that the answer rests on, as far
	// as counts tell: 1, unless cells of a flow that is spread are unusable or
	// runs of an [Accumulator] leave some out.
	Share float64

	// Sent and Received are [Sketch.Packets] of the two points: the flow's and
	// some of its neighbours'. Lost is at most how many packets the flow lost:
	// the least difference over the rows that see every packet, which counts
	// the losses of neighbours too. Duplicates can hide losses, and so can
	// packets that were on their way when the interval began. An [Accumulator]
	// does not see losses in cells that always have packets on their way.
	Sent, Received, Lost uint64

	// Of the flow's Rows × Spread cells, Usable had packets and the same ones
	// at both points, and Selected of them made the estimate. Lossy had a
	// different number at the two points, Reordered as many but not the same:
	// packets crossed the interval's boundary, or one came where another was
	// lost.
	Usable, Selected, Lossy, Reordered int
}

// Estimate returns the delay of flow f between two points from its cells in
// their sketches of one interval (Fig. 6). Of the usable cells it takes the
// least loaded, and those that hold up to Config.Tolerance more.
//
// Where rows sample at different rates, cells compare by an upper bound of the
// packets they stand for, not as in [EstimateInverted]: a cell that sampled
// few packets of many, by chance, is not taken for the purest. That pays where
// delays within a flow differ, and few samples make a poor mean.
//
// It returns [estimate.ErrNoSamples] if no cell of the flow is usable or if the
// sketches prove that the flow had no packets; all of the Result but its Delay
// then still holds, so that it tells the loss of a flow that lost too much. It
// returns [estimate.ErrMismatch] if the Configs or the intervals differ.
//
// Flows that share the selected cells draw the mean towards theirs, the more
// the larger they are beside f: [Decode] tells them apart. A clock offset
// between the points shifts the mean by itself.
func Estimate(up, down *Sketch, f hashing.Flow) (Result, error) {
	return estimateBy(up, down, f, atMost)
}

// EstimateInverted is Estimate as section 4.2 has it: cells of rows with
// different rates compare by their counts divided by the rates. Where all
// rates are 1 it is the same as Estimate.
func EstimateInverted(up, down *Sketch, f hashing.Flow) (Result, error) {
	return estimateBy(up, down, f, func(n, rate float64) float64 { return n / rate })
}

// estimateBy estimates with loads as the given function has them, of a cell's
// count and its row's rate.
func estimateBy(up, down *Sketch, f hashing.Flow, load func(n, rate float64) float64) (Result, error) {
	if err := match(up, down); err != nil {
		return Result{}, err
	}
	c := &up.config
	var result Result
	least := math.Inf(1)
	for r := range c.Rows {
		for offset := range c.Spread {
			at := up.at(r, f, offset)
			switch compare(&up.cells[at], &down.cells[at], c.DigestBits) {
			case usable:
				result.Usable++
				least = min(least, load(float64(up.cells[at].count()), c.Rates[r]))
			case lossy:
				result.Lossy++
			case reordered:
				result.Reordered++
			}
		}
	}
	result.Sent, result.Received, result.Lost = up.Packets(f), down.Packets(f), lost(up, down, f)
	if result.Usable == 0 || up.absent(f) {
		return result, errNoSamples
	}

	// A row's cells hold different packets, and so their sums tell of the
	// deviation; cells of two rows hold the same ones.
	var rows [MaxRows]estimate.Cells
	var parts [MaxRows]int
	for r := range c.Rows {
		for offset := range c.Spread {
			at := up.at(r, f, offset)
			a, b := &up.cells[at], &down.cells[at]
			if compare(a, b, c.DigestBits) == usable && load(float64(a.count()), c.Rates[r]) <= (1+c.Tolerance)*least {
				result.Selected++
				parts[r]++
				rows[r].Add(float64(estimate.Difference(a.sum, b.sum, int(c.SumBits))), uint64(a.count()))
			}
		}
	}
	result.Mean = result.deviate(&rows)
	result.Share = float64(slices.Max(parts[:])) / float64(c.Spread)
	result.MeanError = meanError(up, down, f, result.Mean, least)
	return result, nil
}

// deviate sets StdDev and what it rests on, and N, by the selected cells of
// each row, and returns the mean of all cells.
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
