package areas

import (
	"slices"

	"github.com/hoplag/hoplag/estimate"
)

// sentAge returns the mean age of a number of packets when the interval ends in which they were sent.
func (a *Areas) sentAge(cut int, sent uint32, sum uint64) float64 {
	if sent == 0 {
		return a.length(cut) / 2
	}
	age := float64(estimate.SignExtend(uint64(a.ends[cut])*uint64(sent)-sum, a.bits)) / float64(sent)
	return min(max(age, 0), a.length(cut))
}

// aged tells for how long packets that were lost in a span aged between two cuts, and the variance of that. A packet
// is lost like those sent, as often as all cells lost packets in that interval, except where the levels show that
// none was. If the span is over, it is known how many were lost. If not, the cell lost as many of its packets as all
// cells did, or any number of those outstanding: both are as likely, for delays that rise look like losses.
func (a *Areas) aged(x *span, from, to int, s *Span) {
	l, last := &a.losses, max(0, x.lost)
	if x.open {
		last = int(max(0, x.most[len(x.most)-1]))
	}
	longest, common := float64(a.ends[to]-a.ends[from]), 0.0
	var before, within, after float64 // losses, as expected
	var ages moment
	before = a.share() * x.before
	for i := range a.passed {
		e := &a.passed[i]
		cut := int(e.cut) - a.before
		k := cut - x.from - 1
		if k < 0 || k >= len(x.most) || x.most[k] <= 0 {
			continue
		}
		switch number := a.rate(cut) * float64(e.sent); {
		case cut <= from:
			before += number
		case cut > to:
			after += number
		default:
			spread := sq(a.length(cut)) / 12
			common += sq(number) * spread    // losses of an interval may be all at once
			if !x.open && x.to == x.from+1 { // the ages of all that was sent tell those of the lost ones
				spread *= 1 - min(1, float64(last)/float64(e.sent))
			}
			within += number
			ages.add(number, float64(a.ends[to]-a.ends[cut])+a.sentAge(cut, e.sent, e.sentSum))
			ages.squares += number * spread
		}
	}
	ages.add(before, longest)
	of := before + within + after
	if of == 0 { // nothing tells when
		of, common, ages = 1, sq(longest)/12, moment{1, longest / 2, sq(longest) / 3}
	}
	mean := ages.sum / of
	// Losses of one burst go together, and as few as are known may all be of one.
	number, doubt, together := float64(last), 0.0, 1/(1+l.bursts)
	if x.open {
		number = min(of, number)
		doubt = number + 4*together*sq(number*(1-number/max(1, float64(last))))
		if l.share > 0 || l.crowded {
			own, off := float64(last)/2, sq(float64(last))/12
			number, doubt = (number+own)/2, (doubt+off)/2+sq(number-own)/4
		}
	}
	s.Aged, s.Gone = number*mean, number*(before+within)/of
	s.Variance = number*max(0, ages.squares/of-mean*mean)*(1+max(0, number-1)*together) + doubt*mean*mean + common*sq(number/of)
	if x.open && l.of < enough { // all that is outstanding may be lost
		s.Variance += sq(float64(last)*mean) / 3
	}
	if x.lost == 0 && !x.open || x.joined > 0 { // one was lost, and another one joined
		s.Variance += (1 + float64(x.joined)) * sq(longest) / 6
	}
	s.Variance += sq(longest) * a.unshown(x, float64(s.Received))
}

// unshown returns the mean square of what those take from the area of an open span, in ages of its length, that
// joined it and do not show, or did once, where fewer than none were outstanding. They count against the others.
func (a *Areas) unshown(x *span, within float64) float64 {
	all := x.before + float64(x.received)
	before, rate := max(0, all-within), max(a.unseen(x), -float64(slices.Min(x.on)))/max(1, all)
	return sq(rate*(before+within/2)) + rate*(before+within/3)
}

// unseen returns how many packets joined an open span and do not show, as always more are on their way.
func (a *Areas) unseen(x *span) float64 {
	all := a.joined[0]
	if all.add(a.joined[1], 1); all.joined == 0 || !x.open {
		return 0
	}
	rate := max(all.joined/all.came, all.over/max(1, all.of))
	return max(0, max(x.shown(), rate*(x.before+float64(x.received)))-float64(x.joined))
}

// shown returns how many packets joined a span, as far as its last two cuts tell.
func (x *span) shown() float64 {
	return float64(x.joined) + max(0, -float64(slices.Max(x.on[max(0, len(x.on)-2):])))
}
