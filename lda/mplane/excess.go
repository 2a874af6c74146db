package mplane

import (
	"cmp"
	"math"
	"slices"

	"github.com/hoplag/hoplag/estimate"
)

// How fast an excess over all past values gets less likely: with the square of
// the distance from the usual if bursts on all time scales make the value vary,
// and with the sixth power for what bursts do not explain.
const (
	bursts = 2
	steady = 6

	heaviest = 1.2 // for bursts, where the past says so
)

// excess compares x with past values. It returns their median, how far x is
// above it, and the confidence that none of so many comparisons shows as much
// by chance: by Student's distribution, because the spread, from the median of
// absolute deviations, is an estimate too, worth some third of the values; and
// by how far above the usual past values got.
func excess(x float64, past []float64, floor, decay float64, comparisons int) (usual, above, confident float64) {
	n := float64(len(past))
	past = slices.Clone(past)
	usual, spread := centred(past)
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
	at, _ := slices.BinarySearch(past, x)
	if more := len(past) - at; more > 0 {
		return float64(more+1) / float64(len(past)+1)
	}
	if decay == bursts {
		decay = min(decay, max(heaviest, heaviness(past, usual)))
	}
	return math.Pow((past[at-1]-usual)/(x-usual), decay) / float64(len(past)+1)
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

// lossy compares the packets that were lost with those of past intervals, if these
// were lost in small bursts: then their number is a Poisson variable.
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
		if middle := (low + high) / 2; estimate.StudentQuantile(middle, degrees) < t {
			low = middle
		} else {
			high = middle
		}
	}
	return 1 - low
}

// few intervals are looked at together, too: what grows shows in some of them.
const few = 4

// beyondBursts returns how surely the first sample is greater than those
// before, by the part of the mean that the deviation beside it does not
// explain, in units of that deviation. When a queue is busier its delays are
// longer and vary more, in a nearly constant proportion; a router that became
// slower delays all packets alike. The samples of the intervals that the
// trouble has lasted do not define what is usual.
func beyondBursts(all []sample, lasted, comparisons int) (confident float64) {
	centre, middle, slope := burstLine(all[1+lasted:])
	var rest, unit []float64
	for _, p := range all {
		u := max(p.deviation, middle/10, 1)
		rest, unit = append(rest, (p.mean-centre-slope*(p.deviation-middle))/u), append(unit, u)
	}
	_, _, confident = excess(rest[0], rest[1+lasted:], all[0].chance/unit[0], steady, 2*comparisons)
	if len(all)-1-lasted < 2*few {
		return confident
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
	_, _, together := excess(sums[0], sums[1+lasted:], spread, steady, 2*comparisons)
	return max(confident, together)
}

// burstLine returns the line that mean delays follow as their deviations vary:
// through the medians, with the least absolute residuals.
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

// centred returns the median of at least one number, and their spread about it:
// what the median of absolute deviations implies for the standard deviation of
// normal values. It sorts the numbers.
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
