package colate

import (
	"math"
	"slices"
)

// squares is S², the sample variance of sums of delays over a flow's counters.
// Packets choose their counters at random, so that in expectation it is the sum of
// the squared delays of all that are in a counter: m·S² is Theorem 4's sum of
// squares for the flow, averaged over all pairings of its counters, plus what
// noise adds.
func squares(sums []float64) float64 {
	if len(sums) < 2 {
		return 0
	}
	center, s := mean(sums), 0.0
	for _, x := range sums {
		s += (x - center) * (x - center)
	}
	return s / float64(len(sums)-1)
}

// countedVariance estimates the variance of the flow's delays from the
// counters that were kept, given how many packets are in each: given that
// number, the sum's variance is that of delays alone, where without it the
// variance of the number, times the squared mean, comes on top.
//
// What the packets of others contribute is taken off, as the counters of
// absent flows show it. Both sides leave out counters that deviate by more
// than three times the typical counter of the flow. ok is false if nothing is
// left after that.
func (e *estimator) countedVariance(own, counts []float64) (variance float64, ok bool) {
	common := e.noise.common
	packets := 0.0
	for _, n := range counts {
		packets += n
	}
	if len(own) < 4 || packets == 0 {
		return 0, false
	}
	// The mean delay in the flow's counters, of its packets and others'.
	shared := mean(own) * float64(len(own)) / packets
	var deviations [MaxPerFlow]float64
	n := 0
	for j := range own {
		if counts[j] > 0 {
			deviations[n] = math.Abs(own[j]-counts[j]*shared) / math.Sqrt(counts[j])
			n++
		}
	}
	slices.Sort(deviations[:n])
	const normalMedian = 0.6745 // of the absolute value of a standard normal
	limit := 3 * deviations[n/2] / normalMedian
	sum, used := 0.0, 0.0
	for _, d := range deviations[:n] {
		if d <= limit {
			sum += d * d
			used++
		}
	}
	if used < 3 {
		return 0, false
	}
	mixed := sum / (used - 1)

	var sums, other [MaxPerFlow]float64
	room := e.countLimit() - e.perCounter
	noise, noisy, others, calm := 0.0, 0.0, 0.0, 0.0
	for i := range Absent {
		for j := range e.delays(1+i, sums[:], other[:]) {
			if other[j] > room {
				continue
			}
			calm++
			if other[j] == 0 {
				continue
			}
			others += other[j]
			// Among the flow's own packets a deviation of the others counts
			// for less.
			d := math.Abs(sums[j]-other[j]*common) / math.Sqrt(other[j])
			if d <= limit*math.Sqrt(e.countLimit()/other[j]) {
				noise += d * d
				noisy++
			}
		}
	}
	part := e.perCounter / (e.perCounter + others/max(calm, 1))
	variance = (mixed - (1-part)*noise/max(noisy, 1)) / part
	return max(variance, 0), variance > 0
}
