package paper

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// timeSum estimates the sum of the flow's time stamps (Theorem 2, eq. (4)).
func (r *Recorder) timeSum(f hashing.Flow) float64 {
	n, m := float64(r.config.Counters), float64(r.config.PerFlow)
	var sum uint64
	for j := range uint64(r.config.PerFlow) {
		sum += r.sums[r.position(f, j)]
	}
	return (n*float64(sum) - m*float64(r.fill)) / (n - m)
}

// Theorem2 returns the paper's mean delay of the flow in nanoseconds, eqs. (3)
// and (4). If the two points have counters of another number or width, the noise
// of others' time stamps does not cancel. It returns [estimate.ErrMismatch] if
// time stamps differ in width, and [estimate.ErrNoSamples] if packets is 0 or a
// counter overflowed.
func Theorem2(up, down *Recorder, f hashing.Flow, packets uint64) (float64, error) {
	switch {
	case up.config.TimeBits != down.config.TimeBits:
		return 0, fmt.Errorf("paper: %w: time stamps of %d and %d bits", estimate.ErrMismatch, up.config.TimeBits, down.config.TimeBits)
	case packets == 0 || up.over || down.over:
		return 0, fmt.Errorf("paper: %w: no packets, or a counter that overflowed", estimate.ErrNoSamples)
	}
	return (down.timeSum(f) - up.timeSum(f)) / float64(packets), nil
}

// Theorem2Interval returns the interval of [Theorem2] that follows from the
// paper's reliability analysis (§5, eqs. 11, 12, 21). It assumes that each
// point's sum has the variance of eq. (2), as if its time units, and not its
// packets, were spread over the counters one by one. For real traffic it is
// too narrow by the square root of the number of units in a time stamp; the
// finer the unit, the worse.
func Theorem2Interval(up, down *Recorder, f hashing.Flow, packets uint64, confidence float64) (estimate.Interval, error) {
	mean, err := Theorem2(up, down, f, packets)
	if err != nil {
		return estimate.Interval{}, err
	}
	if !(confidence > 0 && confidence < 1) {
		return estimate.Interval{}, fmt.Errorf("paper: %w: confidence is %v, want between 0 and 1", estimate.ErrConfig, confidence)
	}
	deviations := math.Sqrt2 * math.Erfinv((1+confidence)/2) // eq. (11)
	half := deviations * (up.unitDeviation(f) + down.unitDeviation(f)) / float64(packets)
	return estimate.Interval{Low: mean - half, High: mean + half, Confidence: confidence}, nil
}

// unitDeviation returns the deviation of timeSum by the variance of a counter,
// eq. (2): h·√m·n/(n−m).
func (r *Recorder) unitDeviation(f hashing.Flow) float64 {
	n, m, total := float64(r.config.Counters), float64(r.config.PerFlow), float64(r.fill)
	own := min(max(r.timeSum(f), 0), total)
	return math.Sqrt(m*(own/m*(1-1/m)+(total-own)/n*(1-1/n))) * n / (n - m)
}

// VirtualRepetitions returns the paper's deviation of the flow's delays in
// nanoseconds (§4.2.3). It draws the given number of random pairings (γ) of
// the flow's counters from seed, and puts the mean of eq. (10) over them into
// eq. (5). The errors are those of [Theorem2]. It also returns
// ErrNoSamples if the variance comes out negative, or if the points have
// different numbers of counters per flow (§5.3).
func VirtualRepetitions(up, down *Recorder, f hashing.Flow, packets uint64, repetitions int, seed uint64) (float64, error) {
	if repetitions < 1 {
		return 0, fmt.Errorf("paper: %w: %d repetitions, want at least 1", estimate.ErrConfig, repetitions)
	}
	return deviation(up, down, f, packets, func(delays []float64) float64 {
		rng := rand.New(rand.NewPCG(seed, 0))
		sum := 0.0
		for range repetitions {
			rng.Shuffle(len(delays), func(i, j int) { delays[i], delays[j] = delays[j], delays[i] })
			for l := 0; l+1 < len(delays); l += 2 {
				d := delays[l+1] - delays[l]
				sum += d * d
			}
		}
		return sum / float64(repetitions)
	})
}

// ClosedForm returns the limit of [VirtualRepetitions] as the number of
// pairings grows: the average of the squared differences over all pairings is
// m·S², with S² the sample variance over the flow's counters.
func ClosedForm(up, down *Recorder, f hashing.Flow, packets uint64) (float64, error) {
	return deviation(up, down, f, packets, func(delays []float64) float64 {
		var m estimate.Moments
		for _, x := range delays {
			m.Add(x)
		}
		return m.Variance() * float64(len(delays))
	})
}

// deviation returns eq. (5), given what makes a sum of squares of the flow's
// delays in each of its counters. Theorem 3, the likeliest of what others brought, takes
// one number off each counter of a point (eq. (7) has nothing of the counter in it): the
// differences of counters are the same without it.
func deviation(up, down *Recorder, f hashing.Flow, packets uint64, squares func([]float64) float64) (float64, error) {
	mean, err := Theorem2(up, down, f, packets)
	if err != nil {
		return 0, err
	}
	if up.config.PerFlow != down.config.PerFlow {
		return 0, fmt.Errorf("paper: %w: %d and %d counters per flow", estimate.ErrMismatch, up.config.PerFlow, down.config.PerFlow)
	}
	delays := make([]float64, down.config.PerFlow)
	for j := range delays {
		delays[j] = float64(down.sums[down.position(f, uint64(j))]) - float64(up.sums[up.position(f, uint64(j))])
	}
	variance := squares(delays)/float64(packets) - mean*mean
	if !(variance >= 0) {
		return 0, fmt.Errorf("paper: %w: the estimated variance is %g ns²", estimate.ErrNoSamples, variance)
	}
	return math.Sqrt(variance), nil
}
