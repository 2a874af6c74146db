package areas

import (
	"math"

	"github.com/hoplag/hoplag/estimate"
)

// endAges is what spans tell of the packets on their way at an end of the window.
type endAges struct {
	seen   moment // ages of packets that were alone in their cells, which are known
	stands moment // the same, each as often as it stands for others that were not alone
	spread float64

	bounds, weighted ageBounds // of packets of which levels tell, and the same by weight
	middles          moment    // of bounds of a packet, by weight
	widths           float64   // squares of the distances between the bounds of cells
	weights          float64   // squares of weights, by packets

	alike ageBounds // of packets of which copies are in the cell: what others tell is not of them, but they may be alike
}

// A moment adds up numbers and their squares.
type moment struct{ n, sum, squares float64 }

func (m *moment) add(n, x float64) {
	m.n += n
	m.sum += n * x
	m.squares += n * x * x
}

// spread returns the variance of the numbers.
func (m *moment) spread() float64 { return max(0, m.squares/m.n-sq(m.sum/m.n)) }

// together returns the variance of the numbers of both, or least if that is more: one may lack the few great ones.
func (m *moment) together(o *moment, least float64) float64 {
	both := moment{m.n + o.n, m.sum + o.sum, m.squares + o.squares}
	if both.n == 0 {
		return least
	}
	return max(least, both.spread())
}

// bound adds packets of a span whose ages are bounded, and which stand for weight.
func (e *endAges) bound(ages ageBounds, weight float64) {
	e.bounds = plus(e.bounds, ages, 1)
	e.weighted = plus(e.weighted, ages, weight)
	if n := math.Abs(ages.Packets); n > 0 {
		e.middles.add(weight*n, (ages.Least+ages.Most)/2/n)
	}
	e.widths += sq(ages.Most - ages.Least)
	e.weights += weight * weight * math.Abs(ages.Packets)
}

// plus adds others, each so many times.
func plus(b, o ageBounds, times float64) ageBounds {
	return ageBounds{b.Packets + times*o.Packets, b.Least + times*o.Least, b.Most + times*o.Most}
}

// age estimates the ages of the packets on their way at both ends in one of three ways, the same at both, so
// that what is not known of either end cancels out: by moments m of delays, as if traffic were the same all the
// time, by packets that were alone, which stand for others, or by levels. METHODS.md, section 3, says why, and
// which counts.
//
// Where clocks make packets come before they are sent, the time until then takes the place of an age, and as
// many of both as levels hide leave m₂/2 for each packet of a unit of time, with the variance m₃/3. But where
// no delay is negative, the points cut at other times, and only levels tell.
func (a *Areas) age(t *Transit) {
	mean := math.Abs(t.Mean)
	first, second, third := a.moments(t)
	if first == 0 {
		return // no packet took any time
	}
	unlike := a.cutApart(t)
	skewed := a.skewed || t.early > hardly && !unlike
	a.skewed = skewed && (a.skewed || t.crossed >= manyCells) // few may have come to a point that was idle
	if skewed {
		a.skew(t, second, third)
		return
	}
	uneven, bursts := t.uneven+a.unsteady(second-first*first), a.bursts()
	var steady, alone, levels [2]OnWay
	var outside [2]bool // the bounds: steady and alone
	for i, end := range [2]*OnWay{&t.First, &t.Last} {
		if unlike { // in one cell a packet may be on its way and another have come too early
			levels[i].Variance = mean * mean
		}
		cut := [2]int{a.losses.from, a.losses.to}[i]
		age, of := second/(2*first), &a.onWay[i]
		n := max(end.Packets-of.alike.Packets, 0)
		spread, s := max(third/(3*first)-age*age, 0), &steady[i]
		s.Ages, s.Variance, s.Shared = n*age, n*spread+sq(n*age)*uneven, n*math.Abs(mean-first)/2
		if float64(a.ends[cut]-a.begun) < a.greatest {
			s.Variance += sq(n * age)
		}
		if bursts { // which left them behind
			s.Variance = max(s.Variance, sq(n*a.greatest)/3)
		}
		alone[i].Ages, alone[i].Variance = of.stand(n, of.stands.together(&a.onWay[1-i].stands, spread), a.greatest)
		other := &a.onWay[1-i]
		if float64(a.ends[a.losses.from]-a.begun) < a.greatest { // the slowest were not sent before the first end
			other = new(endAges)
		}
		least, most := of.levels(other, &levels[i], n, of.middles.together(&a.onWay[1-i].middles, spread), a.greatest, t)
		for j, way := range [2]*OnWay{s, &alone[i]} {
			outside[j] = outside[j] || way.Ages < least || way.Ages > most
		}
		for _, way := range [3]*OnWay{s, &alone[i], &levels[i]} {
			way.Variance += t.change / 2 * sq(way.Ages/max(n, 1))
		}
	}
	best, variance := &steady, owedVariance(&steady)
	apart := steady[0].Ages - steady[1].Ages - alone[0].Ages + alone[1].Ages
	if v := owedVariance(&alone); v < variance || sq(apart) > 9*(v+variance) {
		best, variance = &alone, v
	}
	if unlike || owedVariance(&levels) < variance || outside[0] && best == &steady || outside[1] && best == &alone {
		best = &levels
	}
	for i, end := range [2]*OnWay{&t.First, &t.Last} {
		of := &a.onWay[i]
		best[i].Packets = end.Packets
		best[i].Ages += (of.alike.Least + of.alike.Most) / 2
		best[i].Variance += sq(of.alike.Most-of.alike.Least) / 12
		*end = best[i]
	}
}

// skew estimates ages where clocks make packets come before they are sent.
func (a *Areas) skew(t *Transit, second, third float64) {
	rate := t.Received / float64(a.ends[a.losses.to]-a.ends[a.losses.from])
	for _, end := range [2]*OnWay{&t.First, &t.Last} {
		end.Ages, end.Variance = rate*second/2, rate*third/3+sq(rate*second/2)*t.uneven
	}
}

// unsteady returns the relative variance of delays between the ends of the window, as their means differ from cut to cut
// by more than twice as much as by chance. Where they rise or fall, the ends are √3 deviations from the middle.
func (a *Areas) unsteady(spread float64) float64 {
	var means estimate.Moments
	chance := 0.0
	for _, u := range a.losses.usual[a.losses.from+1 : a.losses.to+1] {
		if u.packets > 0 {
			means.Add(u.time / u.packets)
			chance += spread / u.packets
		}
	}
	return 3 * max(0, means.Variance()-2*chance/float64(max(1, means.N()))) / max(1, sq(means.Mean()))
}

// bursts reports whether the rate of what was sent differs from cut to cut by more than itself, beyond chance.
func (a *Areas) bursts() bool {
	var rates estimate.Moments
	sent := 0.0
	for k := 1; k < len(a.ends); k++ {
		n := 0.0
		for g := range a.losses.groups {
			n += a.losses.groups[g].cuts[k].all
		}
		sent += n
		rates.Add(n / max(1, a.length(k)))
	}
	return rates.Variance() > sq(rates.Mean())*(1+2*float64(rates.N())/max(1, sent))
}

// cutApart reports whether packets come before they are sent though no delay is negative.
func (a *Areas) cutApart(t *Transit) bool {
	if t.early <= hardly || len(a.alone) == 0 {
		return false
	}
	negative := 0.0
	for i := range a.alone {
		if a.alone[i].Delay < 0 {
			negative++
		}
	}
	return negative < hardly*float64(len(a.alone))
}

// owedVariance returns the variance of what both ends owe each other.
func owedVariance(ends *[2]OnWay) float64 {
	return ends[0].Variance + ends[1].Variance + sq(ends[0].Shared-ends[1].Shared)
}

// levels estimates the ages of n packets by their bounds, and returns these. Packets that have none are like
// those that have, at both ends unless these differ beyond chance. How far between their bounds ages are differs
// from cell to cell. On average it is the same at both ends, but for as much as traffic is uneven.
func (e *endAges) levels(other *endAges, o *OnWay, n, spread, greatest float64, t *Transit) (least, most float64) {
	least, most = e.bounds.Least, e.bounds.Most
	if rest := n - e.bounds.Packets; rest > 0 && e.weighted.Packets > 0 {
		like, share := e.weighted, e.weights/sq(e.weighted.Packets)
		if both := plus(like, other.weighted, 1); other.weighted.Packets > 0 {
			apart, age := e.middles.sum/e.middles.n-other.middles.sum/other.middles.n, (both.Least+both.Most)/2/both.Packets
			chance := spread * (share + other.weights/sq(other.weighted.Packets))
			if sq(apart) <= 9*chance && t.uneven*sq(age) < chance {
				like, share = both, 0
				o.Variance += sq(rest*age) * t.uneven
				o.Shared = sq(rest) * spread * (e.weights + other.weights) / sq(both.Packets)
			}
		}
		least += rest * like.Least / like.Packets
		most += rest * like.Most / like.Packets
		missing := max(0, n-t.scale*(e.weighted.Packets+2*math.Sqrt(max(0, e.weights-e.weighted.Packets)))) // have not come yet
		o.Variance += spread*rest*(1+rest*share) + sq(missing*greatest)/3
	} else if rest > 0 {
		most += rest * greatest
	}
	o.Ages = (least + most) / 2
	o.Variance += e.widths/12 + sq(most-least)/12*min(1, t.uneven)
	o.Shared = math.Sqrt(o.Shared + sq(most-least)/12)
	return least, most
}

// moments returns the means of delays, of their squares and of their cubes, by packets that were alone if these
// tell.
func (a *Areas) moments(t *Transit) (first, second, third float64) {
	weights := 0.0
	for i := range a.alone {
		w, d := a.alone[i].Weight, math.Abs(float64(a.alone[i].Delay))
		weights += w
		first += w * d
		second += w * d * d
		third += w * d * d * d
	}
	if len(a.alone) < fewAlone || first == 0 { // few, or none took any time
		first, second = math.Abs(t.Mean), t.Scatter+t.Mean*t.Mean
		if first == 0 { // all came as the window began
			first, second = a.greatest, a.greatest*a.greatest
		}
		return first, second, second * a.greatest
	}
	return first / weights, second / weights, third / weights
}

// stand returns the ages of n packets and their variance, if those that were alone stand for the others. Of as
// many as they do not stand for, because some have not come yet, nothing is known but the greatest delay.
func (e *endAges) stand(n, spread, greatest float64) (ages, variance float64) {
	rest := max(0, n-e.seen.n)
	if e.stands.n == 0 || e.seen.n < 2 {
		return e.seen.sum + rest*greatest/2, sq(rest*greatest) / 12
	}
	share := e.spread / sq(e.stands.n)
	missing := max(0, rest-e.stands.n-2*math.Sqrt(e.spread))
	return e.seen.sum + rest*e.stands.sum/e.stands.n, spread*rest*(1+rest*share) + sq(missing*greatest)/3
}
