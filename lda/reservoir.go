package lda

import (
	"math"

	"github.com/hoplag/hoplag/estimate"
)

// A reservoir keeps a sample of weighted delays, in which none stands for less than
// the bar: of those with less weight as many are kept as their weights are of it.
type reservoir struct {
	samples []weighted
	bar     float64
	state   uint64
}

type weighted struct{ delay, weight float64 }

// reservoirSize is the greatest size of a sample.
const reservoirSize = 5120

func (r *reservoir) reset() { r.samples, r.bar = r.samples[:0], 0 }

// copy makes r a copy of another one.
func (r *reservoir) copy(from *reservoir) {
	r.samples, r.bar, r.state = append(r.samples[:0], from.samples...), from.bar, from.state
}

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
	if weight < r.bar {
		if r.uniform()*r.bar > weight {
			return
		}
		weight = r.bar
	}
	r.samples = append(r.samples, weighted{delay, weight})
	if len(r.samples) == reservoirSize {
		r.thin()
	}
}

// thin raises the bar until about a fifth of the sample is gone.
func (r *reservoir) thin() {
	_, mean := r.weights()
	for r.bar = max(r.bar, mean/2); len(r.samples) > reservoirSize*5/6; {
		r.bar *= 1.2
		all := r.samples
		r.samples = all[:0]
		for _, s := range all {
			r.add(s.delay, s.weight)
		}
	}
}

// weights returns the greatest weight and the harmonic mean of all.
func (r *reservoir) weights() (greatest, mean float64) {
	inverse := 0.0
	for _, s := range r.samples {
		greatest = max(greatest, s.weight)
		inverse += 1 / s.weight
	}
	return greatest, float64(len(r.samples)) / inverse
}

// appendDelays appends a sample in which every packet is represented alike: of
// those that stand for less than others a part is left out. None stands for
// more than eight times the harmonic mean, which a few that stand for many
// hardly change.
func (r *reservoir) appendDelays(delays []float64) []float64 {
	greatest, mean := r.weights()
	most, random := min(greatest, 8*mean), reservoir{state: r.state}
	for _, s := range r.samples {
		if s.weight >= most || random.uniform()*most <= s.weight {
			delays = append(delays, s.delay)
		}
	}
	return delays
}

// deviation returns delays as a result, and the degrees of freedom of their deviation.
func deviation(delays []float64) (d estimate.Delay, degrees uint64) {
	n := float64(len(delays))
	if n < 2 {
		return d, 0
	}
	var second, fourth float64
	for _, x := range delays {
		d.Mean += x / n
	}
	for _, x := range delays {
		x := (x - d.Mean) * (x - d.Mean)
		second += x
		fourth += x * x
	}
	degrees = uint64(n - 1)
	if second > 0 { // the variance of a variance follows from the kurtosis
		degrees = uint64(max(1, 2*n/max(n*fourth/(second*second)-1, 2)))
	}
	d.N, d.StdDev = uint64(n), math.Sqrt(second/(n-1))
	return d, degrees
}
