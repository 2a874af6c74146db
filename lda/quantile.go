package lda

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/areas"
)

// A Quantile is the delay, in nanoseconds, that a share P of the packets does not exceed.
type Quantile struct {
	P, Delay float64
	Interval estimate.Interval // by order statistics: it holds for every distribution
}

// A distribution is that of the delays of packets that were alone in their cell.
type distribution struct {
	estimate.Empirical
	strays float64 // the greatest share of packets that the sample may lack whatever their delay
	more   float64 // by how much the mean of all may be above that of the sample
	chance float64 // what Result.byChance says
}

// Samples returns the delays, in nanoseconds, of packets of the report that were alone in their cell at both points, so that each
// is known exactly. Their hashes chose them, whatever their delay, so they are a sample of all packets received, except of copies
// of one packet, which are never alone. There are up to 5,120, chosen at random so that all packets are equally represented.
func (a *Accumulator) Samples() estimate.Empirical { return a.distribute().Empirical }

// Quantile returns the p-quantile of the delays of packets received, with the interval that holds it with the
// given confidence. If the samples are too few to bound it, the error wraps [estimate.ErrNoSamples]: a p99 takes
// 368 samples at 95 % confidence, and fewer where these are most of the packets. Where cells look as if packets had
// copies, these may all be faster or slower than the samples: the interval allows for them, and high quantiles are not bounded.
func (a *Accumulator) Quantile(p, confidence float64) (Quantile, error) {
	d := a.distribute()
	slower := min(1, d.strays+a.unseen(d.more, (1-confidence)/2))
	q := Quantile{P: p, Interval: d.interval((p-d.strays)/(1-d.strays), p/(1-slower), confidence)} // if all strays are faster, or slower
	if !q.Interval.Bounded() {
		const few = "lda: %w: %d delays do not bound quantile %v with confidence %v"
		return Quantile{P: p}, fmt.Errorf(few, estimate.ErrNoSamples, d.N(), p, confidence)
	}
	q.Delay, _ = d.Quantile(p)
	return q, nil
}

// distribute returns the distribution of the delays of the report. Strays may be copies unlike the packets that
// were alone. If the mean and pairs together tell of any, by more than chance, they are as many as counts allow.
// Otherwise they are as many as are sure and would not show in the mean if they were slower by a deviation.
func (a *Accumulator) distribute() *distribution {
	whole, d := a.complete(), a.distribution
	if d != nil {
		return d
	}
	d = &distribution{Empirical: estimate.NewEmpirical(slices.Clone(a.sample.delays)), strays: whole.copied()}
	r, err := a.Estimate()
	d.chance = r.byChance()
	if a.distribution = d; err != nil {
		return d
	}
	above, error := r.Mean+r.owed-r.alone.Mean, surely*math.Hypot(r.sampling, r.alone.StdDev/math.Sqrt(float64(max(r.alone.N, 1))))
	d.more = max(0, above+error)
	if math.Hypot(surely*above/error, a.pairs.shows()) > surely {
		r.copied = min(1, max(r.copied, d.strays+a.pairs.atMost()))
	}
	if math.Abs(above) <= error && r.behind.value == 0 && r.copied*r.alone.StdDev > error {
		r.copied = max(d.strays, error/r.alone.StdDev)
	}
	d.strays = r.copied
	return d
}

// interval returns the interval from the low- to the high-quantile of the packets received. It takes these to be as many
// as would give a sample drawn one by one from them the variance that Result.byChance says.
func (d *distribution) interval(low, high, confidence float64) estimate.Interval {
	tail, n := (1-confidence)/2, float64(d.N())
	if d.chance >= 1 || n == 0 || !(low > 0 && high < 1 && tail > 0 && tail < 0.5) {
		i := d.QuantileInterval(high, confidence)
		i.Low = d.QuantileInterval(low, confidence).Low
		return i
	}
	i := estimate.Interval{Low: math.Inf(-1), High: math.Inf(1), Confidence: confidence}
	all := min(1e6*n, math.Ceil(n/(1-d.chance)))
	if k := leastOf(n, max(1, math.Floor(low*all)), all, tail); k > 0 {
		i.Low, _ = d.Quantile((k - 0.5) / n)
	}
	if k := leastOf(n, all-math.Ceil(high*all)+1, all, tail); k > 0 {
		i.High, _ = d.Quantile((n - k + 0.5) / n)
	}
	return i
}

// leastOf returns how many of some packets are in a sample of n of all at least, except with the probability tail. What is
// more than eight standard deviations below the mean is too improbable to count.
func leastOf(n, some, all, tail float64) float64 {
	gamma := func(x float64) float64 { g, _ := math.Lgamma(x + 1); return g }
	choose := func(n, k float64) float64 { return gamma(n) - gamma(k) - gamma(n-k) }
	mean := n * some / all
	k := max(0, n+some-all, math.Floor(mean-8*math.Sqrt(mean*(1-some/all)*(1-n/all))-8))
	one := math.Exp(choose(some, k) + choose(all-some, n-k) - choose(all, n))
	for most := one; most <= tail && k < min(n, some); most += one {
		one *= (some - k) * (n - k) / ((k + 1) * (all - some - n + k + 1))
		k++
	}
	return k
}

// unseen returns the greatest share of packets that chance, except in a tail, may have kept out of the sample
// because each would stand for more, and that are no slower than the mean of all leaves room for.
func (a *Accumulator) unseen(more, tail float64) (share float64) {
	for _, w := range a.weights {
		none := -math.Log(tail) * (w.Weight/a.config.sampledRate() - a.sample.each) / a.sample.packets
		if slower := float64(w.Delay) - a.alone.Mean; slower > 0 {
			none = min(none, more/slower)
		}
		share = max(share, none)
	}
	return share
}

// A reservoir keeps a sample of delays in which each stands for equally many packets. One that stands for fewer is
// kept with a probability in proportion. Where it begins to count is random, and the same in every run.
type reservoir struct {
	delays  []float64
	each    float64 // packets that a delay stands for
	packets float64 // that all delays stand for
	random  rand.PCG
}

// reservoirSize is the greatest size of a sample.
const reservoirSize = 5120

func (r *reservoir) reset() { r.delays, r.each, r.packets = r.delays[:0], 0, 0 }

// set makes it a copy of another.
func (r *reservoir) set(of *reservoir) {
	*r = reservoir{append(r.delays[:0], of.delays...), of.each, of.packets, of.random}
}

// add adds delays, which together stand for packets.
func (r *reservoir) add(all []areas.Alone, packets float64) {
	if r.packets += packets; len(all) == 0 {
		return
	}
	weights, heaviest := 0.0, 0.0
	for i := range all {
		weights += all[i].Weight
		heaviest = max(heaviest, all[i].Weight)
	}
	was, weight, old := r.each, packets/weights, len(r.delays)
	r.each = max(r.each, heaviest*weight)
	if old+len(all) > reservoirSize {
		r.each = max(r.each, r.packets/(reservoirSize-1))
	}
	// Shares of a place add up from a random one on. The delay that goes beyond the end of a place has it, so each has one with
	// the probability that is its share. They are whole numbers, so that shares of all of a place miss none.
	const placeBits, place = 40, 1 << 40
	at, share := int64(r.random.Uint64()%place), int64(was/r.each*place+0.5)
	r.delays = slices.Grow(r.delays, len(all))[:old+len(all)]
	to := r.delays
	for _, delay := range to[:old] {
		to[at>>placeBits] = delay
		at += share
	}
	weight *= place / r.each
	for i := range all {
		to[at>>placeBits] = float64(all[i].Delay)
		at += int64(all[i].Weight*weight + 0.5)
	}
	r.delays = to[:at>>placeBits]
}

// withoutFarthest returns delays except for the one farthest from their mean, in any order.
func withoutFarthest(delays []float64, mean float64) []float64 {
	last := len(delays) - 1
	for i, x := range delays {
		if math.Abs(x-mean) > math.Abs(delays[last]-mean) {
			delays[i], delays[last] = delays[last], x
		}
	}
	return delays[:last]
}

// deviation returns delays as a result, and the degrees of freedom of their deviation:
// the variance of a variance follows from the kurtosis.
func deviation(delays []float64) (d estimate.Delay, degrees uint64) {
	n, mean, square, fourth := float64(len(delays)), 0.0, 0.0, 0.0
	if n < 2 {
		return d, 0
	}
	for _, x := range delays {
		mean += x
	}
	mean /= n
	for _, x := range delays {
		s := sq(x - mean)
		square += s
		fourth += s * s
	}
	if degrees = uint64(n) - 1; square > 0 {
		degrees = uint64(max(1, 2*n/max(n*fourth/(square*square)-1, 2)))
	}
	return estimate.Delay{Mean: mean, StdDev: math.Sqrt(square / (n - 1)), N: uint64(n)}, degrees
}

func sq(x float64) float64 { return x * x }
