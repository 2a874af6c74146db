package lds

import (
	"math"

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
// evidence.
func meanError(up, down *Sketch, f hashing.Flow, mean, least float64) float64 {
	c := &up.config
	var beyond, square, rows, told float64
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
		more := atMost(float64(row.N()), c.Rates[r])/float64(row.Cells()) - least
		rows++
		if more > 0 {
			beyond += more
			apart := (row.Mean() - mean) * (more + least) / more
			square += apart * apart
			told++
		}
	}
	if rows < 2 {
		return math.Inf(1)
	}
	if told == 0 {
		return 0
	}
	others := min(least, beyond/(rows-1))
	return others / least * math.Sqrt(square/told) * fewRows[min(int(told), len(fewRows)-1)]
}
