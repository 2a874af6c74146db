package areas

import (
	"cmp"
	"math"
	"slices"

	"github.com/hoplag/hoplag/estimate"
)

// A Span is the part within a window of the time between two cuts at which a cell was settled, or since the last such cut.
type Span struct {
	Cell           int
	Sent, Received uint32
	Area           float64    // time that packets sent and not known to be lost before spent outstanding
	Usual          float64    // time that packets received as these were took elsewhere, in spans that lost none
	Aged           float64    // part of Area, for which packets aged that were lost, as expected
	Variance       float64    // of Aged: 0 where nothing was lost, infinite where nothing is known
	Unsure         float64    // part of Variance: by how many were lost, which is the same in all windows
	Gone           [2]float64 // packets lost up to the window's beginning, and up to its end, as expected

	// Lost is how many packets the whole span lost, told where it ends; fewer than none came after they had
	// been told. While the span is open, as many are outstanding, lost or on their way.
	Lost int
	Open bool // the cell had not settled by the window's end
	Late bool // began before the window

	// Joined packets came without being sent, or had been taken for lost.
	Joined int

	// Ends tell of the packets outstanding when the window began and ended: how many, how many of these may have been on their way,
	// and the ages of those added up, at least and at most.
	Ends [2]ageBounds
}

// ageBounds is the least and the most that the ages of packets on their way add up to, and how many these are at most.
type ageBounds = struct{ Packets, OnWay, Least, Most float64 }

// Spans calls visit for the spans of all cells after cut number from and up to cut number to: those of each in order of
// time, except for intervals at whose ends it was empty. Call [Areas.Transit] first. Unlike that, Spans does not assume
// that the cells of a group are alike, so it serves cells of flows.
func (a *Areas) Spans(from, to int, visit func(Span)) {
	from, to = from-a.before, to-a.before
	l := &a.losses
	a.calmly(from, to, func(_, cut int, all []calmEvent) {
		for _, e := range all {
			as := l.usually(cut) * float64(e.packets)
			visit(Span{Cell: int(e.cell), Sent: e.packets, Received: e.packets, Area: e.area, Usual: as})
		}
	})
	a.walk(from, to, func(x *span) {
		begin, end := max(x.from, from), min(x.to, to)
		s := Span{Cell: x.cell, Open: x.open || x.to > to && !x.exact, Late: x.from < from || x.before > 0, Joined: x.joined}
		for k := begin - x.from; k < end-x.from; k++ {
			s.Area += x.area[k]
			s.Sent += x.out[k]
			s.Received += x.in[k]
			s.Usual += l.usually(x.from+1+k) * float64(x.in[k])
		}
		if s.Open {
			s.Lost = int(x.on[end-1-x.from])
		} else if x.to <= to {
			s.Lost = x.lost
		}
		s.Ends = [2]ageBounds{a.ages(x, from, max(a.greatest, a.longest)), a.ages(x, to, max(a.greatest, a.longest))}
		switch {
		case x.unknown:
			s.Variance = math.Inf(1)
		case x.late > 0 && x.to <= to:
			s.Area += x.owed
		case !x.exact:
			a.aged(x, begin, end, &s)
		}
		visit(s)
	})
}

// oldest returns the greatest age of a span's packets at a cut, whatever levels tell: the greatest delay, or the time
// since the beginning if that is less. In bursts, where many were sent that long ago, one may well be slower, and the
// age is the patience: of those seen and those sent so long ago, each is as likely to be the slowest. Otherwise it is sure.
func (a *Areas) oldest(x *span, cut int, greatest float64) (oldest float64, sure bool) {
	const likely = 1.0 / 20
	sent, age := 0.0, 0.0
	for k := cut; k > x.from && age < a.patience; k-- {
		if age += a.length(k); age > a.greatest {
			sent += float64(x.out[k-x.from-1])
		}
	}
	if age < a.patience {
		sent += x.before
	}
	oldest, sure = max(greatest, longTail*max(0, -a.center)), a.greatest == 0 || !a.bursts || sent <= likely*(a.now.alone+a.past.alone)
	if !sure {
		oldest = max(oldest, a.patience)
	}
	if since := float64(a.ends[cut] - a.begun); oldest == 0 || !a.underWay {
		oldest = min(cmp.Or(oldest, since), since)
	}
	return oldest, sure
}

// onWayAt returns how many packets of a span are on their way at a cut at most, if none takes longer than an age: as many as were
// sent in that time, and as many more as are outstanding beyond those that were lost as often as in other cells.
func (a *Areas) onWayAt(x *span, cut int, age float64) float64 {
	sent, beyond := x.before, x.outstanding(cut)-x.gone
	for k := x.from + 1; k <= cut; k++ {
		out := float64(x.out[k-x.from-1])
		if sent, beyond = sent+out, beyond-a.rate(k)*out; a.between(k, cut) >= age {
			sent = 0
		}
	}
	return sent + max(0, beyond)
}

// lostOf returns how many packets of a span that are outstanding at a cut are lost at most.
func (a *Areas) lostOf(x *span, cut int) float64 {
	lost := max(0, float64(x.most[max(cut-x.from-1, 0)]))
	if !x.open {
		return min(lost, max(0, float64(x.lost)))
	} else if a.losses.share == 0 && a.losses.of >= enough && !a.losses.crowded {
		return 0
	}
	return lost
}

// digestsShow reports whether digests are so wide that the same packets are outstanding at two cuts of one level.
func (a *Areas) digestsShow() bool { return a.mask>>(32+16-1) != 0 }

// ages bounds the ages of the packets of a span that are on their way at a cut, interval by interval back from
// there, as METHODS.md says: by the fewest outstanding at any cut since, and fewer where levels differ, by those
// that were sent since, by levels that come again, and by areas.
func (a *Areas) ages(x *span, cut int, greatest float64) (ages ageBounds) {
	if cut < x.from || cut >= x.to && !x.open {
		return ages
	}
	oldest, sure := a.oldest(x, cut, greatest)
	lately := a.onWayAt(x, cut, oldest)
	if ages.Packets, ages.OnWay = x.outstanding(cut), min(x.outstanding(cut), lately); ages.Packets < 0 { // they come before they are sent
		for k, fewest := cut, ages.Packets; fewest < 0 && oldest > 0; k-- {
			length := oldest
			if k > x.from {
				length = min(a.length(k), oldest)
			}
			ages.Least += fewest * length
			oldest -= length
			fewest = max(fewest, x.outstanding(max(k-1, x.from)))
		}
		return ages
	}
	// Packets that are on their way at the cut were so at cut k, too: at most, and at least.
	lost := a.lostOf(x, cut)
	fewest, known, sent, seen := ages.Packets, max(0, ages.Packets-lost), 0.0, a.again(x, cut)
	these, tell := cut-x.from-1, a.digestsShow() && x.twins == 0 && x.joined == 0
	for k := cut; k > x.from && (known > 0 || oldest > 0); k-- {
		at, length := k-x.from-1, a.length(k)
		on := max(known, min(fewest, lately-sent))
		sent += float64(x.out[at])
		for len(seen) > 0 && seen[0].cut >= k {
			seen = seen[1:]
		}
		before := max(0, min(ages.Packets-sent, x.outstanding(k-1))-lost)
		if len(seen) > 0 {
			before = max(before, float64(seen[0].on)-lost)
		}
		if before == 0 && (known == 0 || k == cut && sure) {
			length = min(length, oldest)
		}
		// Those that were sent in the interval did not age before: they were sent as late as all together at most.
		new := max(0, known-before) * length
		least, most := before*length+min(max(0, new-x.after[at]), new), on*length
		switch older := x.outstanding(k - 1); {
		case older < fewest:
			fewest, these = older, at-1
		case older == fewest && tell && at > 0 && x.levels[at-1] != x.levels[these]: // they are not the same
			fewest, tell = fewest-1, false
		}
		if length == a.length(k) && x.joined == 0 {
			most = min(most, max(0, min(fewest, lately-sent))*length+float64(x.out[at])*length-x.after[at])
			others := max(0, x.outstanding(k-1)) + float64(x.out[at]) - known
			least = max(least, x.area[at]-others*length)
			most = min(most, max(x.area[at], least))
		}
		ages.Least += least
		ages.Most += max(least, most)
		oldest -= length
		known = before
	}
	ages.Most += max(0, min(fewest, lately-sent)) * max(0, oldest)
	return ages
}

// outstanding returns how many packets are on their way at a cut of a span, or at that before.
func (x *span) outstanding(cut int) float64 {
	if cut == x.from {
		return float64(x.start)
	}
	return float64(x.on[cut-x.from-1])
}

// A seenAgain says that so many packets were on their way at all cuts from one to that at hand.
type seenAgain struct{ cut, on int }

// again finds packets that were on their way at a cut and at all from an earlier one on: from which, and how
// many, the oldest last. They are so where the level at the earlier cut comes again after the other.
func (a *Areas) again(x *span, cut int) []seenAgain {
	seen, last := a.seenAgain[:0], cut-x.from-1
	if !a.digestsShow() || x.twins > 0 || last < 0 {
		return seen
	}
	for k, fewest := last, x.on[last]; k >= 0 && fewest > 0; k-- {
		if x.on[k] > fewest {
			continue
		}
		fewest = x.on[k]
		for later := last; later < len(x.on) && x.most[later] <= fewest && fewest <= x.on[later] && fewest > 0; later++ {
			if x.levels[later] == x.levels[k] {
				seen = append(seen, seenAgain{k + x.from + 1, int(fewest)})
				break
			}
		}
	}
	a.seenAgain = seen
	return seen
}

const enough = 1e3      // packets that settled tell what share is lost
const mostUnseen = 1e-3 // share of packets that may be lost where none is known to be

// rate returns what share of the packets sent in a cut is lost, or of all packets for cut 0; what may be, if none is known to be.
func (a *Areas) rate(cut int) float64 {
	if l := &a.losses; l.share == 0 {
		return min(0.5/(l.of+1), mostUnseen)
	}
	return a.losses.rate(cut)
}

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
	longest, common := a.between(from, to), 0.0
	var before, within, after float64 // losses, as expected
	var ages moment
	before = x.gone
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
			ages.add(number, a.between(cut, to)+a.sentAge(cut, e.sent, e.sentSum))
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
	if x.open && l.of < enough { // all that is outstanding may be lost
		doubt += sq(float64(last)) / 3
	}
	s.Aged, s.Unsure, s.Gone = number*mean, doubt*mean*mean, [2]float64{number * before / of, number * (before + within) / of}
	s.Variance = number*max(0, ages.squares/of-mean*mean)*(1+max(0, number-1)*together) + s.Unsure + common*sq(number/of)
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
