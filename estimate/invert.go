package estimate

import "math"

// invert solves excess(x) = 0 for 0 < x < high, where excess increases, by
// Newton's method within a bracket that shrinks at every step. excess also
// returns its derivative. It is the logarithm of a tail probability over its
// target, which is nearly straight where the probability itself is flat, so a
// poor first guess costs few steps.
func invert(excess func(x float64) (value, slope float64), guess, high float64) float64 {
	low, x := 0.0, guess
	if !(x > low && x < high) {
		x = middle(low, high)
	}
	for range 200 {
		value, slope := excess(x)
		if value == 0 {
			return x
		}
		if value < 0 {
			low = x
		} else {
			high = x
		}
		next := x - value/slope
		if !(next > low && next < high) {
			next = middle(low, high)
		}
		if math.Abs(next-x) <= 1e-15*x || next == low || next == high {
			return next
		}
		x = next
	}
	return x
}

// middle returns a point between two ends of any size, including 0 and
// infinity, such that repeated halving gets anywhere in few steps.
func middle(low, high float64) float64 {
	switch {
	case low == 0 && math.IsInf(high, 1):
		return 1
	case low == 0:
		return high / 16
	case math.IsInf(high, 1):
		return low * 16
	}
	return math.Sqrt(low) * math.Sqrt(high)
}
