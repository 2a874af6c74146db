package estimate

import "math"

// The functions here follow package math: an argument outside the domain gives NaN. They are good to a relative
// 1e-7 or better, and where parameters are so large that expansions take over to 2/100,000 of a deviation.

// largeParameter is where expansions take over from iterations, whose number grows
// with the root of the parameters.
const largeParameter = 1e5

// NormalQuantile returns the p-quantile of the standard normal distribution:
// −Inf at p = 0, +Inf at 1, NaN outside.
func NormalQuantile(p float64) float64 {
	if p > 0.5 {
		return -NormalQuantile(1 - p)
	}
	if p > 0.1 || !(p > 0) {
		return -math.Sqrt2 * math.Erfcinv(2*p)
	}
	// Hastings's approximation (26.2.23), and two steps of Halley's method.
	t := math.Sqrt(-2 * math.Log(p))
	x := (2.515517+t*(0.802853+t*0.010328))/(1+t*(1.432788+t*(0.189269+t*0.001308))) - t
	for range 2 {
		step := (math.Erfc(-x/math.Sqrt2)/2 - p) / (math.Exp(-x*x/2) / math.Sqrt(2*math.Pi))
		x -= step / (1 + x*step/2)
	}
	return x
}

// StudentQuantile returns the p-quantile of Student's distribution with the given degrees of freedom, any
// positive number: −Inf at p = 0, +Inf at 1, NaN for arguments out of range.
func StudentQuantile(p, degrees float64) float64 {
	switch {
	case !(p >= 0 && p <= 1) || !(degrees > 0):
		return math.NaN()
	case p == 0.5:
		return 0
	case p > 0.5:
		return -StudentQuantile(1-p, degrees)
	case p == 0:
		return math.Inf(-1)
	}
	z := -NormalQuantile(p)
	if degrees > largeParameter {
		// Fisher's expansion about the normal quantile.
		return -(z + z*(z*z+1)/(4*degrees) + z*(z*z*(5*z*z+16)+3)/(96*degrees*degrees))
	}
	// t²/(t²+degrees) is a beta variable, and both tails of t are its upper one.
	return -math.Sqrt(degrees * math.Exp(betaOdds(1-2*p, 2*p, 0.5, degrees/2, math.Log(z*z/degrees))))
}

// incompleteBeta returns the regularized incomplete beta function I(x; a, b),
// its complement, and xᵃyᵇ/B(a,b), which is x·y times the density, for a, b > 0
// and x+y = 1. Both x and y are given so that neither loses digits.
func incompleteBeta(a, b, x, y float64) (lower, upper, power float64) {
	switch {
	case !(x > 0):
		return 0, 1, 0
	case !(y > 0):
		return 1, 0, 0
	}
	all, _ := math.Lgamma(a + b)
	one, _ := math.Lgamma(a)
	other, _ := math.Lgamma(b)
	power = math.Exp(all - one - other + a*logOf(x, y) + b*logOf(y, x))
	// On either side of roughly the mean, the continued fraction of that side converges.
	if x > (a+1)/(a+b+2) {
		upper = min(1, power/betaFraction(b, a, y, x))
		return 1 - upper, upper, power
	}
	lower = min(1, power/betaFraction(a, b, x, y))
	return lower, 1 - lower, power
}

// logOf returns ln x, for x+y = 1.
func logOf(x, y float64) float64 {
	if x > 0.5 {
		return math.Log1p(-y)
	}
	return math.Log(x)
}

// betaFraction returns the denominator in I(x; a, b) = xᵃyᵇ/B(a,b) ÷ fraction. The fraction is a continued one
// (the even part of Abramowitz and Stegun, 26.5.8) whose terms are all positive for x below about a/(a+b),
// evaluated from its front by Lentz's method, in about as many steps as the root of the smaller parameter.
func betaFraction(a, b, x, y float64) float64 {
	const least = 1e-300 // no denominator is 0
	distance := a - (a+b)*x + 1
	f := max(a*distance/(a+1), least)
	c, d := f, 0.0
	for m := 1.0; m < 1e5; m++ {
		s := a + 2*m
		numerator := (a + m - 1) / (s - 1) * ((a + b + m - 1) / (s - 1)) * m * (b - m) * x * x
		term := m + m*(b-m)*x/(s-1) + (a+m)*(distance+m*(1+y))/(s+1)
		d, c = 1/(term+numerator*d), term+numerator/c
		f *= c * d
		if math.Abs(c*d-1) < 1e-15 {
			break
		}
	}
	return f
}

// betaQuantile returns the x below which a beta variable with parameters a, b ≥ 1 lies with probability lower,
// and above which it lies with probability upper = 1 − lower.
func betaQuantile(lower, upper, a, b float64) float64 {
	if a > b {
		return 1 - betaQuantile(upper, lower, b, a)
	}
	if a == 1 {
		return -math.Expm1(math.Log(upper) / b)
	}
	// Carter's approximation (26.5.22), whose error falls as a rises.
	z := math.Copysign(NormalQuantile(min(lower, upper)), upper-lower)
	ra, rb := 1/(2*a-1), 1/(2*b-1)
	h, l := 2/(ra+rb), (z*z-3)/6
	odds := math.Log(a/b) - 2*(z*math.Sqrt(h+l)/h-(rb-ra)*(l+5.0/6-2/(3*h)))
	if a <= largeParameter {
		odds = betaOdds(lower, upper, a, b, odds)
	}
	return 1 / (1 + math.Exp(-odds))
}

// betaOdds returns the logarithm of the odds x/(1−x) of such an x, for any a, b >
// 0, from a guess. Both probabilities are given, and the smaller is inverted.
func betaOdds(lower, upper, a, b, guess float64) float64 {
	if lower > upper {
		return -betaOdds(upper, lower, b, a, -guess)
	}
	return invert(guess, func(u float64) (value, slope float64) {
		tail, _, power := incompleteBeta(a, b, 1/(1+math.Exp(-u)), 1/(1+math.Exp(u)))
		return math.Log(tail / lower), power / tail
	})
}

// chiSquareQuantile returns the p-quantile of a chi-square variable.
func chiSquareQuantile(p, degrees float64) float64 {
	// Wilson and Hilferty: the cube root is nearly normal.
	root := max(0, 1-2/(9*degrees)+NormalQuantile(p)*math.Sqrt(2/(9*degrees)))
	guess := degrees * root * root * root
	if degrees > largeParameter {
		return guess
	}
	a := degrees / 2
	logGamma, _ := math.Lgamma(a + 1)
	scale := logGamma + math.Log(p) // P(a, x) is at most xᵃ/Γ(a+1), which bounds the quantile from below
	return 2 * math.Exp(invert(max(scale/a, math.Log(guess/2)), func(u float64) (value, slope float64) {
		x, sum, term := math.Exp(u), 1.0, 1.0 // 6.5.29
		for i := 1.0; term > 1e-17*sum; i++ {
			term *= x / (a + i)
			sum += term
		}
		return a*u - x + math.Log(sum) - scale, a / sum
	}))
}

// invert solves excess(u) = 0, where excess increases, by Newton's method within a
// bracket. excess also returns its derivative. It is the logarithm of a tail's probability
// over its target, and u that of the quantile or of its odds, which makes it nearly straight.
func invert(u float64, excess func(u float64) (value, slope float64)) float64 {
	low, high := -750.0, 750.0 // beyond any float64's
	for range 200 {
		value, slope := excess(u)
		if value < 0 {
			low = u
		} else {
			high = u
		}
		step := value / slope
		if u -= step; math.Abs(step) <= 1e-8 { // Newton's next one would be of its square
			break
		}
		if !(u > low && u < high) {
			u = (low + high) / 2
		}
	}
	return u
}
