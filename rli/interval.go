package rli

import (
	"math"

	"github.com/hoplag/hoplag/estimate"
)

// The receiver learns from references how far off estimates are. It estimates
// each reference from its neighbours, as if it had not come, and compares the
// estimate with the reference's own delay, on behalf of all packets since the
// reference before. Two references are twice as far apart as usual then, so
// the error comes out rather too large.
type residuals struct {
	packets uint64 // that references stand for
	weights uint64 // sum of their squares
	sum     int64  // estimate less truth, ns, for each packet
	squares wide
}

func (s *residuals) learn(estimated, told float64, packets uint32) {
	x, n := round(estimated-told), uint64(packets)
	s.packets += n
	s.weights += n * n
	s.sum += x * int64(n)
	s.squares.add(product(x*int64(n), x))
}

func (s *residuals) add(b *residuals) {
	s.packets += b.packets
	s.weights += b.weights
	s.sum += b.sum
	s.squares.add(b.squares)
}

// least is the smallest number of references from which intervals are made.
const least = 16

// of returns the mean square of the residuals, and the common error of all
// estimates. Both are infinite if there are too few references.
func (s *residuals) of() (variance, bias float64) {
	n := float64(s.packets)
	references := n * n / float64(s.weights) // as if all stood for equally many
	if s.weights == 0 || references < least {
		return math.Inf(1), math.Inf(1)
	}
	variance = s.squares.float() / n
	return variance, 2*math.Abs(float64(s.sum))/n + 3*math.Sqrt(variance/references)
}

// test estimates the left reference from the line between the one before it
// and the right one or, with Left, the right one from the left one.
func (r *Receiver) test(right mark) {
	switch {
	case r.method == Left && r.left.seen:
		r.residuals.learn(float64(r.left.delay), float64(right.delay), right.packets)
	case r.method != Left && r.left.seen && r.earlier.seen:
		share := float64(r.left.departed-r.earlier.departed) / float64(right.departed-r.earlier.departed)
		if right.departed <= r.earlier.departed { // stamped together
			share = float64(r.left.packets) / float64(r.left.packets+right.packets)
		}
		r.residuals.learn(float64(r.earlier.delay)+share*float64(right.delay-r.earlier.delay), float64(r.left.delay), r.left.packets)
	}
}

// MeanInterval returns the interval of the mean of all the flow's delays at a
// confidence above 0 and below 1. It assumes one independent error for each
// pair of references that the packets came between, each as large as
// references showed, and one error that they have in common. It is unbounded
// with fewer than 16 references.
func (r *Result) MeanInterval(confidence float64) estimate.Interval {
	half := r.half(confidence) + r.bias
	return estimate.Interval{Low: r.Mean - half, High: r.Mean + half, Confidence: confidence}
}

// half returns half the width of the mean's interval, without the error that
// all estimates have in common.
func (r *Result) half(confidence float64) float64 {
	if math.IsInf(r.variance, 1) {
		return math.Inf(1)
	}
	return -estimate.StudentQuantile((1-confidence)/2, degrees) * math.Sqrt(r.variance/float64(max(r.gaps, 1)))
}

// degrees are those of the Student distribution. They allow for the heavy
// tails of errors.
const degrees = 4

// DeviationInterval returns the interval of the deviation of the flow's delays
// at a confidence above 0 and below 1. Estimates are smoother than delays, so
// the deviation is more likely to be above StdDev than below: the errors of
// the estimates add to it. See MeanInterval.
func (r *Result) DeviationInterval(confidence float64) estimate.Interval {
	half := math.Sqrt2 * r.half(confidence)
	return estimate.Interval{
		Low:        max(r.StdDev-half, 0),
		High:       math.Sqrt(r.StdDev*r.StdDev+r.variance) + half + r.bias,
		Confidence: confidence,
	}
}
