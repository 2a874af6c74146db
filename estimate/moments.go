package estimate

import "math"

// Moments accumulates the count, mean and variance of samples in one pass. Welford's recurrence never subtracts
// two large sums, so a variance far smaller than the square of the mean comes out right. The zero value is
// empty and ready to use. Samples must be finite and below 1e150 in size.
//
// Moments are not safe for concurrent use: give each goroutine its own, and merge them ([Moments.Merge]).
type Moments struct {
	n       uint64
	mean    float64
	squares float64 // sum of (sample − mean)²
}

// Add adds a sample.
func (m *Moments) Add(x float64) {
	m.absorb(x-m.mean, 1)
}

// absorb adds count samples with one value, whose sum exceeds count times the
// current mean by excess (West, 1979, with the count as the weight).
func (m *Moments) absorb(excess float64, count uint64) {
	before := float64(m.n)
	m.n += count
	after := float64(m.n)
	m.mean += excess / after
	m.squares += excess * (excess / float64(count)) * (before / after)
}

// Merge adds all samples of b.
func (m *Moments) Merge(b Moments) {
	if b.n == 0 {
		return
	}
	mine, theirs := float64(m.n), float64(b.n)
	share := theirs / (mine + theirs)
	distance := b.mean - m.mean
	m.n += b.n
	m.mean += distance * share
	m.squares += b.squares + distance*distance*mine*share
}

// N returns the number of samples.
func (m *Moments) N() uint64 { return m.n }

// Mean returns the mean of the samples. Without samples it is 0 and means nothing; check [Moments.N] first.
func (m *Moments) Mean() float64 { return m.mean }

// Variance returns the unbiased estimate of the variance of the distribution that the samples come from
// (divisor N−1). With fewer than two samples it is 0 and means nothing.
func (m *Moments) Variance() float64 {
	if m.n < 2 {
		return 0
	}
	return m.squares / float64(m.n-1)
}

// PopulationVariance returns the variance of the samples themselves (divisor
// N). Without samples it is 0 and means nothing.
func (m *Moments) PopulationVariance() float64 {
	if m.n == 0 {
		return 0
	}
	return m.squares / float64(m.n)
}

// StdDev returns the square root of [Moments.Variance].
func (m *Moments) StdDev() float64 { return math.Sqrt(m.Variance()) }

// Delay returns mean, deviation and count as a result, or ErrNoSamples. Of a single sample the deviation is 0.
func (m *Moments) Delay() (Delay, error) {
	if m.n == 0 {
		return Delay{}, ErrNoSamples
	}
	return Delay{Mean: m.Mean(), StdDev: m.StdDev(), N: m.n}, nil
}

// SignExtend returns the low bits of v as a two's-complement number: the value of a register of that width, or
// of the difference of two, which is exact if it fits that width, however often both have wrapped. The
// arithmetic on v may have used any wider register and may have wrapped. bits is 1 to 64.
func SignExtend(v uint64, bits int) int64 {
	shift := uint(64-bits) & 63
	return int64(v<<shift) >> shift
}
