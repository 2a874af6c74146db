package rli

import (
	"math"

	"github.com/hoplag/hoplag/estimate"
)

// How far off estimates are is learned from references as well: each is
// estimated from its neighbours, as if it had not come, and compared with what it
// tells, for all packets since the one before it. That is over twice the time of
// two references and so rather too far off.
type residuals struct {
	packets uint64 // that references stand for
	weights uint64 // sum of their squares
	sum     int64  // estimate less truth, ns, of each packet
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

// least is of how many references intervals are made.
const least = 16

// of is the mean square of residuals and how far off all estimates are together,
// both infinite where there are too few.
func (s *residuals) of() (variance, bias float64) {
	n := float64(s.packets)
	references := n * n / float64(s.weights) // if all stood for as many
	if s.weights == 0 || references < least {
		return math.Inf(1), math.Inf(1)
	}
	variance = s.squares.float() / n
	return variance, 2*math.Abs(float64(s.sum))/n + 3*math.Sqrt(variance/references)
}

// test estimates the left reference by the line from the one before to the right
// one, or with Left the right one by the left.
func (r *Receiver) test(right mark) {
	switch {
	case r.method == Left && r.left.seen:
		r.residuals.learn(float64(r.left.delay), float64(right.delay), right.packets)
	case r.method != Left && r.left.seen && r.earlier.seen && right.departed > r.earlier.departed:
		share := float64(r.left.departed-r.earlier.departed) / float64(right.departed-r.earlier.departed)
		r.residuals.learn(float64(r.earlier.delay)+share*float64(right.delay-r.earlier.delay), float64(r.left.delay), r.left.packets)
	}
}

// MeanInterval is the interval of the mean of all the flow's delays at a
// confidence, over 0 and below 1. It rests on as many independent errors as there
// were pairs of references that the packets came between, each as large as those
// that references showed, and on what these had in common. It is unbounded where
// fewer than 16 references tell.
func (r *Result) MeanInterval(confidence float64) estimate.Interval {
	half := r.half(confidence) + r.bias
	return estimate.Interval{Low: r.Mean - half, High: r.Mean + half, Confidence: confidence}
}

// half is that of the mean's interval, but for what all estimates have in common.
func (r *Result) half(confidence float64) float64 {
	if math.IsInf(r.variance, 1) {
		return math.Inf(1)
	}
	return -estimate.StudentQuantile((1-confidence)/2, degrees) * math.Sqrt(r.variance/float64(max(r.gaps, 1)))
}

// degrees are of the Student distribution, for the tails that errors have beyond
// their squares.
const degrees = 4

// DeviationInterval is the interval of the deviation of the flow's delays at a
// confidence, over 0 and below 1. Estimates are smoother than delays: their
// errors add to the deviation, which therefore is more likely above StdDev than
// below. See MeanInterval.
func (r *Result) DeviationInterval(confidence float64) estimate.Interval {
	half := math.Sqrt2 * r.half(confidence)
	return estimate.Interval{
		Low:        max(r.StdDev-half, 0),
		High:       math.Sqrt(r.StdDev*r.StdDev+r.variance) + half + r.bias,
		Confidence: confidence,
	}
}
