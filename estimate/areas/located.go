package areas

import "github.com/hoplag/hoplag/estimate"

// An intervalLosses is what all cells tell of an interval: how long packets took, and, where cells
// were settled when it began and when it ended, what share was lost.
type intervalLosses struct {
	took       float64 // by a packet received, in spans that lost none
	rate       float64 // share of packets lost
	sent, lost float64 // packets
	exact      share   // packets received and areas, where none was lost
}

// locate finds when in a window packets were lost.
func (a *Areas) locate(from, to int) {
	a.located = resize(a.located, len(a.ends))
	clear(a.located)
	var all share
	a.walk(from, func(_ *areaCell, cut int, e *areaEvent, area float64, _ bool) {
		a.located[cut].sent += float64(e.received)
		a.located[cut].exact.add(1, float64(e.received), area)
		all.add(1, float64(e.received), area)
	}, func(x *span) {
		if of := &a.located[x.to]; !x.open && x.to == x.from+1 && x.late == 0 && x.joined == 0 && !x.unknown {
			of.sent += float64(x.sent)
			of.lost += float64(x.lost)
		}
		for k := 0; k < len(x.steps) && x.exact && x.late == 0; k++ {
			a.located[x.from+1+k].exact.add(1, float64(x.steps[k].in), x.steps[k].area)
			all.add(1, float64(x.steps[k].in), x.steps[k].area)
		}
	})
	var lost moment
	for k := 1; k < len(a.located); k++ {
		if n := a.losses.lost[k]; n > 0 {
			lost.add(1, n)
		}
		const few = 10 // packets, which tell little of others
		of, rate := &a.located[k], a.share()
		if a.losses.share > 0 {
			rate = a.losses.rate(k)
		}
		of.took = (of.exact.a + few*all.a/max(all.n, 1)) / (of.exact.n + few)
		of.rate = (of.lost + 1) * rate / (of.sent*rate + 1)
	}
	a.bursts = min(lost.sum, lost.sum*lost.sum/max(lost.squares, 1e-9))
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

// aged tells for how long packets that were lost in a span aged between two cuts, and
// the variance of that. A packet is lost like those sent, as often as all cells lost
// packets in that interval, but as long as nothing is outstanding none was. If the span
// is over, it is known how many were lost. If not, their number is Poisson's, and at most
// what is outstanding. Losses of one interval have in common when in it they happened.
func (a *Areas) aged(x *span, from, to int, s *Span) {
	l, last := &a.losses, max(0, x.lost)
	if x.open {
		last = int(max(0, x.steps[len(x.steps)-1].most))
	}
	longest, common := float64(a.ends[to]-a.ends[from]), 0.0
	var before, within, after float64 // losses, as expected
	var ages moment
	before = a.share() * x.before
	for k := range x.steps {
		p, cut := &x.steps[k], x.from+1+k
		if p.out == 0 || p.most <= 0 {
			continue
		}
		switch number := a.located[cut].rate * float64(p.out); {
		case cut <= from:
			before += number
		case cut > to:
			after += number
		default:
			spread := sq(a.length(cut)) / 12
			within += number
			ages.add(number, float64(a.ends[to]-a.ends[cut])+a.sentAge(cut, p.out, p.sentSum))
			ages.squares += number * spread
			common += sq(number) * spread
		}
	}
	ages.add(before, longest)
	of := before + within + after
	if of == 0 { // nothing tells when
		of, common, ages = 1, sq(longest)/12, moment{1, longest / 2, sq(longest) / 3}
	}
	mean := ages.sum / of
	// Losses of one burst go together, and as few as are known may all be of one.
	number, doubt, together := float64(last), 0.0, 1/(1+a.bursts)
	if x.open {
		number = min(of, number)
		doubt = number + 4*together*sq(number*(1-number/max(1, float64(last))))
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
