package lda

import "math"

// A reservoir keeps a sample of weighted delays: those whose keys, exponential
// variables divided by the weight, are least.
type reservoir struct {
	samples []keyed // a heap, the greatest key first
	state   uint64
}

type keyed struct{ key, delay float64 }

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
	s := keyed{key: -math.Log(r.uniform()) / weight, delay: delay}
	if len(r.samples) < cap(r.samples) {
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
