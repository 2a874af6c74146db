package rli

import (
	"math"

	"github.com/hoplag/hoplag/estimate"
)

// How far estimates are off is learned from references as well: each is
// estimated from its neighbours, as if it had not come, and compared with what it
// tells. That is over twice the time of two references and so rather too far off.
type residuals struct {
	n       uint64
	sum     int64 // estimate less truth, ns
	squares wide
}

func (s *residuals) learn(estimated, told float64) {
	x := round(estimated - told)
	s.n++
	s.sum += x
	s.squares.add(product(x, x))
}

func (s *residuals) add(b *residuals) {
	s.n += b.n
	s.sum += b.sum
	s.squares.add(b.squares)
}

// least is of how many references intervals are made.
const least = 16

// of is the mean square of residuals and how far off all estimates are together,
// both infinite where there are too few.
func (s *residuals) of() (variance, bias float64) {
	if s.n < least {
		return math.Inf(1), math.Inf(1)
	}
	n := float64(s.n)
	variance = s.squares.float() / n
	return variance, math.Abs(float64(s.sum))/n + 2*math.Sqrt(variance/n)
}

// A probe is a reference of the period under way that is to be estimated once
// the next one or the period's end is known.
type probe struct {
	given    bool
	from, at point
}

func (b *probe) end(s *residuals, spread *spread, to point) {
	if !b.given {
		return
	}
	b.given = false
	course := spread.bridge(b.from, to)
	since := b.at.place - b.from.place
	s.learn(max(min(course.at(b.at.place), b.from.wait+since), to.wait-(to.place-b.at.place), 0), b.at.wait)
}

// test estimates the left reference by the line from the one before to the right
// one, or with Left the right one by the left.
func (r *Receiver) test(right mark) {
	switch {
	case r.method == Left && r.left.seen:
		r.residuals.learn(float64(r.left.delay), float64(right.delay))
	case r.method != Left && r.left.seen && r.earlier.seen && right.departed > r.earlier.departed:
		share := float64(r.left.departed-r.earlier.departed) / float64(right.departed-r.earlier.departed)
		r.residuals.learn(float64(r.earlier.delay)+share*float64(right.delay-r.earlier.delay), float64(r.left.delay))
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
		High:       math.Sqrt(r.StdDev*r.StdDev+r.variance) + half,
		Confidence: confidence,
	}
}
