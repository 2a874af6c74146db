package estimate

import "math"

// largeParameter is where expansions take over from iterations, whose number
// grows with the root of the parameters: beyond it the expansions are within a
// millionth of a standard deviation.
const largeParameter = 1e8

// logBinomial returns the natural logarithm of the probability of k successes,
// of probability p, and m failures, of probability q, in independent trials:
//
//	ln [ (k+m)!/(k!m!) pᵏqᵐ ]
//
// It accepts real k and m. All arguments are positive. It uses Loader's method
// (2000): the factorials by Stirling's formula, whose large terms cancel
// against the powers exactly and leave two deviances. Differences of ln Γ
// would lose ten digits at n = 1e12.
func logBinomial(k, m, p, q float64) float64 {
	n := k + m
	excess := excessOver(k, m, p, q)
	return stirlingError(n) - stirlingError(k) - stirlingError(m) -
		deviance(n*p, excess) - deviance(n*q, -excess) -
		0.5*math.Log(2*math.Pi*k*(m/n))
}

// incompleteBeta returns the regularized incomplete beta function I(x; a, b)
// and its complement, for a, b > 0 and x+y = 1. Both x and y are given so that
// neither loses digits. It computes the one on x's side of the mean, and
// subtracts to get the other.
func incompleteBeta(a, b, x, y float64) (lower, upper float64) {
	switch {
	case !(x > 0):
		return 0, 1
	case !(y > 0):
		return 1, 0
	}
	// On either side of about the mean, the fraction of that side converges.
	if x > (a+1)/(a+b+2) {
		upper = betaTail(b, a, y, x)
		return 1 - upper, upper
	}
	lower = betaTail(a, b, x, y)
	return lower, 1 - lower
}

// betaTail returns I(x; a, b) for x up to about the mean of the distribution.
func betaTail(a, b, x, y float64) float64 {
	return min(1, betaPower(a, b, x, y)/betaFraction(a, b, x, y))
}

// betaPower returns xᵃyᵇ/B(a,b): x·y times the density of the beta
// distribution.
func betaPower(a, b, x, y float64) float64 {
	return math.Exp(logBinomial(a, b, x, y)) * a * (b / (a + b))
}

// betaFraction returns the denominator in I(x; a, b) = xᵃyᵇ/B(a,b) ÷ fraction.
// The fraction is a continued one (the even part of Abramowitz and Stegun,
// 26.5.8) whose terms are all positive for x below about a/(a+b), evaluated
// from its front by Lentz's method. It converges in about as many steps as the
// root of the smaller parameter; the bound on them is never reached.
func betaFraction(a, b, x, y float64) float64 {
	distance := excessOver(a, b, x, y) + 1
	f := nonZero(a * distance / (a + 1))
	c, d := f, 0.0
	for m := 1.0; m < 1e7; m++ {
		s := a + 2*m
		numerator := (a + m - 1) / (s - 1) * ((a + b + m - 1) / (s - 1)) * m * (b - m) * x * x
		term := m + m*(b-m)*x/(s-1) + (a+m)*(distance+m*(1+y))/(s+1)
		d, c = 1/nonZero(term+numerator*d), nonZero(term+numerator/c)
		f *= c * d
		if math.Abs(c*d-1) < 0x1p-52 {
			break
		}
	}
	return f
}

// excessOver returns k − (k+m)p, with p+q = 1, rounded once from the smaller
// of p and q, which has all its digits.
func excessOver(k, m, p, q float64) float64 {
	if p < q {
		return math.FMA(-(k + m), p, k)
	}
	return math.FMA(k+m, q, -m)
}

// nonZero keeps Lentz's method from dividing by zero.
func nonZero(x float64) float64 {
	if math.Abs(x) < 1e-300 {
		return 1e-300
	}
	return x
}

// betaQuantile returns the x below which a beta variable with parameters a, b
// ≥ 1 lies with probability lower, and above which it lies with probability
// upper = 1 − lower. Both are given, and the smaller is inverted.
func betaQuantile(lower, upper, a, b float64) float64 {
	if a > b {
		// The quantile may be so close to 1 that no float64 separates them.
		return 1 - betaQuantile(upper, lower, b, a)
	}
	guess := roughBetaQuantile(lower, upper, a, b)
	if a > largeParameter {
		return guess
	}
	return invert(func(x float64) (value, slope float64) {
		y := 1 - x
		l, u := incompleteBeta(a, b, x, y)
		density := betaPower(a, b, x, y) / (x * y)
		if lower < upper {
			return math.Log(l / lower), density / l
		}
		return math.Log(upper / u), density / u
	}, guess, 1)
}

// roughBetaQuantile returns Carter's approximation (Abramowitz and Stegun,
// 26.5.22). Its error, in deviations of the distribution, falls as the smaller
// parameter rises.
func roughBetaQuantile(lower, upper, a, b float64) float64 {
	z := NormalQuantile(min(lower, upper))
	if upper > lower {
		z = -z
	}
	ra, rb := 1/(2*a-1), 1/(2*b-1)
	h := 2 / (ra + rb)
	l := (z*z - 3) / 6
	w := z*math.Sqrt(h+l)/h - (rb-ra)*(l+5.0/6-2/(3*h))
	return a / (a + b*math.Exp(2*w))
}

// StudentQuantile returns the p-quantile of Student's distribution with the
// given degrees of freedom, any positive number: −Inf at p = 0, +Inf at 1, NaN
// for arguments out of range.
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
	middle := 2 * (0.5 - p) // probability of [−t, t]; the difference is exact
	return -invert(func(t float64) (value, slope float64) {
		x, y := 1/(1+t/degrees*t), 1/(1+degrees/t/t)
		tails, body := incompleteBeta(degrees/2, 0.5, x, y)
		density := 2 * betaPower(degrees/2, 0.5, x, y) / t
		if p < 0.25 {
			return math.Log(2 * p / tails), density / tails
		}
		return math.Log(body / middle), density / body
	}, z, math.Inf(1))
}
