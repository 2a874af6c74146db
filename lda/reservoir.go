package lda

import (
	"math"
	"slices"
)

// A reservoir keeps a sample of weighted delays: those whose keys, exponential
// variables divided by the weight, are least.
type reservoir struct {
	samples []keyed // a heap, the greatest key first
	state   uint64
}

type keyed struct{ key, delay, weight float64 }

const reservoirSize = 4096

func newReservoir() reservoir {
	return reservoir{samples: make([]keyed, 0, reservoirSize)}
}

func (r *reservoir) reset() { r.samples = r.samples[:0] }

// uniform is the next random number over 0 and up to 1 (SplitMix64): the same
// ones in every run.
func (r *reservoir) uniform() float64 {
	r.state += 0x9e3779b97f4a7c15
	z := r.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return float64(z>>11+1) * 0x1p-53
}

func (r *reservoir) add(delay, weight float64) {
	u := r.uniform()
	full := len(r.samples) == cap(r.samples)
	if full && 1-u > r.samples[0].key*weight*(1+1e-9) {
		return // without a logarithm: −ln u is more than 1−u
	}
	s := keyed{key: -math.Log(u) / weight, delay: delay, weight: weight}
	if !full {
		r.samples = append(r.samples, s)
		i := len(r.samples) - 1
		for parent := (i - 1) / 2; i > 0 && r.samples[parent].key < s.key; parent = (i - 1) / 2 {
			r.samples[i] = r.samples[parent]
			i = parent
		}
		r.samples[i] = s
		return
	}
	if s.key >= r.samples[0].key {
		return
	}
	i := 0
	for {
		child := 2*i + 1
		if child+1 < len(r.samples) && r.samples[child+1].key > r.samples[child].key {
			child++
		}
		if child >= len(r.samples) || r.samples[child].key <= s.key {
			break
		}
		r.samples[i] = r.samples[child]
		i = child
	}
	r.samples[i] = s
}

// delays are a sample in which every packet is represented alike. Whatever was
// kept stands for its weight by the probability that it was; of those that
// stand for less than others a part is left out. None is taken to stand for more
// than four times what half of them do.
func (r *reservoir) delays() []float64 {
	if len(r.samples) == 0 {
		return nil
	}
	stands := make([]float64, len(r.samples))
	for i, s := range r.samples {
		kept := 1.0
		if len(r.samples) == cap(r.samples) {
			kept = -math.Expm1(-s.weight * r.samples[0].key)
		}
		stands[i] = s.weight / kept
	}
	sorted := slices.Clone(stands)
	slices.Sort(sorted)
	most := min(sorted[len(sorted)-1], 4*sorted[len(sorted)/2])
	random := reservoir{state: r.state}
	var delays []float64
	for i, s := range r.samples {
		if random.uniform()*most <= stands[i] {
			delays = append(delays, s.delay)
		}
	}
	return delays
}
