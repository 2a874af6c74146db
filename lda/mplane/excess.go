package mplane

import (
	"cmp"
	"math"
	"slices"

	"github.com/hoplag/hoplag/estimate"
)

// How fast it gets less likely that a value exceeds all past ones by more and
// more: with the square of the distance from what is usual where bursts on all
// scales of time make it vary, and with its sixth power in what bursts do not
// explain.
const (
	bursts = 2
	steady = 6
)

// excess tells by how much x is above the usual of past values, their median,
// and how sure it is that any of so many comparisons would not be so by chance:
// by Student's distribution, since the spread, from the median of absolute
// deviations, is an estimate too, worth some third of the values; and by how
// far above the usual past values got.
func excess(x float64, past []float64, floor, decay float64, comparisons int) (usual, above, confident float64) {
	n := float64(len(past))
	past = slices.Clone(past)
	usual, spread := middle(past)
	spread = math.Hypot(spread*math.Sqrt(1+1/n), floor)
	above = x - usual
	if above <= 0 || spread == 0 {
		return usual, max(above, 0), 0
	}
	chance := max(tail(above/spread, max(1, math.Floor(n/3))), rare(x, usual, past, decay))
	return usual, above, 1 - min(1, float64(comparisons)*chance)
}

// rare is how likely it is that a value exceeds x, by past ones in order: the
// share that did and, where none did, by how far the greatest was from that.
func rare(x, usual float64, past []float64, decay float64) float64 {
	exceed := len(past)
	for exceed > 0 && past[exceed-1] >= x {
		exceed--
	}
	if more := len(past) - exceed; more > 0 {
		return float64(more+1) / float64(len(past)+1)
	}
	return math.Pow((past[exceed-1]-usual)/(x-usual), decay) / float64(len(past)+1)
}

// tail is the probability that Student's distribution exceeds t.
func tail(t, degrees float64) float64 {
	low, high := 0.5, 1-1e-12 // its probability not to
	if estimate.StudentQuantile(high, degrees) < t {
		return 1 - high
	}
	for range 60 {
		middle := (low + high) / 2
		if estimate.StudentQuantile(middle, degrees) < t {
			low = middle
		} else {
			high = middle
		}
	}
	return 1 - low
}

// beyondBursts returns of a mean delay, and of past ones, what the deviation
// beside it does not explain, in units of that deviation. When a queue is
// busier its delays are longer and vary more, in a proportion that hardly
// changes, so that the rest varies far less than the means do, and the less in
// proportion the busier it is. A router that became slower delays all packets
// alike. The line is that of least absolute residuals through the medians.
func beyondBursts(mean, deviation float64, means, deviations []float64) (rest float64, past []float64, unit float64) {
	centre, middle := median(slices.Clone(means)), median(slices.Clone(deviations))
	type step struct{ slope, weight float64 }
	var steps []step
	total := 0.0
	for i, d := range deviations {
		if weight := math.Abs(d - middle); weight > 0 {
			steps = append(steps, step{max(0, (means[i]-centre)/(d-middle)), weight})
			total += weight
		}
	}
	slices.SortFunc(steps, func(a, b step) int { return cmp.Compare(a.slope, b.slope) })
	slope, sum := 0.0, 0.0
	for _, step := range steps {
		if slope = step.slope; sum+step.weight >= total/2 {
			break
		}
		sum += step.weight
	}
	of := func(mean, deviation float64) (rest, unit float64) {
		unit = max(deviation, middle/10, 1)
		return (mean - centre - slope*(deviation-middle)) / unit, unit
	}
	for i, d := range deviations {
		r, _ := of(means[i], d)
		past = append(past, r)
	}
	rest, unit = of(mean, deviation)
	return rest, past, unit
}

// middle returns the median of some numbers, of which there is at least one,
// and their spread about it: what the median of absolute deviations makes of
// normal values' standard deviation. It sorts them.
func middle(xs []float64) (centre, spread float64) {
	centre = median(xs)
	deviations := make([]float64, len(xs))
	for i, x := range xs {
		deviations[i] = math.Abs(x - centre)
	}
	const toDeviation = 1.4826
	return centre, toDeviation * median(deviations)
}

// median is the middle of some numbers, of which there is at least one. It
// sorts them.
func median(xs []float64) float64 {
	slices.Sort(xs)
	half := len(xs) / 2
	if len(xs)%2 == 0 {
		return (xs[half-1] + xs[half]) / 2
	}
	return xs[half]
}
