package lds

import (
	"math"
	"slices"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// intervalDegrees are the degrees of freedom of the Student distribution
// behind MeanInterval. They allow for the heavy tails of errors.
const intervalDegrees = 4

// fewRows says by what factor the interval widens if one, two or three rows
// determine the distance of others: the 97.5 % quantiles of Student's
// distribution, relative to that of intervalDegrees.
var fewRows = [...]float64{0, 4.58, 1.55, 1.15, 1}

// fewRowsBeside is fewRows if a cell's neighbours provide evidence as well.
var fewRowsBeside = [...]float64{0, 3.5, 1.5, 1.15, 1}

// LeftOut returns how far Mean may be from the mean of all of the flow's
// packets if these have the given deviation, whichever of them the answer
// leaves out (Cauchy and Schwarz): deviation × √((1−Share)/Share).
//
// MeanInterval assumes less. If packets are lost in bursts while delays are
// long, what an [Accumulator] covers of a flow is calmer than the rest, and the
// mean is low. Then widen the interval by LeftOut of the deviation of all
// packets, which an LDA tells.
func (r *Result) LeftOut(deviation float64) float64 {
	if r.Share >= 1 {
		return 0
	}
	return deviation * math.Sqrt((1-r.Share)/r.Share)
}

// MeanInterval returns the interval of the flow's mean at the given
// confidence, between 0 and 1: Student's, from MeanError. It is infinite if
// MeanError is.
func (r *Result) MeanInterval(confidence float64) estimate.Interval {
	if r.N == 0 || math.IsInf(r.MeanError, 1) {
		return estimate.Interval{Low: math.Inf(-1), High: math.Inf(1), Confidence: confidence}
	}
	return estimate.StudentInterval(estimate.Delay{Mean: r.Mean, StdDev: r.MeanError, N: 1}, intervalDegrees, confidence)
}

// DeviationInterval returns the interval of the packets' deviation at the
// given confidence, from DegreesOfFreedom; if these are 0 it extends to +Inf.
// It begins at 0, because flows that share the selected cells add their
// distance: all of the deviation may be theirs. [Decode] tells them apart
// (joint.Options.Deviations).
func (r *Result) DeviationInterval(confidence float64) estimate.Interval {
	if r.DegreesOfFreedom == 0 {
		return estimate.Interval{High: math.Inf(1), Confidence: confidence}
	}
	i := estimate.DeviationInterval(r.StdDev, r.DegreesOfFreedom, confidence)
	i.Low = 0
	return i
}

// meanError returns the expected error of the mean from flow f's least loaded
// cell. The other rows tell what others bring to it: what they hold beyond
// that cell is of the same kind, and its mean is no less than what the least
// loaded cell is expected to hold of others. The distance between the rows
// tells how far those others are from the flow; with few rows, from little
// evidence. With a Spread of 1, the cell's neighbours tell of both, too.
func meanError(up, down *Sketch, f hashing.Flow, mean, least float64) float64 {
	c := &up.config
	var beyond, square, rows, told float64
	purest, fewest := 0, math.Inf(1)
	for r := range c.Rows {
		var row estimate.Cells
		for offset := range c.Spread {
			at := up.at(r, f, offset)
			a, b := &up.cells[at], &down.cells[at]
			if compare(a, b, c.DigestBits) == usable {
				row.Add(float64(estimate.Difference(a.sum, b.sum, int(c.SumBits))), uint64(a.count()))
			}
		}
		if row.N() == 0 {
			continue
		}
		held := atMost(float64(row.N()), c.Rates[r]) / float64(row.Cells())
		if held < fewest {
			purest, fewest = r, held
		}
		more := held - least
		rows++
		if more > 0 {
			beyond += more
			apart := (row.Mean() - mean) * (more + least) / more
			square += apart * apart
			told++
		}
	}
	if rows < 2 {
		return oneRow(up, down, f, purest, mean)
	}
	distance := 0.0
	if told > 0 {
		distance = math.Sqrt(square / told)
	}
	part := min(1, beyond/(rows-1)/least)
	byRows := part * distance * fewRows[min(int(told), len(fewRows)-1)]
	if c.Spread > 1 {
		return byRows * (1 + (smallFlows-1)*part)
	}
	var l neighbours
	l.look(up, down, f, purest, mean)
	part, off := l.contamination(purest)
	widen := anyFlows + (largeFlows-anyFlows)*(1-part)*(1-part)
	beside := widen * math.Hypot(off, part*distance*fewRowsBeside[min(int(told), len(fewRowsBeside)-1)])
	switch {
	case c.Rates[purest] < 1:
		byRows *= sampledRow
	case slices.Min(c.Rates[:c.Rows]) < 1:
		byRows *= besideSampled
	default:
		byRows *= fullRow
	}
	return math.Hypot(beside, byRows)
}

// oneRow is meanError if only one row has a usable cell. Neighbours alone tell
// what others bring to it, beside the counts of the other rows, and how far those
// are from the flow. They do not tell how far a sample of the flow is from its
// mean, and tell too little where there is no other row.
func oneRow(up, down *Sketch, f hashing.Flow, row int, mean float64) float64 {
	if c := &up.config; c.Rows < 2 || c.Spread > 1 || c.Rates[row] < 1 {
		return math.Inf(1)
	}
	var l neighbours
	l.look(up, down, f, row, mean)
	if l.told == 0 {
		return math.Inf(1)
	}
	part, off := l.contamination(row)
	return fewestRows * math.Hypot(off, part*math.Sqrt(l.distances/l.told))
}

// Neighbours say too little about rare events. They say nothing about how far
// a few samples of a flow are from its mean, or about flows aimed at its
// cells. So intervals are wider by factors: one for flows that have one usable
// cell, one for those that have a cell nearly to themselves, and one for any
// flow. They are also wider by parts of what the other rows say: for a row that
// samples, for one that does not beside some that do, and for others. With a
// Spread above 1, flows that have little of their cells have wider intervals.
// The factors are those with which MeanInterval holds under all laws of its
// tests, and when somebody who knows the seed aims at every row.
const (
	fewestRows    = 4.5
	largeFlows    = 1.7
	anyFlows      = 1.1
	sampledRow    = 0.4
	besideSampled = 0.3
	fullRow       = 0.1
	smallFlows    = 1.35
)
