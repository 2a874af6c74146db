package mplane

import (
	"cmp"
	"math"
	"slices"

	"github.com/hoplag/hoplag/estimate"
)

// How fast an excess over all past values gets less likely: with the square of the distance from the usual if
// bursts on all time scales make the value vary, and with the sixth power for what bursts do not explain.
const bursts, steady = 2, 6

// excess compares x with past values. It returns their median, how far x is above it, and the confidence that
// none of the comparisons shows as much by chance: by Student's distribution, because the spread, from the
// median of absolute deviations, is an estimate too, worth some third of the values; and by how far above the
// usual past values got.
func excess(x float64, past []float64, floor, decay float64, comparisons int) (usual, above, confident float64) {
	n := float64(len(past))
	past = slices.Clone(past)
	usual, spread := centred(past)
	spread = math.Hypot(spread*math.Sqrt(1+1/n), floor)
	above = x - usual
	if above <= 0 || spread == 0 {
		return usual, max(above, 0), 0
	}
	at, _ := slices.BinarySearch(past, x)
	rare := float64(len(past)-at+1) / (n + 1)
	if at == len(past) {
		rare *= math.Pow((past[at-1]-usual)/above, decay)
	}
	chance := max(tail(above/spread, max(1, math.Floor(n/3))), rare)
	return usual, above, 1 - min(1, float64(comparisons)*chance)
}

// lasts returns the confidence that in none of the comparisons as many of the latest values, which come first,
// are among the greatest by chance. It assumes only that every order of the values is as likely as any other.
// One alone is never sure: the greatest of n comes last once in n times. So it looks at runs of the latest, from
// the shortest that can be sure to half of all. The i-th length of run may be wrong in 1/i(i+1) of the cases in
// which any is.
func lasts(all []float64, comparisons int) (confident float64) {
	n := len(all)
	sorted := slices.Sorted(slices.Values(all))
	first := 2 * float64(comparisons)
	k := 1
	for k < n/2 && first*together(n, k, k) > 1-sure {
		k++
	}
	for i := 1.0; k <= n/2; i++ {
		great := 0
		for _, x := range all[:k] {
			if x > sorted[n-k-1] {
				great++
			}
		}
		confident = max(confident, 1-i*(i+1)*float64(comparisons)*together(n, k, great))
		k += max(1, k/16)
	}
	return confident
}

// together returns the probability that of the latest k of n values at least great are among the greatest k,
// by the hypergeometric distribution.
func together(n, k, great int) (chance float64) {
	ways := func(n, k int) float64 { // logarithm of how many ways there are to choose k of n
		all, _ := math.Lgamma(float64(n + 1))
		chosen, _ := math.Lgamma(float64(k + 1))
		others, _ := math.Lgamma(float64(n - k + 1))
		return all - chosen - others
	}
	for term := math.Exp(ways(k, great) + ways(n-k, k-great) - ways(n, k)); great <= k; great++ {
		chance += term
		term *= float64((k-great)*(k-great)) / float64((great+1)*(n-2*k+great+1))
	}
	return chance
}

// tail returns the probability that Student's distribution exceeds t.
func tail(t, degrees float64) float64 {
	low, high := 0.5, 1-1e-12 // its probability not to
	if estimate.StudentQuantile(high, degrees) < t {
		return 1 - high
	}
	for range 60 {
		if middle := (low + high) / 2; estimate.StudentQuantile(middle, degrees) < t {
			low = middle
		} else {
			high = middle
		}
	}
	return 1 - low
}

// few is how many intervals are also looked at together: growth shows in several of them.
const few = 4

// beyondBursts returns how surely the first sample is greater than those before, by the part of the mean that
// the deviation beside it does not explain, in units of that deviation. When a queue is busier its delays are
// longer and vary more, in a nearly constant proportion; a router that became slower delays all packets alike.
// Samples from while the trouble has lasted do not define what is usual.
func beyondBursts(all []sample, lasted, comparisons int) (confident float64) {
	centre, middle, slope := burstLine(all[1+lasted:])
	var rest, unit []float64
	for _, p := range all {
		u := max(p.deviation, middle/10, 1)
		rest, unit = append(rest, (p.mean-centre-slope*(p.deviation-middle))/u), append(unit, u)
	}
	lasting := lasts(rest, comparisons)
	_, _, confident = excess(rest[0], rest[1+lasted:], all[0].chance/unit[0], steady, 2*comparisons)
	if len(all)-1-lasted < 2*few {
		return min(confident, lasting)
	}
	var sums []float64 // of a few intervals in a row, each weighed by how well it is known
	for i := range len(all) - few + 1 {
		sum, weight := 0.0, 0.0
		for j := i; j < i+few; j++ {
			sum += rest[j] / unit[j]
			weight += 1 / (unit[j] * unit[j])
		}
		sums = append(sums, sum/math.Sqrt(weight))
	}
	_, spread := centred(rest[1+lasted:])
	_, _, several := excess(sums[0], sums[1+lasted:], spread, steady, 2*comparisons)
	return min(max(confident, several), lasting)
}

// burstLine returns the line that mean delays follow as their deviations vary: through the medians, with the
// least absolute residuals.
func burstLine(past []sample) (centre, middle, slope float64) {
	var means, deviations []float64
	for _, p := range past {
		means, deviations = append(means, p.mean), append(deviations, p.deviation)
	}
	centre, middle = median(means), median(deviations)
	type step struct{ slope, weight float64 }
	var steps []step
	total := 0.0
	for _, p := range past {
		if weight := math.Abs(p.deviation - middle); weight > 0 {
			steps = append(steps, step{max(0, (p.mean-centre)/(p.deviation-middle)), weight})
			total += weight
		}
	}
	slices.SortFunc(steps, func(a, b step) int { return cmp.Compare(a.slope, b.slope) })
	sum := 0.0
	for _, step := range steps {
		if slope = step.slope; sum+step.weight >= total/2 {
			break
		}
		sum += step.weight
	}
	return centre, middle, slope
}

// centred returns the median of at least one number, and their spread about it: what the median of absolute
// deviations implies for the standard deviation of normal values. It sorts the numbers.
func centred(xs []float64) (centre, spread float64) {
	var deviations []float64
	centre = median(xs)
	for _, x := range xs {
		deviations = append(deviations, math.Abs(x-centre))
	}
	const toDeviation = 1.4826
	return centre, toDeviation * median(deviations)
}

// median returns the median of at least one number. It sorts the numbers.
func median(xs []float64) float64 {
	slices.Sort(xs)
	half := len(xs) / 2
	if len(xs)%2 == 0 {
		return (xs[half-1] + xs[half]) / 2
	}
	return xs[half]
}
