package estimate

import "math"

// The functions here and in beta.go and normal.go follow package math: an
// argument outside the domain gives NaN.

// Digamma returns ψ(x), the derivative of ln Γ(x), for x > 0, and NaN
// elsewhere.
func Digamma(x float64) float64 {
	if !(x > 0) {
		return math.NaN()
	}
	if math.Abs(x-digammaRoot) < 0.1 {
		return digammaNearRoot(x)
	}
	// Use ψ(x) = ψ(x+1) − 1/x to get to where the asymptotic series is exact
	// to the last digit.
	sum := 0.0
	for ; x < 10; x++ {
		sum += 1 / x
	}
	return math.Log(x) - 0.5/x - polynomial(1/(x*x), digammaSeries[:])/(x*x) - sum
}

// Coefficients of x^-2, x^-4, … in ln x − 1/(2x) − ψ(x): B₂ₖ/2k with the
// Bernoulli numbers B (Abramowitz and Stegun, 6.3.18).
var digammaSeries = [...]float64{
	1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132, -691.0 / 32760, 1.0 / 12,
}

// The positive root of ψ, to twice the precision of a float64.
const (
	digammaRoot     = 1.4616321449683622
	digammaRootRest = 9.5499954299656977e-17
)

// digammaNearRoot is the Taylor series at the root, where every other form
// subtracts equal numbers. The coefficient of the k-th power of the distance
// is (−1)ᵏ⁺¹ζ(k+1, root), with Hurwitz's zeta function.
func digammaNearRoot(x float64) float64 {
	d := (x - digammaRoot) - digammaRootRest
	return d * polynomial(d, digammaAtRoot[:])
}

var digammaAtRoot = [...]float64{
	0.96767224544762117, -0.442763168983592106, 0.258499760955651011, -0.163942705442406528,
	0.107824050691262366, -0.0721995612564547109, 0.0488042881641431072, -0.0331611264748473593,
	0.0225976482322181047, -0.0154247659049489591, 0.0105387916166121754, -0.00720453438635686824,
	0.00492678139572985345, -0.00336980165543932808, 0.00230512632673492784,
}

// polynomial returns c[0] + c[1]·x + c[2]·x² …
func polynomial(x float64, c []float64) float64 {
	sum := 0.0
	for i := len(c) - 1; i >= 0; i-- {
		sum = sum*x + c[i]
	}
	return sum
}

// stirlingError returns what Stirling's formula leaves of ln Γ(x+1):
//
//	ln Γ(x+1) = x ln x − x + ½ ln(2πx) + stirlingError(x), x > 0
func stirlingError(x float64) float64 {
	if x >= 15 {
		return polynomial(1/(x*x), stirlingSeries[:]) / x
	}
	logGamma, _ := math.Lgamma(x + 1)
	return logGamma - (x+0.5)*math.Log(x) + x - 0.5*math.Log(2*math.Pi)
}

// Coefficients of x^-1, x^-3, … in [stirlingError]: B₂ₖ/(2k(2k−1))
// (Abramowitz and Stegun, 6.1.42).
var stirlingSeries = [...]float64{
	1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680, 1.0 / 1188, -691.0 / 360360,
}

// deviance returns x ln(x/mean) + mean − x for x = mean + excess, both
// positive: half the deviance of a Poisson count. Near the mean, where its
// terms cancel, it is a series in v = excess/(x + mean).
func deviance(mean, excess float64) float64 {
	x := mean + excess
	v := excess / (x + mean)
	if math.Abs(v) > 0.1 {
		return x*math.Log(x/mean) - excess
	}
	sum, power := excess*v, 2*x*v
	for i := 3.0; ; i += 2 {
		power *= v * v
		next := sum + power/i
		if next == sum {
			return sum
		}
		sum = next
	}
}

// incompleteGamma returns the regularized incomplete gamma function P(a, x)
// and its complement Q(a, x), for a > 0 and x ≥ 0. It computes the one on x's
// side of the mean, and subtracts to get the other.
func incompleteGamma(a, x float64) (lower, upper float64) {
	switch {
	case !(x > 0):
		return 0, 1
	case math.IsInf(x, 1):
		return 1, 0
	}
	if x < a+1 {
		// Abramowitz and Stegun, 6.5.29.
		sum, term := 1.0, 1.0
		for i := 1.0; term > 1e-17*sum; i++ {
			term *= x / (a + i)
			sum += term
		}
		lower = min(1, gammaPower(a, x)/a*sum)
		return lower, 1 - lower
	}
	// The continued fraction 6.5.31 in its even part, by Lentz's method.
	b := x + 1 - a
	c, d := 1e300, 1/b
	f := d
	for i := 1.0; i < 1e7; i++ {
		numerator := -i * (i - a)
		b += 2
		d, c = 1/nonZero(numerator*d+b), nonZero(b+numerator/c)
		f *= c * d
		if math.Abs(c*d-1) < 0x1p-52 {
			break
		}
	}
	upper = min(1, gammaPower(a, x)*f)
	return 1 - upper, upper
}

// gammaPower returns xᵃe⁻ˣ/Γ(a): x times the density of the gamma
// distribution.
func gammaPower(a, x float64) float64 {
	return math.Exp(-deviance(x, a-x)-stirlingError(a)) * math.Sqrt(a/(2*math.Pi))
}

// chiSquareQuantile returns the x below which a chi-square variable lies with
// probability lower, and above which it lies with probability upper = 1 −
// lower. Both are given, and the smaller is inverted.
func chiSquareQuantile(lower, upper, degrees float64) float64 {
	z := NormalQuantile(min(lower, upper))
	if upper < lower {
		z = -z
	}
	// Wilson and Hilferty: the cube root is nearly normal.
	cubeRoot := 1 - 2/(9*degrees) + z*math.Sqrt(2/(9*degrees))
	guess := degrees * cubeRoot * cubeRoot * cubeRoot
	if degrees > largeParameter {
		return guess
	}
	a := degrees / 2
	// P(a, x) is at most xᵃ/Γ(a+1), which bounds the quantile from below.
	logGamma, _ := math.Lgamma(a + 1)
	guess = max(guess, 2*math.Exp((math.Log(lower)+logGamma)/a))
	if guess == 0 {
		return 0
	}
	return 2 * invert(func(x float64) (value, slope float64) {
		l, u := incompleteGamma(a, x)
		density := gammaPower(a, x) / x
		if lower < upper {
			return math.Log(l / lower), density / l
		}
		return math.Log(upper / u), density / u
	}, guess/2, math.Inf(1))
}
