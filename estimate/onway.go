package estimate

import (
	"math"
	"slices"
)

// endAges is what spans tell of the packets on their way at an end of the window.
type endAges struct {
	seen   moment // ages that are known exactly
	recent moment // of these, those of packets that were sent in the last interval
	all    []groupAges
}

// groupAges is about the packets of a group.
type groupAges struct {
	on     float64 // how many are on their way
	alone  moment  // the ages of those that were alone
	stood  moment  // of those of which the interval is known in which they were sent, up to its end
	fresh  float64 // those that were sent in the last interval
	others moment  // ages, weighed by how many packets they stand for in spans with losses
}

// A moment adds up numbers and their squares.
type moment struct{ n, sum, squares float64 }

func (m *moment) add(n, x float64) {
	m.n += n
	m.sum += n * x
	m.squares += n * x * x
}

// merge adds the numbers of another moment, with a weight.
func (m *moment) merge(weight float64, o *moment) {
	m.n += weight * o.n
	m.sum += weight * o.sum
	m.squares += weight * o.squares
}

// spread returns the variance of the numbers.
func (m *moment) spread() float64 { return max(0, m.squares/m.n-sq(m.sum/m.n)) }

// ages adds the ages of a span's packets that are on their way at a cut. Where the
// level was the same before, they are the same packets. Then the last of them were
// sent in the interval in which the level came up; the others, if nothing was
// received in it, are those of the cut before.
func (a *Areas) ages(x *span, cut int, into *endAges) {
	of, k := &into.all[x.group], cut-x.from-1
	n := float64(x.on[k])
	if !x.exact || x.late > 0 {
		of.on += n - float64(max(0, x.most[k])) // the others may be lost
		return
	}
	of.on += n
	stands := math.Expm1(min(a.losses.share*(float64(x.sent)+x.before), 5)) // for packets in spans that lost others
	if x.alone() {
		age := float64(SignExtend(uint64(a.ends[cut])-x.sentSum, a.bits))
		of.alone.add(1, age)
		into.seen.add(1, age)
		of.others.add(stands, age)
		if k == 0 {
			into.recent.add(1, age)
		}
		return
	}
	fresh, stood, all := 0.0, moment{}, moment{}
	for n > 0 {
		i := slices.Index(x.levels[:k+1], x.levels[k])
		earlier := 0.0 // of these
		if i > 0 && x.on[i-1] > 0 {
			earlier = n - float64(x.out[i])
		}
		if i == 0 && x.before > 0 || i > 0 && x.on[i-1] > 0 && x.in[i] > 0 {
			return
		}
		began := x.from + 1 + i
		age := float64(a.ends[cut] - a.ends[began])
		if all.add(n-earlier, age+a.length(began)/2); began == cut {
			fresh += n - earlier
		} else {
			stood.add(n-earlier, age)
		}
		n, k = earlier, i-1
	}
	of.fresh += fresh
	of.stood.merge(1, &stood)
	of.others.merge(stands, &all)
}

// age estimates the ages of the packets on their way at both ends: from those that
// are known and, of the others, from the delays of all. A packet is seen on its way
// in proportion to its delay, and its age is uniform up to that. So with moments m
// of the delays the mean age is m₂/2m₁, and the mean square m₃/3m₁. The third is
// known from packets that were alone if they vary as all do. Else it is at least
// m₂²/m₁, and at most m₂ times the greatest delay. Where the number of packets on
// their way varies more than by chance, or known ages do, this may be as far off.
func (a *Areas) age(t *Transit) {
	mean := math.Abs(t.Mean)
	if mean == 0 {
		return
	}
	var m struct{ weights, second, third float64 }
	for i := range a.alone {
		w, d := a.alone[i].Weight, math.Abs(float64(a.alone[i].Delay))
		m.weights += w
		m.second += w * d * d
		m.third += w * d * d * d
	}
	second := t.Scatter + mean*mean
	third := second * second / mean
	if len(a.alone) >= 100 && m.second > 0.7*second*m.weights {
		third = max(third, m.third/m.weights)
	} else {
		third = max(third, second*a.greatest)
	}
	for i, end := range []*OnWay{&t.First, &t.Last} {
		cut := [2]int{a.losses.from, a.losses.to}[i]
		global := second / (2 * mean)
		age, spread, doubt := global, max(third/(3*mean)-global*global, 0), 0.0
		oldest := float64(a.ends[cut] - a.begun)
		if oldest > 0 && oldest < 20*global && !a.underWay { // all were sent since the beginning
			age -= oldest / math.Expm1(oldest/global)
		}
		if least := a.youngest(cut, end.Packets); least > age {
			age, doubt = least, least*least
		}
		known := a.onWay[i].settle(t.used, a.length(max(cut, 1)), global)
		typical := math.Abs(known.sum-known.n*age) <= 4*math.Sqrt(known.n*spread+known.variance)
		if !t.steady || oldest < a.greatest || !typical { // such as while a host is stalled
			doubt = age * age
		}
		end.Known, end.Seen = a.onWay[i].seen.sum, a.onWay[i].seen.n
		n := max(end.Packets, 0)
		end.Ages, end.Variance = n*age, n*spread+n*n*doubt
		if d := known.spread()/known.n + known.variance/sq(known.n); known.n >= enoughAges && d < doubt {
			age, spread, doubt = known.sum/known.n, known.spread(), d
		}
		n = max(0, n-known.n)
		// Packets that are not known have longer delays, and their ages vary more.
		if v := known.variance + 2*n*spread + n*n*doubt; v < end.Variance {
			end.Ages, end.Variance = known.sum+n*age, v
		}
	}
}

// youngest returns the mean age at a cut of so many packets if they are those that
// were sent last. Any others are older.
func (a *Areas) youngest(cut int, packets float64) (mean float64) {
	for k, left := cut, packets; k > 0 && left > 0; k-- {
		sent := 0.0
		for g := range a.losses.groups {
			sent += a.losses.groups[g].cuts[k].all
		}
		n := min(left, sent)
		mean += n / packets * (float64(a.ends[cut]-a.ends[k]) + a.length(k)*n/max(sent, 1)/2)
		left -= n
	}
	return mean
}

const enoughAges = 30 // that tell those of others

// knownAges are ages, and the variance of their sum.
type knownAges struct {
	moment
	variance float64
}

// settle adds up the ages of groups, from the given one on, of which most are
// known. Packets that were sent in one interval and are still on their way were
// more likely sent late in it, and those of the last one when those were that
// are known exactly.
func (e *endAges) settle(group int, length, mean float64) (all knownAges) {
	within := mean - length/math.Expm1(length/mean)
	fresh, spread, doubt := within, within*within, within*within/4
	if e.recent.n > 2 {
		fresh, spread = e.recent.sum/e.recent.n, e.recent.spread()
		doubt = spread / e.recent.n
	}
	var news, stood, on float64
	var others moment
	for g := group; g < len(e.all); g++ {
		of := &e.all[g]
		if of.alone.n+of.stood.n+of.fresh < mostKnown*of.on {
			continue
		}
		all.n += of.alone.n + of.stood.n + of.fresh
		all.sum += of.alone.sum + of.stood.sum + of.stood.n*within + of.fresh*fresh
		all.squares += of.alone.squares + of.stood.squares + 2*of.stood.sum*within + of.stood.n*within*within + of.fresh*(fresh*fresh+spread)
		all.variance += of.stood.n*length*length/12 + 3*of.fresh*spread // not alone, because they take longer
		others.merge(1, &of.others)
		news += of.fresh
		stood += of.stood.n
		on += of.on
	}
	all.variance += sq(news)*doubt + sq(stood*(length/2-within)/4)
	if rest := on - all.n; rest > 0 && all.n > 0 {
		age, spread := (others.sum+all.sum/all.n)/(others.n+1), all.spread()
		all.variance += rest*spread + rest*rest*all.squares/all.n/(others.n+1)
		all.n += rest
		all.sum += rest * age
		all.squares += rest * (age*age + spread)
	}
	return all
}

// mostKnown is of which share of the packets on their way in a group the ages are known.
const mostKnown = 0.7
