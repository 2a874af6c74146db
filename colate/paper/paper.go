package paper

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/hoplag/hoplag/estimate"
)

// paperVector returns the vector that the paper's rule chooses. If there is
// only one, it returns that: the paper then assumes that nothing is lost.
func paperVector(up, down *Subvector) int {
	if up.config.Vectors == 1 && down.config.Vectors == 1 {
		return 0
	}
	return MostSampled(up, down)
}

// timeSum estimates the sum of the flow's time stamps in vector k, in units
// (Theorem 2, eq. (4)).
func (s *Subvector) timeSum(k int) float64 {
	n, m := float64(s.config.Counters), float64(s.config.PerFlow)
	var sum uint64
	for _, x := range s.own(k) {
		sum += x
	}
	return (n*float64(sum) - m*float64(s.vectors[k].Fill)) / (n - m)
}

// sameTime reports whether sums of time stamps at two points may be
// subtracted. Their sizes may differ.
func sameTime(up, down *Subvector) error {
	u, d := up.config, down.config
	if u.Shift != d.Shift || u.TimeBits != d.TimeBits || u.Vectors != d.Vectors || up.flow != down.flow {
		return fmt.Errorf("paper: %w: time units 2^%d and 2^%d ns, time stamps of %d and %d bits, %d and %d vectors, flows %016x and %016x",
			estimate.ErrMismatch, u.Shift, d.Shift, u.TimeBits, d.TimeBits, u.Vectors, d.Vectors, up.flow, down.flow)
	}
	return nil
}

// Theorem2 returns the paper's mean delay of the flow in nanoseconds, eqs. (3)
// and (4). The two points may have counters of any number and width, in
// subvectors of any size, but then the noise of others' time stamps does not
// cancel: the error is that of sums of time stamps, not of delays. It returns
// [estimate.ErrMismatch] if time units differ, and [estimate.ErrNoSamples] if
// no vector has the same number of packets at both points or packets is 0.
func Theorem2(up, down *Subvector, packets uint64) (float64, error) {
	k, p, err := paperFlow(up, down, packets)
	if err != nil {
		return 0, err
	}
	return (down.timeSum(k) - up.timeSum(k)) * up.config.Unit() / p, nil
}

// paperFlow returns the vector to use and the number of the flow's packets in
// it.
func paperFlow(up, down *Subvector, packets uint64) (k int, p float64, err error) {
	if err := sameTime(up, down); err != nil {
		return 0, 0, err
	}
	k = paperVector(up, down)
	if k < 0 {
		return 0, 0, fmt.Errorf("paper: %w: no vector has equal packet counts at both points", estimate.ErrNoSamples)
	}
	if packets == 0 || up.epochs == 0 || down.epochs == 0 {
		return 0, 0, fmt.Errorf("paper: %w: %d packets, %d and %d epochs", estimate.ErrNoSamples, packets, up.epochs, down.epochs)
	}
	return k, float64(packets) * up.config.Share(k), nil
}

// Theorem2Interval returns the interval of [Theorem2] that follows from the
// paper's reliability analysis (§5, eqs. 11, 12, 21). It assumes that each
// point's sum has the variance of eq. (2), as if its time units, and not its
// packets, were spread over the counters one by one. For real traffic it is
// too narrow by the square root of the number of units in a time stamp; the
// finer the unit, the worse.
func Theorem2Interval(up, down *Subvector, packets uint64, confidence float64) (estimate.Interval, error) {
	k, p, err := paperFlow(up, down, packets)
	if err != nil {
		return estimate.Interval{}, err
	}
	if !(confidence > 0 && confidence < 1) {
		return estimate.Interval{}, fmt.Errorf("paper: %w: confidence is %v, want between 0 and 1", estimate.ErrConfig, confidence)
	}
	each := (1 + confidence) / 2 // eq. (11)
	deviations := math.Sqrt2 * math.Erfinv(each)
	half := deviations * (up.unitDeviation(k) + down.unitDeviation(k)) * up.config.Unit() / p
	mean, err := Theorem2(up, down, packets)
	return estimate.Interval{Low: mean - half, High: mean + half, Confidence: confidence}, err
}

// unitDeviation returns the deviation of timeSum by eq. (2): h·√m·n/(n−m).
func (s *Subvector) unitDeviation(k int) float64 {
	n, m := float64(s.config.Counters), float64(s.config.PerFlow)
	total := float64(s.vectors[k].Fill)
	own := min(max(s.timeSum(k), 0), total)
	return math.Sqrt(m*unitVariance(own, total, n, m)) * n / (n - m)
}

// unitVariance returns the variance of a counter, eq. (2).
func unitVariance(own, total, counters, perFlow float64) float64 {
	return own/perFlow*(1-1/perFlow) + (total-own)/counters*(1-1/counters)
}

// Denoise is Theorem 3. It appends to dst the maximum-likelihood estimates of
// what the flow's own packets contributed to each of its counters in vector k,
// in units. It returns [estimate.ErrNoSamples] if no epoch was added.
//
// Eq. (7) has the same solution for every counter: with ξ = S − w, what others
// contributed, it reads ln(n−1) = ψ(τ−ξ+1) − ψ(ξ+1), in which nothing depends
// on the counter. So it shifts all counters by one number, close to the mean
// counter of others, and no difference between two of them changes: the
// deviation of Theorem 4 is the same without Theorem 3.
func (s *Subvector) Denoise(dst []float64, k int) ([]float64, error) {
	if k < 0 || k >= s.config.Vectors {
		return dst, estimate.Invalid("paper", "vector", k, fmt.Sprintf("0 to %d", s.config.Vectors-1))
	}
	if s.epochs == 0 {
		return dst, fmt.Errorf("paper: %w: no epochs", estimate.ErrNoSamples)
	}
	others := noisePerCounter(float64(s.vectors[k].Fill)-s.timeSum(k), float64(s.config.Counters))
	for _, x := range s.own(k) {
		dst = append(dst, float64(x)-others)
	}
	return dst, nil
}

// noisePerCounter solves eq. (7) for ξ, given τ and n. The right-hand side
// falls from +∞ at ξ = −1 to −∞ at ξ = τ+1, so bisection cannot fail. A
// solution below 0 means that 0, the end of the range, is most likely.
func noisePerCounter(total, counters float64) float64 {
	if total <= 0 {
		return 0
	}
	want := math.Log(counters - 1)
	low, high := 0.0, total
	for range 200 {
		x := low + (high-low)/2
		if x <= low || x >= high {
			break
		}
		if estimate.Digamma(total-x+1)-estimate.Digamma(x+1) > want {
			low = x
		} else {
			high = x
		}
	}
	return low
}

// VirtualRepetitions returns the paper's deviation of the flow's delays in
// nanoseconds (§4.2.3). It draws the given number of random pairings (γ) of
// the flow's counters from seed, and puts the mean of eq. (10) over them into
// eq. (5). It allocates. The errors are those of [Theorem2]. It also returns
// ErrNoSamples if the variance comes out negative, or if the points have
// different numbers of counters per flow (§5.3).
func VirtualRepetitions(up, down *Subvector, packets uint64, repetitions int, seed uint64) (float64, error) {
	delays, p, err := denoisedDelays(up, down, packets)
	if err != nil {
		return 0, err
	}
	if repetitions < 1 {
		return 0, fmt.Errorf("paper: %w: %d repetitions, want at least 1", estimate.ErrConfig, repetitions)
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	sum := 0.0
	for range repetitions {
		rng.Shuffle(len(delays), func(i, j int) { delays[i], delays[j] = delays[j], delays[i] })
		for l := 0; l+1 < len(delays); l += 2 {
			d := delays[l+1] - delays[l]
			sum += d * d
		}
	}
	return paperDeviation(up, down, packets, sum/float64(repetitions)/p)
}

// ClosedForm returns the limit of [VirtualRepetitions] as the number of
// pairings grows: the average of the squared differences over all pairings is
// m·S², with S² the sample variance over the flow's counters.
func ClosedForm(up, down *Subvector, packets uint64) (float64, error) {
	delays, p, err := denoisedDelays(up, down, packets)
	if err != nil {
		return 0, err
	}
	return paperDeviation(up, down, packets, squares(delays)*float64(len(delays))/p)
}

// denoisedDelays returns the sum of the flow's delays in each of its counters,
// in ns, by Theorem 3.
func denoisedDelays(up, down *Subvector, packets uint64) (delays []float64, p float64, err error) {
	k, p, err := paperFlow(up, down, packets)
	if err != nil {
		return nil, 0, err
	}
	if up.config.PerFlow != down.config.PerFlow {
		return nil, 0, fmt.Errorf("paper: %w: %d and %d counters per flow", estimate.ErrMismatch, up.config.PerFlow, down.config.PerFlow)
	}
	received, err := down.Denoise(nil, k)
	if err != nil {
		return nil, 0, err
	}
	sent, err := up.Denoise(nil, k)
	if err != nil {
		return nil, 0, err
	}
	for j := range received {
		received[j] = (received[j] - sent[j]) * up.config.Unit()
	}
	return received, p, nil
}

// paperDeviation returns eq. (5), given its first term.
func paperDeviation(up, down *Subvector, packets uint64, meanSquare float64) (float64, error) {
	mean, err := Theorem2(up, down, packets)
	if err != nil {
		return 0, err
	}
	variance := meanSquare - mean*mean
	if !(variance >= 0) {
		return 0, fmt.Errorf("paper: %w: the estimated variance is %g ns²", estimate.ErrNoSamples, variance)
	}
	return math.Sqrt(variance), nil
}

// squares returns S², the sample variance of sums of delays over a flow's
// counters. Packets choose their counters at random, so its expectation is the
// sum of the squared delays of all packets in a counter: m·S² is Theorem 4's
// sum of squares for the flow, averaged over all pairings of its counters,
// plus what noise adds.
func squares(sums []float64) float64 {
	if len(sums) < 2 {
		return 0
	}
	center, s := 0.0, 0.0
	for _, x := range sums {
		center += x / float64(len(sums))
	}
	for _, x := range sums {
		s += (x - center) * (x - center)
	}
	return s / float64(len(sums)-1)
}
