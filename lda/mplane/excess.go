package mplane

import (
	"cmp"
	"math"
	"slices"

	"github.com/hoplag/hoplag/estimate"
)

// How fast an excess over all past values gets less likely as it grows: with
// the square of the distance from the usual if bursts on all time scales make
// the value vary, and with the sixth power for what bursts do not explain.
const (
	bursts = 2
	steady = 6

	heaviest = 1.2 // for bursts, where the past says so
)

// excess compares x with past values. It returns the usual value, their
// median; how far x is above it; and the confidence that none of the given
// number of comparisons shows as much by chance. The confidence comes from
// Student's distribution, because the spread, from the median of absolute
// deviations, is an estimate too, worth some third of the values; and from how
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

// rare returns how likely a value is to exceed x, given past values in order:
// the fraction that did or, if none did, how far the greatest was from x.
func rare(x, usual float64, past []float64, decay float64) float64 {
	exceed := len(past)
	for exceed > 0 && past[exceed-1] >= x {
		exceed--
	}
	if more := len(past) - exceed; more > 0 {
		return float64(more+1) / float64(len(past)+1)
	}
	if decay == bursts {
		decay = min(decay, max(heaviest, heaviness(past, usual)))
	}
	return math.Pow((past[exceed-1]-usual)/(x-usual), decay) / float64(len(past)+1)
}

// heaviness returns the power with which bursts get rarer as they grow, by Hill's
// estimator from the greatest quarter of past values, which are in order, less a
// standard error.
func heaviness(past []float64, usual float64) float64 {
	k := len(past) / 4
	sum, least := 0.0, past[len(past)-k-1]-usual
	for _, x := range past[len(past)-k:] {
		sum += math.Log((x - usual) / least)
	}
	if k < 2 || least <= 0 || sum == 0 {
		return math.Inf(1)
	}
	return (float64(k) - math.Sqrt(float64(k))) / sum
}

// lossy compares the packets that were lost with those of past intervals. If
// these vary little more than chance makes them, packets are lost in small bursts,
// whose number is a Poisson variable.
func lossy(at *value, past []*value, comparisons int) (confident float64) {
	var sent, lost, squares float64
	for _, v := range past {
		sent, lost = sent+float64(v.Sent), lost+float64(v.Lost)
	}
	n := float64(len(past))
	share := (lost + 1) / (sent + 1)
	for _, v := range past {
		expected := share * float64(v.Sent)
		squares += (float64(v.Lost) - expected) * (float64(v.Lost) - expected) / math.Max(expected, 1)
	}
	burst := max(1, squares/(n-1)) * (1 + 2*math.Sqrt(2/n))
	if burst > smallBurst {
		return 0
	}
	usual := float64(at.Sent) * (share + 3*math.Sqrt(share*burst/sent)) / burst
	x := float64(at.Lost) / burst
	if x <= usual {
		return 0
	}
	chernoff := math.Exp(x - usual + x*math.Log(usual/x)) // a bound of the Poisson distribution's tail
	return 1 - min(1, float64(comparisons)*chernoff)
}

// smallBurst is the number of packets that are lost together in a small burst.
const smallBurst = 4

// tail returns the probability that Student's distribution exceeds t.
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

// beyondBursts returns, for a mean delay and for past ones, the part that the
// deviation beside it does not explain, in units of that deviation. When a
// queue is busier its delays are longer and vary more, in a nearly constant
// proportion. So the rest varies far less than the means do, and in proportion
// less the busier the queue is. A router that became slower delays all packets
// alike. The line is the one with the least absolute residuals through the
// medians.
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

// middle returns the median of at least one number, and their spread about it:
// what the median of absolute deviations implies for the standard deviation of
// normal values. It sorts the numbers.
func middle(xs []float64) (centre, spread float64) {
	centre = median(xs)
	deviations := make([]float64, len(xs))
	for i, x := range xs {
		deviations[i] = math.Abs(x - centre)
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
