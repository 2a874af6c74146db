package areas

import (
	"math"

	"github.com/hoplag/hoplag/estimate"
)

// endAges is what spans tell of the packets on their way at an end of the window.
type endAges struct {
	seen  moment // ages of packets that were alone in their cells, which are known
	alone stands // the same, as they stand for others that were not alone

	bounds, others ageBounds // of packets of which levels tell, and the same, each as often as it stands for others
	widths         float64   // squares of the distances between the bounds of cells
	like           stands    // cells whose ages are half way between their bounds, as they stand for others
	came           float64   // packets of spans that have not settled, which came since: of these others tell

	alike ageBounds // of packets of which copies are in the cell: what others tell is not of them
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

// bound adds packets of a span whose ages are bounded, and which stand for weight.
func (e *endAges) bound(ages ageBounds, weight float64) {
	others := weight - 1 + 1e-9 // where nothing is known to be lost, all stand alike for those that have not settled
	e.bounds = plus(e.bounds, ages, 1)
	e.others = plus(e.others, ages, others)
	e.widths += sq(ages.Most - ages.Least)
	e.like.add(others, shareOf(ages.Packets, (ages.Least+ages.Most)/2))
}

// doubt returns the variance of the ages of n others: as these vary, of which slow ones stand for more, but with that
// of all packets at least, because few may be here.
func (s *stands) doubt(n, spread float64) float64 {
	by := n / s.all.n
	return max(s.about(by, s.all.a/s.all.n), n*spread*(1+by*s.squares.nn/s.all.n))
}

// most returns how many packets others are at most, as far as chance tells.
func (s *stands) most() float64 { return s.all.n + 2*math.Sqrt(s.all.nn+s.squares.nn) }

// plus adds others, each a number of times.
func plus(b, o ageBounds, times float64) ageBounds {
	return ageBounds{b.Packets + times*o.Packets, b.OnWay + times*o.OnWay, b.Least + times*o.Least, b.Most + times*o.Most}
}

// age estimates the ages of the packets on their way at both ends, by one of three ways that METHODS.md describes, and
// returns the first moment of delays. Where clocks make packets come before they are sent, the time until then takes
// the place of an age, and as many of both as levels hide leave m₂/2 for each packet of a unit of time, with the
// variance m₃/3. But where no delay is negative, the points cut at other times, and only levels tell.
func (a *Areas) age(t *Transit) (first float64) {
	mean := math.Abs(t.Mean)
	first, second, third := a.moments(t)
	if first == 0 {
		return 0 // no packet took any time
	}
	// As far as areas say that packets take longer than those that were alone, slow ones were not, perhaps by chance.
	chance := math.Sqrt(max(0, second-first*first) / max(1, float64(len(a.alone))))
	missing := positive(mean-first, math.Hypot(t.Error, chance)) / first * sq(a.greatest) / 3
	unlike := a.cutApart(t)
	skewed := a.skewed || t.early > hardly && !unlike
	a.skewed = skewed && (a.skewed || t.crossed >= manyCells) // few may have come to a point that was idle
	var steady, alone, levels [2]OnWay
	var outside [2]bool // the bounds: steady and alone
	for i, end := range [2]*OnWay{&t.First, &t.Last} {
		if unlike { // in one cell a packet may be on its way and another have come too early
			levels[i].Variance = mean * mean
		}
		if skewed {
			rate := t.Received / a.between(a.losses.from, a.losses.to)
			end.Ages, end.Variance = rate*second/2, rate*third/3+sq(rate*second/2)*t.uneven
			chance := (second - t.Mean*t.Mean) * float64(a.latest()) / max(1, a.losses.usual[0].packets)
			end.Variance += sq(rate*second/first) * max(0, a.losses.uneven(0, a.latest())-chance) // m₂ varies twice as m₁ does
			a.refine(end, &a.onWay[i], rate)
			continue
		}
		cut := [2]int{a.losses.from, a.losses.to}[i]
		age, of := second/(2*first), &a.onWay[i]
		n := max(end.Packets-of.alike.Packets, 0)
		spread, s := max(third/(3*first)-age*age, 0), &steady[i]
		s.Ages, s.Variance, s.Shared = n*age, n*(spread+missing)+sq(n*a.greatest)*t.uneven, n*math.Abs(mean-first)/2
		if float64(a.ends[cut]-a.begun) < a.greatest {
			s.Variance += sq(n * age)
		}
		if a.bursts { // which left them behind
			s.Variance = max(s.Variance, sq(n*a.greatest)/3)
		}
		alone[i].Ages, alone[i].Variance = of.stand(n, spread, a.greatest)
		alone[i].Variance += max(0, n-of.seen.n) * missing
		least, most := of.levels(&levels[i], n, spread, a.greatest, t)
		for j, way := range [2]*OnWay{s, &alone[i]} {
			outside[j] = outside[j] || way.Ages < least || way.Ages > most
		}
		for _, way := range [3]*OnWay{s, &alone[i], &levels[i]} {
			way.Variance += t.change / 2 * sq(way.Ages/max(n, 1))
		}
	}
	if !skewed {
		a.choose(t, &steady, &alone, &levels, outside, unlike)
	}
	return first
}

// refine takes the ages of packets that were alone, each as often as it stands for others, for those of steady traffic, as
// far as they are surer. Packets slower than all that were seen lately may add to both variances.
func (a *Areas) refine(o *OnWay, of *endAges, rate float64) {
	if len(a.alone) < fewAlone {
		return
	}
	rare, each := a.losses.rare(a.weight)
	slow := rare * a.greatest / a.between(a.losses.from, a.losses.to) * sq(a.greatest) / 3
	chance := max(of.alone.all.aa+of.alone.squares.aa, rate*a.taking.apart/a.taking.weights/3) + slow*(each-1)
	chance *= 2 // where one of two packets in a cell was not alone, the other was not either
	o.Variance = max(o.Variance, of.seen.squares+of.alone.all.aa) + slow
	part := o.Variance / max(o.Variance+chance, math.SmallestNonzeroFloat64)
	o.Ages += part * (of.seen.sum + of.alone.all.a - o.Ages)
	o.Variance *= 1 - part
}

// positive returns the mean of the positive part of a normal distribution.
func positive(mean, deviation float64) float64 {
	if deviation == 0 {
		return max(0, mean)
	}
	x := mean / deviation
	return mean*math.Erfc(-x/math.Sqrt2)/2 + deviation*math.Exp(-x*x/2)/math.Sqrt(2*math.Pi)
}

// choose takes the ages that one of three ways tells: that of the smallest variance, unless bounds exclude it.
func (a *Areas) choose(t *Transit, steady, alone, levels *[2]OnWay, outside [2]bool, unlike bool) {
	best := steady
	for _, way := range [2]*[2]OnWay{alone, levels} {
		if owedVariance(way) < owedVariance(best) {
			best = way
		}
	}
	if unlike || outside[0] && best == steady || outside[1] && best == alone {
		best = levels
	}
	for i, end := range [2]*OnWay{&t.First, &t.Last} {
		of := &a.onWay[i]
		best[i].Packets, best[i].Pending = end.Packets, end.Pending
		best[i].Variance += t.along * best[i].Ages / max(end.Packets, 1)
		best[i].Ages += (of.alike.Least + of.alike.Most) / 2
		best[i].Variance += sq(of.alike.Most-of.alike.Least) / 12 // they may be alike
		*end = best[i]
	}
}

// uneven reports whether the rate of what was sent differs from cut to cut by more than the rate itself, beyond chance.
func (a *Areas) uneven() bool {
	var rates estimate.Moments
	sent := 0.0
	for k := 1; k < len(a.ends); k++ {
		n := a.losses.all(k)
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
// those that have, each as often as it stands for others. Where ages lie between their bounds differs from cell
// to cell. On average it is the same at both ends, as far as traffic is even.
func (e *endAges) levels(o *OnWay, n, spread, greatest float64, t *Transit) (least, most float64) {
	least, most = e.bounds.Least, e.bounds.Most
	if rest, like := n-e.bounds.Packets, &e.others; rest > 0 && like.Packets > 0 {
		least += rest * like.Least / like.Packets
		most += rest * like.Most / like.Packets
		missing := max(0, n-t.scale*(e.bounds.Packets+e.came+e.like.most())) // have not come yet
		o.Variance += e.like.doubt(rest, spread) + sq(missing*greatest)/3
	} else if rest > 0 {
		most += rest * greatest
	}
	o.Ages = (least + most) / 2
	o.Variance += e.widths/12 + sq(most-least)/12*min(1, t.uneven)
	o.Shared = math.Abs(most-least) / math.Sqrt(12)
	return least, most
}

// moments returns the means of delays, of their squares and of their cubes, by packets that were alone if these tell.
func (a *Areas) moments(t *Transit) (first, second, third float64) {
	m := &a.taking
	if len(a.alone) < fewAlone || m.first == 0 { // few, or none took any time
		first, second = math.Abs(t.Mean), t.Scatter+t.Mean*t.Mean
		if first == 0 { // all came as the window began
			first, second = a.greatest, a.greatest*a.greatest
		}
		return first, second, second * a.greatest
	}
	return m.first / m.weights, m.second / m.weights, m.third / m.weights
}

// stand returns the ages of n packets and their variance, if those that were alone stand for those that have come.
func (e *endAges) stand(n, spread, greatest float64) (ages, variance float64) {
	rest := max(0, n-e.seen.n)
	of := &e.alone
	if of.all.n == 0 || e.seen.n < 2 {
		return e.seen.sum + rest*greatest/2, sq(rest*greatest) / 12
	}
	missing := max(0, rest-e.came-of.most())
	return e.seen.sum + rest*of.all.a/of.all.n, of.doubt(rest, spread) + sq(missing*greatest)/3
}
