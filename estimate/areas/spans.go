package areas

import (
	"cmp"
	"math"
	"slices"

	"github.com/hoplag/hoplag/estimate"
)

// A Span is the part within a window of the time between two cuts at which a cell
// was settled, or since the last such cut.
type Span struct {
	Cell           int
	Sent, Received uint32
	Area           float64 // time that packets sent and not known to be lost before spent outstanding
	Aged           float64 // part of Area, for which packets aged that were lost, as expected
	Variance       float64 // of Aged: 0 where nothing was lost, infinite where nothing is known
	Common         float64 // part of Variance that the losses of all cells share
	Before, Within float64 // packets lost before the window and in it, as expected

	// Lost is how many packets the whole span lost, told where it ends; fewer than none
	// came after they had been told. While the span is open, as many are outstanding, lost
	// or on their way.
	Lost int
	Open bool // the cell had not settled by the window's end
	Late bool // began before the window

	// Joined packets came without being sent, or had been taken for lost.
	Joined int

	// Began and Ended tell of the packets outstanding when the window began and when it
	// ended: how many, and their ages added up, at least and at most.
	Began, Ended ageBounds
}

// ageBounds is the least and the most that the ages of packets on their way add up to.
type ageBounds = struct{ Packets, Least, Most float64 }

// Spans calls visit for the spans of all cells, one cell after another, after
// cut number from and up to cut number to. Call [Areas.Transit] first. Unlike
// that, Spans does not assume that the cells of a group are alike, so it serves
// cells of flows.
func (a *Areas) Spans(from, to int, visit func(Span)) {
	from, to = from-a.before, to-a.before
	a.locate(from, to)
	calm := func(c *areaCell, cut int, e *areaEvent, area float64, _ bool) {
		if cut <= to {
			visit(Span{Cell: int(c.number), Sent: e.sent, Received: e.received, Area: area})
		}
	}
	a.walk(from, calm, func(x *span) {
		if x.from >= to {
			return
		}
		begin, end := max(x.from, from), min(x.to, to)
		s := Span{Cell: x.cell, Open: x.open || x.to > to && !x.exact, Late: x.from < from || x.before > 0, Joined: x.joined}
		for k := begin - x.from; k < end-x.from; k++ {
			s.Area += x.area[k]
			s.Sent += x.out[k]
			s.Received += x.in[k]
		}
		if s.Open {
			s.Lost = int(x.on[end-1-x.from])
		} else if x.to <= to {
			s.Lost = x.lost
		}
		s.Began, s.Ended = a.ages(x, from, a.greatest), a.ages(x, to, a.greatest)
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

// digestsShow is from how many bits on the same packets are outstanding at two cuts of one level.
const digestsShow = 16

// ages bounds the ages of the packets of a span that are on their way at a cut, interval by
// interval back from there. Those that are on their way at an earlier cut, too, are at most the
// fewest outstanding at any cut since, and at least those that were not sent since; and where
// two cuts around both have one level, the packets of that level are on their way at all cuts in
// between. In an interval they spend at most what all do, and at least that less an interval
// for each of the others. None is older than the greatest delay, nor than the beginning.
func (a *Areas) ages(x *span, cut int, greatest float64) (ages ageBounds) {
	if cut < x.from || cut >= x.to && !x.open {
		return ages
	}
	on := func(k int) float64 {
		if k == x.from {
			return float64(x.start)
		}
		return float64(x.on[k-x.from-1])
	}
	oldest := max(greatest, longTail*max(0, -a.center))
	if since := float64(a.ends[cut] - a.begun); oldest == 0 || !a.underWay {
		oldest = min(cmp.Or(oldest, since), since)
	}
	if ages.Packets = on(cut); ages.Packets < 0 { // they come before they are sent
		for k, fewest := cut, ages.Packets; fewest < 0 && oldest > 0; k-- {
			length := oldest
			if k > x.from {
				length = min(a.length(k), oldest)
			}
			ages.Least += fewest * length
			oldest -= length
			fewest = max(fewest, on(max(k-1, x.from)))
		}
		return ages
	}
	lost := max(0, float64(x.lost))
	if x.open && (a.losses.share > 0 || a.losses.of < enough) {
		lost = max(0, float64(x.most[len(x.most)-1]))
	} else if x.open {
		lost = 0
	}
	// Packets that are on their way at the cut were so at cut k, too: at most, and at least.
	fewest, known, sent, seen := ages.Packets, max(0, ages.Packets-lost), 0.0, a.again(x, cut)
	for k := cut; k > x.from && oldest > 0; k-- {
		at, length := k-x.from-1, min(a.length(k), oldest)
		sent += float64(x.out[at])
		for len(seen) > 0 && seen[0].cut >= k {
			seen = seen[1:]
		}
		before := max(0, min(ages.Packets-sent, on(k-1))-lost)
		if len(seen) > 0 {
			before = max(before, seen[0].on-lost)
		}
		least, most := before*length, max(0, fewest)*length
		if length == a.length(k) && x.joined == 0 {
			others := max(0, on(k-1)) + float64(x.out[at]) - known
			least = max(least, x.area[at]-others*length)
			most = min(most, max(x.area[at], least))
		}
		ages.Least += least
		ages.Most += most
		oldest -= length
		fewest, known = min(fewest, on(k-1)), before
	}
	ages.Most += max(0, fewest) * oldest
	return ages
}

// A seenAgain says that so many packets were on their way at all cuts from one to that at hand.
type seenAgain struct {
	cut int
	on  float64
}

// again finds packets that were on their way at a cut and at all from an earlier one on: from
// which, and how many, the oldest last. They are so where the level at the earlier cut comes
// again after the other.
func (a *Areas) again(x *span, cut int) []seenAgain {
	seen, last := a.seenAgain[:0], cut-x.from-1
	if a.mask>>(32+digestsShow-1) == 0 || last < 0 {
		return seen
	}
	for k, fewest := last, x.on[last]; k >= 0 && fewest > 0; k-- {
		if x.on[k] > fewest {
			continue
		}
		fewest = x.on[k]
		for later := last; later < len(x.on) && x.on[later] >= fewest && fewest > 0; later++ {
			if x.levels[later] == x.levels[k] {
				seen = append(seen, seenAgain{k + x.from + 1, float64(fewest)})
				break
			}
		}
	}
	a.seenAgain = seen
	return seen
}

// An intervalLosses is what cells tell of losses in an interval that were empty when it
// began and when it ended: the share of packets that was lost, how much older the lost ones
// are than all that were sent, on average, and the variance of that.
type intervalLosses struct {
	rate, older, variance float64

	sent, lost            float64 // packets
	exact                 share   // packets received and areas, where none was lost
	ages, weights, weight float64 // of losses, beyond others, and their number, weighted
}

// locate finds when in a window packets were lost. Cells that lost none in an interval
// show how long packets took; what others hold beyond are the ages of the lost ones. They
// count the less, the more packets they have, of which it is not known that they took
// as long.
func (a *Areas) locate(from, to int) {
	a.located = resize(a.located, len(a.ends))
	clear(a.located)
	within := func(x *span) bool {
		return !x.open && x.to == x.from+1 && x.from >= from && x.to <= to && x.late == 0 && x.joined == 0 && !x.unknown
	}
	a.walk(from, func(_ *areaCell, cut int, e *areaEvent, area float64, _ bool) {
		a.located[cut].sent += float64(e.sent)
		a.located[cut].exact.add(float64(e.received), area)
	}, func(x *span) {
		if of := &a.located[x.to]; within(x) {
			of.sent += float64(x.sent)
			of.lost += float64(x.lost)
		}
	})
	a.walk(from, nil, func(x *span) {
		of := &a.located[x.to]
		if !within(x) || x.lost <= 0 || of.exact.n == 0 {
			return
		}
		lost, received, mean := float64(x.lost), float64(x.received), of.exact.a/of.exact.n
		weight := 1 / (lost*sq(a.length(x.to))/12 + received*a.scatter + sq(received*mean))
		of.ages += weight * (x.area[0] - received*mean - lost*a.sentAge(x.to, x.sent, x.sentSum))
		of.weights += weight * lost
		of.weight += weight
	})
	lost, squares := 0.0, 0.0
	for k, n := range a.losses.lost {
		if n > 0 && k > 0 {
			lost += n
			squares += n * n
		}
	}
	if a.bursts = 0; lost > 0 {
		a.bursts = min(lost, lost*lost/squares)
	}
	for k := 1; k < len(a.located); k++ {
		a.located[k].finish(a.losses.rate(k), a.length(k))
		if a.losses.share == 0 {
			a.located[k].rate = a.share()
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

// finish weighs what cells tell with what is likely: a rate as all spans have it, and
// losses as old as others, but all at once.
func (l *intervalLosses) finish(rate, length float64) {
	l.rate = (l.lost + 1) * rate / (l.sent*rate + 1)
	if l.variance = sq(length) / 12; l.weights > 0 && length > 0 {
		chance := l.weight / sq(l.weights)
		part := l.variance / (l.variance + chance)
		l.older = part * min(max(l.ages/l.weights, -length), length)
		l.variance *= 1 - part
	}
}

// aged tells for how long packets that were lost in a span aged between two cuts, and
// the variance of that. A packet is lost like those sent, as often as all cells lost
// packets in that interval, except where the levels show that none was: as long as
// nothing is outstanding that stays so, and between two cuts of one level. If the span
// is over, it is known how many were lost. If not, their number is Poisson's, and at most
// what is outstanding.
func (a *Areas) aged(x *span, from, to int, s *Span) {
	l, n, last := &a.losses, len(x.on), max(0, x.lost)
	if x.open {
		last = int(max(0, x.most[n-1]))
	}
	longest := float64(a.ends[to] - a.ends[from])
	var expected, mean, square, common, before, after float64
	put := func(number, age, spread, doubt float64) {
		expected += number
		mean += number * age
		square += number * (age*age + spread)
		common += sq(number) * doubt
	}
	before = a.share() * x.before
	events := a.passed
	for k := range n {
		cut, age := x.from+1+k, 0.0
		for ; len(events) > 0 && int(events[0].cut)-a.before <= cut; events = events[1:] {
			age = a.sentAge(cut, events[0].sent, events[0].sentSum) // the last one is of this interval
		}
		if x.most[k] <= 0 || x.spans(k) {
			continue
		}
		when, length := &a.located[cut], a.length(cut)
		switch number := when.rate * float64(x.out[k]); {
		case cut <= from:
			before += number
		case cut > to:
			after += number
		default:
			put(number, float64(a.ends[to]-a.ends[cut])+age+when.older, sq(length)/12, when.variance)
		}
	}
	within := expected
	put(before, longest, 0, 0)
	put(after, 0, 0, 0)
	if expected == 0 { // nothing tells when
		put(1, longest/2, sq(longest)/12, sq(longest)/12)
	}
	mean /= expected
	square /= expected
	// Losses of one burst go together, and as few as are known may all be of one.
	number, doubt, together := float64(last), 0.0, 1/(1+a.bursts)
	if x.open {
		number, doubt = truncated(expected, last)
		doubt += 4 * together * sq(number*(1-number/max(1, float64(last))))
	}
	s.Aged, s.Common = number*mean, common*sq(number/expected)
	s.Before, s.Within = number*before/expected, number*within/expected
	s.Variance = number*max(0, square-mean*mean)*(1+max(0, number-1)*together) + doubt*mean*mean + s.Common
	if x.open && l.of < enough { // all that is outstanding may be lost
		s.Variance += sq(float64(last)*mean) / 3
	}
	if x.lost == 0 && !x.open || x.joined > 0 { // one was lost, and another one joined
		s.Variance += (1 + float64(x.joined)) * sq(longest) / 6
	}
}

const (
	enough     = 1e3  // packets that settled tell what share is lost
	mostUnseen = 1e-3 // share of packets that may be lost where none is known to be
)

// share returns which share of packets is lost.
func (a *Areas) share() float64 {
	if l := &a.losses; l.share == 0 {
		return min(0.5/(l.of+1), mostUnseen)
	}
	return a.losses.share
}

// nextAgain is how many intervals apart cuts are compared.
const nextAgain = 8

// spans reports whether two cuts around interval k of a span have one level, so that
// nothing was lost in between.
func (x *span) spans(k int) bool {
	for i := max(0, k-nextAgain); i < k; i++ {
		if slices.Contains(x.levels[k:min(len(x.levels), i+nextAgain)], x.levels[i]) {
			return true
		}
	}
	return false
}

// truncated returns the mean and the variance of a Poisson number that is at most most.
func truncated(mean float64, most int) (number, variance float64) {
	var total, sum, squares float64
	p := 1.0
	for i := int(min(float64(most), mean+40*math.Sqrt(mean)+100)); i >= 0 && p > 1e-12*total; i-- { // more add nothing
		total += p
		sum += p * float64(i)
		squares += p * float64(i) * float64(i)
		if p *= float64(i) / mean; p > 1e100 {
			p, total, sum, squares = p/1e100, total/1e100, sum/1e100, squares/1e100
		}
	}
	number = sum / total
	return number, max(0, squares/total-number*number)
}
