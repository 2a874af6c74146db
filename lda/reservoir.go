package lda

import (
	"cmp"
	"math"
	"slices"
)

// A reservoir keeps a sample of weighted delays: those with the smallest keys,
// which are exponential variables divided by the weight.
type reservoir struct {
	samples []keyed // includes the sample
	limit   float64 // keys of at least this are not in the sample
	state   uint64
}

type keyed struct{ key, delay, weight float64 }

// reservoirSize is the size of a sample, and reservoirRoom the number of
// further delays that are stored before those with the greatest keys are
// dropped.
const reservoirSize, reservoirRoom = 4096, 1024

func newReservoir() reservoir {
	return reservoir{limit: math.Inf(1)}
}

func (r *reservoir) reset() { r.samples, r.limit = r.samples[:0], math.Inf(1) }

// uniform returns the next random number above 0 and up to 1 (SplitMix64). The
// numbers are the same in every run.
func (r *reservoir) uniform() float64 {
	r.state += 0x9e3779b97f4a7c15
	z := r.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return float64(z>>11+1) * 0x1p-53
}

func (r *reservoir) add(delay, weight float64) {
	u := r.uniform()
	if 1-u > r.limit*weight*(1+1e-9) {
		return // saves a logarithm: −ln u is more than 1−u
	}
	s := keyed{key: -math.Log(u) / weight, delay: delay, weight: weight}
	if !(s.key < r.limit) {
		return
	}
	if r.samples = append(r.samples, s); len(r.samples) == reservoirSize+reservoirRoom {
		r.shrink()
	}
}

// shrink drops what is not in the sample.
func (r *reservoir) shrink() {
	if len(r.samples) > reservoirSize {
		slices.SortFunc(r.samples, func(x, y keyed) int { return cmp.Compare(x.key, y.key) })
		r.samples = r.samples[:reservoirSize]
		r.limit = r.samples[reservoirSize-1].key
	}
}

// delays returns a sample in which every packet is represented alike. Whatever
// was kept stands for its weight divided by the probability that it was kept;
// of those that stand for less than others a part is left out. None stands for
// more than eight times the harmonic mean, which few that stand for many leave as
// it is.
func (r *reservoir) delays() []float64 {
	r.shrink()
	n, greatest, inverse := float64(len(r.samples)), 0.0, 0.0
	delays := make([]float64, len(r.samples))
	for i, s := range r.samples {
		delays[i] = s.weight
		if len(r.samples) == reservoirSize {
			delays[i] /= -math.Expm1(-s.weight * r.limit)
		}
		greatest = max(greatest, delays[i])
		inverse += 1 / delays[i]
	}
	most := min(greatest, 8*n/inverse)
	random := reservoir{state: r.state}
	stands, delays := delays, delays[:0]
	for i, s := range r.samples {
		if random.uniform()*most <= stands[i] {
			delays = append(delays, s.delay)
		}
	}
	return delays
}

// deviation returns the deviation of the delays in the sample, and its degrees of
// freedom.
func (r *reservoir) deviation() (deviation float64, degrees uint64) {
	delays := r.delays()
	n := float64(len(delays))
	if n < 2 {
		return 0, 0
	}
	var mean, second, fourth float64
	for _, d := range delays {
		mean += d / n
	}
	for _, d := range delays {
		x := (d - mean) * (d - mean)
		second += x
		fourth += x * x
	}
	degrees = uint64(n - 1)
	if second > 0 { // the variance of a variance follows from the kurtosis
		degrees = uint64(max(1, 2*n/max(n*fourth/(second*second)-1, 2)))
	}
	return math.Sqrt(second / (n - 1)), degrees
}
