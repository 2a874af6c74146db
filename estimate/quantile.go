package estimate

import (
	"math"
	"slices"
	"sort"
)

// Empirical is the distribution of a set of samples, such as delays or relative
// errors. Queries do not change it, so goroutines may share it.
type Empirical struct {
	sorted []float64
}

// NewEmpirical takes over samples and sorts them in place. It drops those that are not numbers and keeps infinities.
func NewEmpirical(samples []float64) Empirical {
	samples = slices.DeleteFunc(samples, math.IsNaN)
	slices.Sort(samples)
	return Empirical{sorted: samples}
}

// N returns the number of samples.
func (e Empirical) N() int { return len(e.sorted) }

// Quantile returns the smallest sample that at least the fraction p of the samples do not exceed: always one of the
// samples. p outside [0, 1] counts as the nearer end. Without samples, or for p not a number, it returns ErrNoSamples.
func (e Empirical) Quantile(p float64) (float64, error) {
	n := len(e.sorted)
	if n == 0 || math.IsNaN(p) {
		return 0, ErrNoSamples
	}
	// Seven hundredths of a hundred is seven, although the nearest float64 to
	// 0.07 makes it slightly more: rounding must not add a rank.
	rank := math.Ceil(p * float64(n) * (1 - 4e-16))
	return e.sorted[int(min(max(rank, 1), float64(n)))-1], nil
}

// QuantileInterval returns a confidence interval of the p-quantile of the distribution from which the samples were
// drawn independently. Its ends are samples, whose ranks are binomial, so it holds for every distribution. If there are
// too few samples for an end, that end is infinite. Bad arguments (p or confidence outside (0, 1)) give the whole line.
func (e Empirical) QuantileInterval(p, confidence float64) Interval {
	n := len(e.sorted)
	if n == 0 || !between0And1(p) || !between0And1(confidence) {
		return anywhere
	}
	low, high := quantileRanks(n, p, (1-confidence)/2)
	i := Interval{Low: math.Inf(-1), High: math.Inf(1), Confidence: confidence}
	if low >= 1 {
		i.Low = e.sorted[low-1]
	}
	if high <= n {
		i.High = e.sorted[high-1]
	}
	return i
}

// quantileRanks returns the greatest rank, from 0, whose order statistic exceeds the p-quantile with probability at
// most tail, and the smallest rank, up to n+1, whose order statistic is below it with probability at most tail. The
// number of n samples at or below the quantile is binomial.
func quantileRanks(n int, p, tail float64) (low, high int) {
	return tailRank(n, p, tail), n + 1 - tailRank(n, 1-p, tail) // by symmetry, counting from the greatest sample
}

// tailRank returns the smallest k of 0 to n for which k or fewer of n are at or below the p-quantile with probability
// more than tail: Pr = I(1−p; n−k, k+1). From about there it adds up probabilities of single numbers.
func tailRank(n int, p, tail float64) int {
	mean := float64(n) * p
	k := int(min(max(0, mean+NormalQuantile(tail)*math.Sqrt(mean*(1-p))), float64(n-1)))
	_, most, power := incompleteBeta(float64(k+1), float64(n-k), p, 1-p)
	odds, one := p/(1-p), power/(float64(n-k)*p)
	for ; most > tail && k > 0; k-- {
		most -= one
		one *= float64(k) / (odds * float64(n-k+1))
	}
	for ; most <= tail && k < n; k++ {
		one *= odds * float64(n-k) / float64(k+1)
		most += one
	}
	return k
}

// CDF returns the fraction of the samples that are at most x, 0 without samples.
func (e Empirical) CDF(x float64) float64 {
	above := sort.Search(len(e.sorted), func(i int) bool { return !(e.sorted[i] <= x) })
	return float64(above) / float64(max(len(e.sorted), 1))
}

// RelativeError returns |estimate − truth| / |truth|: 0 if both are 0, infinite
// if only the truth is 0 or if either is not a number.
func RelativeError(estimate, truth float64) float64 {
	if estimate == truth {
		return 0
	}
	e := math.Abs(estimate-truth) / math.Abs(truth)
	if math.IsNaN(e) {
		return math.Inf(1)
	}
	return e
}
