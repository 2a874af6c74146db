package lda

import (
	"math"
	"math/rand/v2"

	"github.com/hoplag/hoplag/estimate"
)

// A reservoir keeps a sample of weighted delays, in which none stands for less than the bar: of those with less
// weight as many are kept as their weights are of it. Its random numbers are the same in every run.
type reservoir struct {
	samples []weighted
	bar     float64
	random  rand.PCG
}

type weighted struct{ delay, weight float64 }

// reservoirSize is the greatest size of a sample.
const reservoirSize = 5120

func (r *reservoir) reset() { r.samples, r.bar = r.samples[:0], 0 }

// copy makes r a copy of another one.
func (r *reservoir) copy(from *reservoir) {
	r.samples, r.bar, r.random = append(r.samples[:0], from.samples...), from.bar, from.random
}

// chosen reports, by chance, whether a weight is as much as the bar or makes up for it.
func chosen(random *rand.PCG, weight, bar float64) bool {
	return weight >= bar || float64(random.Uint64()>>11+1)*0x1p-53*bar <= weight
}

// makeRoom raises the bar for so many more samples, if they have to be chosen from, that stand for so many packets.
func (r *reservoir) makeRoom(more int, packets float64) {
	if len(r.samples)+more <= reservoirSize {
		return
	}
	for _, s := range r.samples {
		packets += s.weight
	}
	r.bar = max(r.bar, packets/(reservoirSize*5/6)) // chance makes them more, and hardly a fifth more
	all := r.samples
	r.samples = all[:0]
	for _, s := range all {
		r.add(s.delay, s.weight)
	}
}

// add adds a sample, if there is room or by chance.
func (r *reservoir) add(delay, weight float64) {
	if chosen(&r.random, weight, r.bar) {
		r.samples = append(r.samples, weighted{delay, max(weight, r.bar)})
	}
}

// appendDelays appends a sample in which every packet is represented alike: of
// those that stand for less than others a part is left out.
func (r *reservoir) appendDelays(delays []float64) []float64 {
	most, random := 0.0, r.random
	for _, s := range r.samples {
		most = max(most, s.weight)
	}
	for _, s := range r.samples {
		if chosen(&random, s.weight, most) {
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
