package estimate

import "math"

var (
	anywhere    = Interval{Low: math.Inf(-1), High: math.Inf(1), Confidence: 1}
	nonNegative = Interval{Low: 0, High: math.Inf(1), Confidence: 1}
	unit        = Interval{Low: 0, High: 1, Confidence: 1}
)

func between0And1(confidence float64) bool {
	return confidence > 0 && confidence < 1
}

func finite(x float64) bool {
	return math.Abs(x) <= math.MaxFloat64
}

// around returns the interval of d.Mean plus and minus factor standard errors.
func around(d Delay, factor, confidence float64) Interval {
	half := factor * (d.StdDev / math.Sqrt(float64(d.N)))
	if d.N == 0 || !finite(d.Mean) || !(d.StdDev >= 0) || !finite(half) {
		return anywhere
	}
	return Interval{Low: d.Mean - half, High: d.Mean + half, Confidence: confidence}
}

// HoeffdingInterval returns LDA's interval of the mean delay, eq. (1):
//
//	Pr[|D − μ| ≥ εμ] ≤ 2 exp(−ε²Sμ² / 2σ²)
//
// with d.Mean for D, d.N for the effective sample size S and d.StdDev for σ: a half width of σ√(2
// ln(2/(1−confidence)) / S), wider than the central limit's by 30 % at 98 % and more at lower confidence. As an
// inequality it holds if σ is known and tails are no heavier than those of the normal distribution; for other
// delays it is a central-limit interval with that margin. If the deviation was estimated from few cells, use
// [StudentInterval].
func HoeffdingInterval(d Delay, confidence float64) Interval {
	if !between0And1(confidence) {
		return anywhere
	}
	return around(d, math.Sqrt(2*math.Log(2/(1-confidence))), confidence)
}

// StudentInterval returns the interval of the mean delay if the deviation was itself estimated, with the given
// degrees of freedom, as from few [Cells]. It is exact for an estimate from normal samples.
func StudentInterval(d Delay, degrees uint64, confidence float64) Interval {
	if !between0And1(confidence) || degrees == 0 {
		return anywhere
	}
	return around(d, -StudentQuantile((1-confidence)/2, float64(degrees)), confidence)
}

// DeviationInterval returns the chi-square interval of a deviation of which stdDev is an estimate with the
// given degrees of freedom. It is exact for an estimate from normal samples, and too narrow for heavier tails,
// whatever the degrees of freedom.
func DeviationInterval(stdDev float64, degrees uint64, confidence float64) Interval {
	if !between0And1(confidence) || degrees == 0 || !(stdDev >= 0) || !finite(stdDev) {
		return nonNegative
	}
	df, tail := float64(degrees), (1-confidence)/2
	lower := chiSquareQuantile(tail, df)
	upper := chiSquareQuantile(1-tail, df)
	return within(nonNegative, stdDev*math.Sqrt(df/upper), stdDev*math.Sqrt(df/lower), confidence)
}

// within returns the interval from low to high. Where a quantile is too far out to be found, such as that of a
// tail too small for a float, the end is that of the range.
func within(whole Interval, low, high, confidence float64) Interval {
	if !(low >= whole.Low && low <= whole.High) {
		low = whole.Low
	}
	if !(high >= low && high <= whole.High) {
		high = whole.High
	}
	return Interval{Low: low, High: high, Confidence: confidence}
}

// ProportionInterval returns the Clopper–Pearson interval of a probability after the given number of successes
// in independent trials, such as packets lost of packets sent. It holds for every probability and every number
// of trials. Losses that come in bursts are not independent, and break it.
func ProportionInterval(successes, trials uint64, confidence float64) Interval {
	if !between0And1(confidence) || trials == 0 || successes > trials {
		return unit
	}
	tail := (1 - confidence) / 2
	hits, misses := float64(successes), float64(trials-successes)
	low, high := 0.0, 1.0
	if successes > 0 {
		low = betaQuantile(tail, 1-tail, hits, misses+1)
	}
	if successes < trials {
		high = betaQuantile(1-tail, tail, hits+1, misses)
	}
	return within(unit, low, high, confidence)
}
