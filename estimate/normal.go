package estimate

import "math"

// normalCDF returns the probability that a standard normal variable is at most
// x. It keeps its relative precision in the lower tail, where the rounding of
// x counts x² times: 2e-13 at -37, beyond which it ends.
func normalCDF(x float64) float64 {
	return math.Erfc(-x/math.Sqrt2) / 2
}

// NormalQuantile returns the p-quantile of the standard normal distribution:
// −Inf at p = 0, +Inf at 1, NaN outside. Below p = 1e-305 it has fewer digits,
// as has p. [math.Erfcinv] is no substitute: it subtracts its argument from 1
// and so loses the tail.
func NormalQuantile(p float64) float64 {
	switch {
	case !(p >= 0 && p <= 1):
		return math.NaN()
	case p > 0.5:
		return -NormalQuantile(1 - p) // the difference is exact
	case p == 0:
		return math.Inf(-1)
	case p > 0.1:
		// The difference is exact here too: no digit is lost near the middle.
		return math.Sqrt2 * math.Erfinv(2*(p-0.5))
	}
	x := roughNormalQuantile(p)
	// Halley's method; each step about triples the digits.
	for range 2 {
		step := (normalCDF(x) - p) / (math.Exp(-x*x/2) / math.Sqrt(2*math.Pi))
		x -= step / (1 + x*step/2)
	}
	return x
}

// roughNormalQuantile returns Hastings's approximation (Abramowitz and Stegun,
// 26.2.23) for 0 < p ≤ 1/2, with an absolute error below 4.5e-4.
func roughNormalQuantile(p float64) float64 {
	t := math.Sqrt(-2 * math.Log(p))
	return (2.515517+t*(0.802853+t*0.010328))/(1+t*(1.432788+t*(0.189269+t*0.001308))) - t
}
