package lda

import (
	"math"
	"math/rand/v2"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/areas"
)

// A reservoir keeps a sample of weighted delays, in which none stands for less than the bar: of those with less
// weight as many are kept as their weights are of it. Its random numbers are the same in every run.
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

// add adds delays, which represent so many packets, all alike. If there are too many, the bar is raised.
func (r *reservoir) add(all []areas.Alone, packets float64) {
	weight, n := 0.0, 0
	for i := range all {
		weight += all[i].Weight
	}
	each := packets / weight
	r.packets += packets
	for i := range all {
		r.samples = append(r.samples, weighted{float64(all[i].Delay), all[i].Weight * each})
	}
	if len(r.samples) > reservoirSize {
		r.bar = max(r.bar, r.packets/(reservoirSize*5/6)) // chance makes them more, and hardly a fifth more
	}
	for i := range r.samples {
		s := r.samples[i]
		if r.samples[n] = s; s.weight < r.bar {
			r.samples[n].weight = r.bar
		}
		n += chosen(&r.random, s.weight, r.bar)
	}
	r.samples = r.samples[:n]
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
