package estimate

import "math"

// overfullChance is the probability that a group of honest cells has one
// beyond [CountLimit].
const overfullChance = 1e-6

// CountLimit returns the largest count that a cell may have by chance if hashes
// spread packets over n cells and cell i has count(i). Once in a million times
// any of the n cells exceeds it. A fuller cell holds copies: identical packets
// have one hash and fall into one cell, however many they are. At a mean of λ
// packets a cell, √(2λ·ln(10⁶n)) copies of one packet go unnoticed.
//
// The mean is taken over the cells within the limit, so that copies do not
// raise it. A cell's count has a Poisson distribution, whose upper tail at c is
// below exp(c − λ − c·ln(c/λ)).
//
// The caller passes the sum of the counts and the greatest one. If that is
// within the limit, as it usually is, CountLimit does not look at them one by
// one.
func CountLimit(n int, sum, greatest uint64, count func(i int) uint64) uint64 {
	limit := uint64(math.MaxUint64)
	for cells, packets := n, float64(sum); cells > 0; {
		next := poissonLimit(packets/float64(cells), cells, math.Log(float64(n)/overfullChance))
		if next >= limit {
			break
		}
		if limit = next; greatest <= limit {
			break
		}
		cells, packets = 0, 0
		for i := range n {
			if c := count(i); c <= limit {
				cells++
				packets += float64(c)
			}
		}
	}
	return limit
}

// poissonLimit returns the smallest count whose tail is below e^-rarity, for a
// mean that was estimated from the given number of cells.
func poissonLimit(mean float64, cells int, rarity float64) uint64 {
	mean += 3*math.Sqrt(mean/float64(cells)) + 1e-9
	rare := func(c float64) bool { return c*math.Log(c/mean)-c+mean >= rarity }
	low, high := mean, mean+1
	for !rare(high) {
		high += high - mean
	}
	for high-low > 0.5 {
		if middle := (low + high) / 2; rare(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return uint64(math.Ceil(high))
}
