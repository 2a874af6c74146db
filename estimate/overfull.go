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
// one, and returns math.MaxUint64.
func CountLimit(n int, sum, greatest uint64, count func(i int) uint64) uint64 {
	limit, rarity := uint64(math.MaxUint64), math.Log(float64(n)/overfullChance)
	if n == 0 || !rare(float64(greatest), generous(float64(sum)/float64(n), n), rarity) {
		return limit
	}
	for cells, packets := n, float64(sum); cells > 0; {
		next := poissonLimit(generous(packets/float64(cells), cells), rarity)
		if next >= limit {
			break
		}
		limit = next
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

// generous returns a mean count that was estimated from so many cells, and a bit more.
func generous(mean float64, cells int) float64 { return mean + 3*math.Sqrt(mean/float64(cells)) + 1e-9 }

// rare reports whether the probability of a count of at least c is below e^-rarity.
func rare(c, mean, rarity float64) bool { return c > mean && c*math.Log(c/mean)-c+mean >= rarity }

// poissonLimit returns the smallest count whose tail is below e^-rarity.
func poissonLimit(mean, rarity float64) uint64 {
	low, high := mean, mean+1
	for !rare(high, mean, rarity) {
		high += high - mean
	}
	for high-low > 0.5 {
		if middle := (low + high) / 2; rare(middle, mean, rarity) {
			high = middle
		} else {
			low = middle
		}
	}
	return uint64(math.Ceil(high))
}
