package rli

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
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

// edge returns the smallest delay of a bucket, 0 of the first.
func edge(bucket int, floor int64) float64 {
	if bucket == 0 {
		return 0
	}
	octave, step := (bucket-1)/perOctave, (bucket-1)%perOctave
	return math.Ldexp(float64(floor)/perOctave*float64(perOctave+step), octave)
}

// bump adds one to a bucket. A full bucket stays full.
func bump(n *uint32) { *n += uint32((uint64(*n)+1)>>32 ^ 1) }

// plus adds a bucket of two histograms. A full bucket stays full.
func plus(n, m uint32) uint32 {
	return uint32(min(uint64(n)+uint64(m), math.MaxUint32))
}

// rank returns the bucket with the delay that a fraction p of all delays do not
// exceed.
func rank(histogram []uint32, p float64) int {
	total := uint64(0)
	for _, n := range histogram {
		total += uint64(n)
	}
	// Seven hundredths of a hundred is seven, although float64 makes it
	// slightly more: rounding must not add one.
	left := max(uint64(math.Ceil(p*float64(total)*(1-4e-16))), 1)
	last := len(histogram) - 1
	for i, n := range histogram[:last] {
		if left <= uint64(n) {
			return i
		}
		left -= uint64(n)
	}
	return last
}

// Quantile returns the delay in nanoseconds that a fraction p, 0 to 1, of flow
// f's packets do not exceed, within the width of a histogram bucket: see
// Config.Buckets. The clocks must agree: an offset moves delays to buckets of
// another width.
//
// It also returns an interval, at a confidence above 0 and below 1. Estimates of
// packets are off, so it reaches from the estimate of a lower rank to that of a
// higher one, half as far from p as 0 and 1 are, and beyond those by as much as
// few enough estimates are off by Chebyshev's inequality. It is wide for
// extreme quantiles, and unbounded for 0 and 1.
//
// The error wraps [estimate.ErrNoSamples], if the delay is beyond the last bucket
// too, [ErrUntrusted], or [estimate.ErrConfig] if there are no buckets or p is
// out of range.
func (r *Receiver) Quantile(f hashing.Flow, p, confidence float64) (float64, estimate.Interval, error) {
	none := estimate.Interval{}
	switch {
	case r.config.Buckets == 0:
		return 0, none, fmt.Errorf("rli: %w: quantiles want Buckets", estimate.ErrConfig)
	case !(p >= 0 && p <= 1):
		return 0, none, fmt.Errorf("rli: %w: quantile %v, want 0 to 1", estimate.ErrConfig, p)
	}
	res, err := r.Estimate(f)
	if err != nil {
		return 0, none, err
	}
	histogram, floor := r.flows.histogram(r.flows.find(f)), r.config.Floor
	at, last := rank(histogram, p), len(histogram)-1
	if at == last || slices.Contains(histogram, math.MaxUint32) {
		return 0, none, fmt.Errorf("rli: %w: of flow %#016x: a bucket is full, or the delay beyond the last", estimate.ErrNoSamples, uint64(f))
	}
	aside := min(p, 1-p) / 2
	half := res.bias - estimate.StudentQuantile((1-confidence)/2, fewestDegrees+1)*res.single/(2*math.Sqrt(aside))
	in := estimate.Interval{Low: edge(rank(histogram, p-aside), floor) - half, High: math.Inf(1), Confidence: confidence}
	if above := rank(histogram, p+aside); above < last {
		in.High = edge(above+1, floor) + half
	}
	return (edge(at, floor) + edge(at+1, floor)) / 2, in, nil
}
