package perflow

import (
	"cmp"
	"math"
	"slices"
)

// A Sample is a value at a time, such as a delay.
type Sample struct {
	At    int64
	Value float64
}

// Samples are the samples of all flows.
type Samples []Sample

// Between returns a function for the mean of the samples between two times, or
// for the last one before if there are none. It sorts the samples.
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
