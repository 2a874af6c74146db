package trace

import (
	"math"
	"math/rand/v2"
)

// A Size is one packet size of a [Mix].
type Size struct {
	Bytes  int32   // 1 to 65,535
	Weight float64 // relative share of the packets, 0 or more
}

// A Mix is a distribution of packet sizes. Unused places are zero.
type Mix [4]Size

// IMIX is the "simple IMIX" of IP packets: 7 of 40 bytes to 4 of 576 and 1 of 1,500, 340.3 bytes on average.
var IMIX = Mix{{40, 7}, {576, 4}, {1500, 1}}

// Mean returns the average size of a packet, in bytes.
func (m Mix) Mean() float64 {
	sum, total := 0.0, 0.0
	for _, s := range m {
		sum += float64(s.Bytes) * s.Weight
		total += s.Weight
	}
	return sum / total
}

func (m Mix) validate() error {
	total := 0.0
	for _, s := range m {
		if !(s.Weight >= 0 && s.Weight < math.Inf(1)) || s.Weight > 0 && (s.Bytes < 1 || s.Bytes > 65535) {
			return invalid("Sizes", m, "1 to 65535 bytes, and weights of 0 or more")
		}
		total += s.Weight
	}
	if !(total > 0 && total < 1e300) {
		return invalid("Sizes", m, "a total weight over 0 and below 1e300")
	}
	return nil
}

// A sizer draws from a Mix.
type sizer struct {
	upTo   [3]uint64 // the draws that choose each size but the last, cumulated
	bytes  [4]int32
	random *rand.PCG
}

func newSizer(m Mix, seed uint64) sizer {
	s := sizer{random: generator(seed, 's')}
	total := 0.0
	for _, size := range m {
		total += size.Weight
	}
	sum, last := 0.0, int32(0)
	for i, size := range m {
		sum += size.Weight
		if size.Weight > 0 {
			last = size.Bytes
		}
		s.bytes[i] = last
		if i < len(s.upTo) {
			s.upTo[i] = uint64(min(sum/total, 1) * (1 << 53))
		}
	}
	return s
}

func (s *sizer) draw() int32 {
	u := s.random.Uint64() >> 11
	for i, up := range s.upTo {
		if u < up {
			return s.bytes[i]
		}
	}
	return s.bytes[len(s.bytes)-1]
}
