package areas

import "github.com/hoplag/hoplag/estimate"

// An intervalLosses is what all cells tell of an interval: how long packets took, and, where cells
// were settled when it began and when it ended, what share was lost and how old that was by then.
type intervalLosses struct {
	took     float64 // by a packet received, in spans that lost none
	rate     float64 // share of packets lost
	older    float64 // by how much lost ones are older than all that were sent
	beyond   float64 // by how much they are older than those that came, in spans of this interval
	variance float64 // of older

	sent, lost   float64 // packets
	exact, calm  share   // packets received and areas, where none was lost, and in spans of this interval
	settled, all share   // packets sent and their ages: in cells that it left settled, and lost none, and in all
	off, on      float64 // how much older losses are, times what that is known from
}

// locate finds when in a window packets were lost.
func (a *Areas) locate(from, to int) {
	a.located = resize(a.located, len(a.ends))
	clear(a.located)
	within := func(x *span) bool {
		return !x.open && x.to == x.from+1 && x.from >= from && x.to <= to && x.late == 0 && x.joined == 0 && !x.unknown
	}
	a.walk(from, func(_ *areaCell, cut int, e *areaEvent, area float64, _ bool) {
		of, sent := &a.located[cut], float64(e.sent)
		ages := sent * a.sentAge(cut, e.sent, e.sentSum)
		of.sent += sent
		of.exact.add(float64(e.received), area)
		of.calm.add(float64(e.received), area)
		of.settled.add(sent, ages)
		of.all.add(sent, ages)
	}, func(x *span) {
		if of := &a.located[x.to]; within(x) {
			of.sent += float64(x.sent)
			of.lost += float64(x.lost)
		}
		exact := x.exact && x.late == 0
		a.each(x, func(k, cut int, age float64) {
			of, sent := &a.located[cut], float64(x.out[k])
			if of.all.add(sent, sent*age); exact && cut == x.to {
				of.settled.add(sent, sent*age)
			}
		})
		for k := 0; k < len(x.in) && exact; k++ {
			a.located[x.from+1+k].exact.add(float64(x.in[k]), x.area[k])
		}
	})
	a.walk(from, nil, func(x *span) {
		if within(x) && x.lost > 0 && x.received > 0 {
			a.located[x.to].weigh(a, x)
		}
	})
	var all share
	var lost moment
	for k := range a.located {
		all.n += a.located[k].exact.n
		all.a += a.located[k].exact.a
		if n := a.losses.lost[k]; n > 0 && k > 0 {
			lost.add(1, n)
		}
	}
	a.bursts = min(lost.sum, lost.sum*lost.sum/max(lost.squares, 1e-9))
	for k := 1; k < len(a.located); k++ {
		rate := a.losses.rate(k)
		if a.losses.share == 0 {
			rate = a.share()
		}
		a.located[k].finish(rate, all.a/max(all.n, 1), a.length(k))
	}
}

// each calls visit for the intervals of a span in which something passed, with the mean age of what was sent.
func (a *Areas) each(x *span, visit func(k, cut int, age float64)) {
	for i := range a.passed {
		e := &a.passed[i]
		if cut := int(e.cut) - a.before; cut > x.from && cut <= x.to {
			visit(cut-x.from-1, cut, a.sentAge(cut, e.sent, e.sentSum))
		}
	}
}

// sentAge returns the mean age of so many packets when the interval ends in which they
// were sent.
func (a *Areas) sentAge(cut int, sent uint32, sum uint64) float64 {
	if sent == 0 {
		return a.length(cut) / 2
	}
	age := float64(estimate.SignExtend(uint64(a.ends[cut])*uint64(sent)-sum, a.bits)) / float64(sent)
	return min(max(age, 0), a.length(cut))
}

// weigh takes how much older the packets are that a span of one interval lost than those that came. Its
// area beyond what these took, as elsewhere, is the ages of the lost ones. The ages of all are known; so the
// fewer came, the better they tell those, and the less there is to learn.
func (l *intervalLosses) weigh(a *Areas, x *span) {
	if l.calm.n == 0 {
		return
	}
	lost, received := float64(x.lost), float64(x.received)
	took, part := received*l.calm.a/l.calm.n, received/(received+lost)
	variance := lost*part*sq(a.length(x.to))/12 + received*a.scatter + sq(took)
	l.off += lost * part * (x.area[0] - took - lost*a.sentAge(x.to, x.sent, x.sentSum)) / variance
	l.on += sq(lost*part) / variance
}

// finish weighs what cells tell with what is likely: a share lost and delays as all spans have them, and
// losses as old as all that was sent, but all at once.
func (l *intervalLosses) finish(rate, took, length float64) {
	const few = 10 // packets, which tell little of others
	l.took = (l.exact.a + few*took) / (l.exact.n + few)
	l.rate = (l.lost + 1) * rate / (l.sent*rate + 1)
	if l.variance = sq(length) / 12; l.on > 0 && length > 0 {
		all, settled := l.all.a/l.all.n, l.settled.a/max(l.settled.n, 1)
		if l.settled.n == 0 {
			settled = all
		}
		part := l.variance / (l.variance + 1/l.on)
		l.older = part * (min(max(settled+l.off/l.on, 0), length) - all)
		l.beyond = l.older + all - settled
		l.variance *= 1 - part
	}
}

// aged tells for how long packets that were lost in a span aged between two cuts, and
// the variance of that. A packet is lost like those sent, as often as all cells lost
// packets in that interval, except where the levels show that none was: as long as
// nothing is outstanding that stays so, and between two cuts of one level. If the span
// is over, it is known how many were lost. If not, cells may lose more than others or less, and the number
// outstanding tells how many: it rises as packets are lost, so that they are twice by how much it is above
// its mean when the span ends. They are at most all that are outstanding then, and at least those sent
// longer ago than packets take. Where no cell is known to lose any, they are as few as none.
func (a *Areas) aged(x *span, from, to int, s *Span) {
	l, last := &a.losses, max(0, x.lost)
	if x.open {
		last = int(max(0, x.most[len(x.most)-1]))
	}
	longest, common := float64(a.ends[to]-a.ends[from]), 0.0
	var before, within, after float64 // losses, as expected
	var ages moment
	before = a.share() * x.before
	a.each(x, func(k, cut int, age float64) {
		if x.most[k] <= 0 || x.spans(k) {
			return
		}
		when := &a.located[cut]
		switch number := when.rate * float64(x.out[k]); {
		case cut <= from:
			before += number
		case cut > to:
			after += number
		default:
			older, spread := when.older, sq(a.length(cut))/12
			if !x.open && x.to == x.from+1 { // the ages of all that was sent tell those of the lost ones
				came := 1 - min(1, float64(last)/float64(x.out[k]))
				older, spread = came*when.beyond, came*spread
			}
			within += number
			ages.add(number, float64(a.ends[to]-a.ends[cut])+age+older)
			ages.squares += number * spread
			common += sq(number) * when.variance
		}
	})
	ages.add(before, longest)
	of := before + within + after
	if of == 0 { // nothing tells when
		of, common, ages = 1, sq(longest)/12, moment{1, longest / 2, sq(longest) / 3}
	}
	mean := ages.sum / of
	// Losses of one burst go together, and as few as are known may all be of one.
	number, doubt, together := float64(last), 0.0, 1/(1+a.bursts)
	if x.open {
		if number = min(of, float64(last)); l.share > 0 {
			old := max(0, float64(last)-a.young(x))
			number = min(max(2*(float64(last)-s.Area/longest), old), float64(last))
			doubt = sq(float64(last)-old) / 12
		} else {
			doubt = number + 4*together*sq(number*(1-number/max(1, float64(last))))
		}
	}
	s.Aged, s.Common = number*mean, common*sq(number/of)
	s.Before, s.Within = number*before/of, number*within/of
	s.Variance = number*max(0, ages.squares/of-mean*mean)*(1+max(0, number-1)*together) + doubt*mean*mean + s.Common
	if x.open && l.of < enough { // all that is outstanding may be lost
		s.Variance += sq(float64(last)*mean) / 3
	}
	if x.lost == 0 && !x.open || x.joined > 0 { // one was lost, and another one joined
		s.Variance += (1 + float64(x.joined)) * sq(longest) / 6
	}
}
