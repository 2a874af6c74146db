package rli

import (
	"math"
	"math/bits"
)

// Delays are counted in buckets whose width is proportional to the delay: with
// scale = 8·delay/floor, all values of one bit length make an octave of 8
// buckets, told apart by the three bits after the first.
const perOctave = 8

// bucketOf returns the bucket of a delay in a histogram of the given length.
func bucketOf(delay, floor int64, buckets int) int {
	if delay < floor {
		return 0
	}
	scaled := uint64(min(delay, math.MaxInt64/perOctave)) * perOctave / uint64(floor)
	octave := bits.Len64(scaled) - 4
	return min(1+perOctave*octave+int(scaled>>octave)-perOctave, buckets-1)
}

// edge returns the smallest delay of a bucket, from the second bucket on.
func edge(bucket int, floor int64) float64 {
	octave, step := (bucket-1)/perOctave, (bucket-1)%perOctave
	return math.Ldexp(float64(floor)/perOctave*float64(perOctave+step), octave)
}

// bump adds one to a bucket. A full bucket stays full.
func bump(n *uint32) { *n += uint32((uint64(*n)+1)>>32 ^ 1) }

// plus adds a bucket of two histograms. A full bucket stays full.
func plus(n, m uint32) uint32 {
	return uint32(min(uint64(n)+uint64(m), math.MaxUint32))
}

// quantile returns the middle of the bucket with the delay that a fraction p
// of all delays do not exceed. It returns 0 without delays.
func quantile[T uint32 | uint64](histogram []T, floor int64, p float64) float64 {
	total := uint64(0)
	for _, n := range histogram {
		total += uint64(n)
	}
	// Seven hundredths of a hundred is seven, although float64 makes it
	// slightly more: rounding must not add a rank.
	rank := max(uint64(math.Ceil(p*float64(total)*(1-4e-16))), 1)
	last := len(histogram) - 1
	for i, n := range histogram[:last] {
		if rank <= uint64(n) {
			if i == 0 {
				return float64(floor) / 2
			}
			return (edge(i, floor) + edge(i+1, floor)) / 2
		}
		rank -= uint64(n)
	}
	return edge(last, floor)
}
