package rli

import (
	"math"

	"github.com/hoplag/hoplag/estimate"
)

// least is the smallest number of references from which intervals are made.
const least = 16

// A Result is what is known about the packets of one flow, or of all flows.
type Result struct {
	// Delay describes the estimated delays of the packets, eq. (5) and (6). N
	// is their number, and the divisor of the deviation. A delay includes the
	// time to send the packet itself.
	estimate.Delay

	error  float64 // deviation of the mean's error
	single float64 // of one packet's
	common float64 // of what all estimates have in common
	bias   float64 // at most, beside
	gaps   float64
}

// result returns the estimate of a record, of which a fraction is doubtful.
func (r *Receiver) result(f *record, doubtful float64) Result {
	q, n, gaps := &r.quality, float64(f.count()), float64(max(f.gaps(), 1))
	res := Result{Delay: f.delay(r.centre)}
	if q.references < least || q.told == 0 || q.predicted == 0 {
		res.error, res.single = math.Inf(1), math.Inf(1)
		return res
	}
	m := q.references
	variance := f.error / (n * n) // of the mean
	single := variance * gaps
	ratio := q.seen / q.told
	common := 0.0
	if pairs := q.twins; pairs >= least {
		// Only what is no chance.
		share, off := q.common/pairs, math.Sqrt(q.commonest)/pairs
		if share > 2*off {
			common = min((share+3*off)/ratio, 1)
		}
	}
	res.error = math.Sqrt(ratio*(variance+common*single) + q.slack*q.slack/9/n)
	res.single = math.Sqrt(ratio * single)
	res.gaps = 1 / (1/gaps + common)
	res.common = math.Sqrt(single) * (math.Abs(q.sum) + 1.5*math.Sqrt(q.squares)) / q.predicted
	res.bias = q.blur/m + doubtful*q.span
	// A full queue lets a reference in only if there is room for one, so the
	// references that arrive have waited up to a packet less than others. While
	// it is full it loses at least one packet in eight.
	res.bias += q.longest * min(8*float64(r.counts.Missing)/float64(r.counts.Packets+1), 1)
	return res
}

// fewestDegrees, and one more for each gap, are those of the Student
// distribution. They allow for the heavy tails of errors.
const fewestDegrees = 3.5

// MeanInterval returns the interval of the mean of all the flow's delays at a
// confidence above 0 and below 1. It is unbounded with fewer than 16
// references.
func (r *Result) MeanInterval(confidence float64) estimate.Interval {
	half := r.half(confidence) + r.bias
	return estimate.Interval{Low: r.Mean - half, High: r.Mean + half, Confidence: confidence}
}

// half returns half the width of the mean's interval, without the error that
// is bounded.
func (r *Result) half(confidence float64) float64 {
	if math.IsInf(r.error, 1) {
		return math.Inf(1)
	}
	return -estimate.StudentQuantile((1-confidence)/2, fewestDegrees+r.gaps) * math.Hypot(r.error, r.common)
}

// DeviationInterval returns the interval of the deviation of the flow's delays
// at a confidence above 0 and below 1. Where estimates are smoother than delays,
// their errors are missing from StdDev; where references are off, they are in it.
// See MeanInterval.
func (r *Result) DeviationInterval(confidence float64) estimate.Interval {
	half := math.Sqrt2 * r.half(confidence)
	return estimate.Interval{
		Low:        max(math.Sqrt(max(r.StdDev*r.StdDev-r.single*r.single, 0))-half, 0),
		High:       math.Hypot(r.StdDev, r.single) + half + r.bias,
		Confidence: confidence,
	}
}
