package perflow

import (
	"cmp"
	"math"
	"slices"
)

// A Sample is something that is known of a time, such as a delay.
type Sample struct {
	At    int64
	Value float64
}

// Samples are those of all flows.
type Samples []Sample

// Between returns the mean of the samples from a time to another, and that of
// the nearest before where there are none. It sorts them.
func (s Samples) Between() func(from, to int64) float64 {
	slices.SortStableFunc(s, func(a, b Sample) int { return cmp.Compare(a.At, b.At) })
	sums := make([]float64, len(s)+1)
	for i := range s {
		sums[i+1] = sums[i] + s[i].Value
	}
	before := func(t int64) int {
		n, _ := slices.BinarySearchFunc(s, t, func(x Sample, t int64) int { return cmp.Compare(x.At, t) })
		return n
	}
	return func(from, to int64) float64 {
		low, high := before(from), before(to+1)
		if low == high {
			low = max(low-1, 0)
			high = min(low+1, len(s))
		}
		if low == high {
			return math.NaN()
		}
		return (sums[high] - sums[low]) / float64(high-low)
	}
}
