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
}

// Samples returns the delays, in nanoseconds, of packets of the report that were alone in their cell at both
// points, so that each is known exactly. Their hashes chose them, whatever their delay, so they are a sample of
// all packets received, except of copies of one packet, which are never alone. There are up to 5,120, chosen at
// random so that all packets are equally represented.
//
// A bank with λ packets to a cell on average gives λ·e^−λ samples a cell in an interval: 0.37 at best, when λ is
// 1. 1,024 cells give some 370. The rank of a median is then typically off by 2 percentage points and that of a
// p99 by 0.4; after a hundred intervals, by a tenth of that.
func (a *Accumulator) Samples() estimate.Empirical { return a.distribute().Empirical }

// Quantile returns the p-quantile of the delays of packets received, with the interval that holds it with the
// given confidence. If the samples are too few to bound it, the error wraps [estimate.ErrNoSamples]: a p99 takes
// 368 samples at 95 % confidence. Where cells look as if packets had copies, these may all be faster or slower
// than the samples: the interval allows for them, and high quantiles are not bounded.
func (a *Accumulator) Quantile(p, confidence float64) (Quantile, error) {
	d := a.distribute()
	q := Quantile{P: p, Interval: d.QuantileInterval(p/(1-d.strays), confidence)}  // if all strays are slower,
	q.Interval.Low = d.QuantileInterval((p-d.strays)/(1-d.strays), confidence).Low // or faster
	var err error
	q.Delay, err = d.Quantile(p)
	if err == nil && !q.Interval.Bounded() {
		err = estimate.ErrNoSamples
	}
	if err != nil {
		return Quantile{P: p}, fmt.Errorf("lda: %w: %d delays do not bound quantile %v with confidence %v", err, d.N(), p, confidence)
	}
	return q, nil
}

// distribute returns the distribution of the delays of the report.
func (a *Accumulator) distribute() *distribution {
	whole := a.complete()
	if a.distribution == nil {
		a.distribution = &distribution{estimate.NewEmpirical(slices.Clone(a.delays)), a.strays(whole)}
	}
	return a.distribution
}

// strays returns the greatest share of packets that may be copies unlike those that were alone. If the mean is
// another than theirs, by more than chance, that is as many as counts allow. Otherwise it is as many as are
// sure and would not show in the mean if they were slower or faster by a deviation.
func (a *Accumulator) strays(whole *transit) float64 {
	r, err := a.Estimate()
	error := surely * math.Hypot(r.sampling, r.alone.StdDev/math.Sqrt(float64(max(r.alone.N, 1))))
	switch {
	case err != nil:
		return whole.copied()
	case math.Abs(r.Mean+r.owed-r.alone.Mean) > error:
		return min(1, max(r.copied, whole.copied()+a.pairs.atMost()))
	case r.behind.value > 0 || r.copied*r.alone.StdDev <= error:
		return r.copied
	}
	return max(whole.copied(), error/r.alone.StdDev)
}

// A reservoir keeps a sample of weighted delays, in which none stands for less than the bar: lighter ones are
// kept with a probability in proportion to their weight. Its random numbers are the same in every run.
type reservoir struct {
	samples []weighted
	packets float64 // that they represent
	bar     float64
	random  rand.PCG
}

type weighted struct{ delay, weight float64 }

// reservoirSize is the greatest size of a sample.
const reservoirSize = 5120

func (r *reservoir) reset() { r.samples, r.packets, r.bar = r.samples[:0], 0, 0 }

// chosen is 1 if a weight is as much as the bar or makes up for it by chance, and otherwise 0: no branch tells.
func chosen(random *rand.PCG, weight, bar float64) int {
	if weight >= bar {
		return 1
	}
	return int(weight/bar + float64(^random.Uint64()>>11)*0x1p-53)
}

// add adds delays, which together represent packets, all alike. If there are too many, the bar is raised.
func (r *reservoir) add(all []areas.Alone, packets float64) {
	weight := 0.0
	for i := range all {
		weight += all[i].Weight
	}
	each := packets / weight
	if r.packets += packets; len(r.samples)+len(all) > reservoirSize {
		r.bar = max(r.bar, r.packets/(reservoirSize*5/6)) // chance makes them more, and hardly a fifth more
		old := r.samples
		r.samples = r.samples[:0]
		for i := range old {
			r.keep(old[i])
		}
	}
	for i := range all {
		r.keep(weighted{float64(all[i].Delay), all[i].Weight * each})
	}
}

// keep keeps a sample if it is no lighter than the bar, or by chance.
func (r *reservoir) keep(s weighted) {
	n := len(r.samples)
	r.samples = append(r.samples, weighted{s.delay, max(s.weight, r.bar)})[:n+chosen(&r.random, s.weight, r.bar)]
}

// appendDelays appends a sample in which every packet is represented alike: of
// those that stand for less than others a part is left out.
func (r *reservoir) appendDelays(delays []float64) []float64 {
	most, random := 0.0, r.random
	for i := range r.samples {
		if w := r.samples[i].weight; w > most { // max is slow
			most = w
		}
	}
	for _, s := range r.samples {
		if chosen(&random, s.weight, most) > 0 {
			delays = append(delays, s.delay)
		}
	}
	return delays
}

// withoutFarthest returns delays but for the one farthest from their mean, in any order.
func withoutFarthest(delays []float64, mean float64) []float64 {
	farthest := 0
	for i, x := range delays {
		if math.Abs(x-mean) > math.Abs(delays[farthest]-mean) {
			farthest = i
		}
	}
	last := len(delays) - 1
	delays[farthest], delays[last] = delays[last], delays[farthest]
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
