package rli

import "github.com/hoplag/hoplag/hashing"

// A lesson is a known packet of the current period. It teaches the spread
// something once the end of the period is known.
type lesson struct {
	point
	rest    float64 // ns that it and the reference behind it took to send
	packets float64 // it stands for: those since the reference before
}

// lessons holds those of the current period: a limited number of its
// references, evenly spread.
type lessons struct {
	kept    [16]lesson
	n       int
	offered int
	stride  int // one in this many is kept
}

func (l *lessons) offer(x lesson) {
	l.stride = max(l.stride, 1)
	l.offered++
	if l.n == len(l.kept) && l.offered%l.stride == 0 {
		l.n /= 2
		for i := range l.n {
			l.kept[i] = l.kept[2*i+1]
		}
		l.stride *= 2
	}
	if l.offered%l.stride == 0 {
		l.kept[l.n] = x
		l.n++
	}
}

// end teaches the spread, now that the end of the period is known.
func (l *lessons) end(s *spread, end float64) {
	for i := range l.kept[:l.n] {
		x := &l.kept[i]
		s.learn(x.place, end-x.place-x.rest, x.wait, float64(l.stride)*x.packets)
	}
	l.n, l.offered, l.stride = 0, 0, 1
}

// A sample is a packet between the beginning of the current period and a known
// packet.
type sample struct {
	given       bool
	cell        int
	place, rest float64
	wait        float64 // by a plain bridge
	packets     float64 // it stands for
}

// end compares the sample with what packets wait at its place in the period.
func (x *sample) end(s *spread, end float64) {
	if x.given {
		s.before.learn(x.cell, x.packets*s.expect(x.place, max(end-x.place-x.rest, 0)), x.packets*x.wait, 1)
	}
	x.given = false
}

// compare draws one packet of a bridge to compare the bridge's estimate with
// what packets wait at that place in the period. It compares at once if the
// end of the period is known, and otherwise later.
func (r *Receiver) compare(course *bridge, packets []held, p *period) {
	if course.from.known == course.to.known || !p.whole {
		return
	}
	h := &packets[uint64(hashing.Word(r.config.Identity, uint64(r.gap)))%uint64(len(packets))]
	size, own := r.sending(h.bytes), r.sending(int32(r.config.ReferenceBytes))
	place := p.place(h.time, size)
	since, left := place-course.from.place, course.to.place-place
	rest, n := max(left-size, 0), float64(len(packets))
	if since <= 0 || left <= 0 {
		return
	}
	_, wait, variance := course.plain(since, left, rest)
	switch cell := cellOf(since, rest); {
	case variance == 0:
	case course.to.known: // and as if the reference had not come
		r.sample = sample{true, cell, place, size + own, wait, n}
	default:
		// The packets after it have waited for the reference too; the nearer
		// the period's end, the less.
		r.spread.after.learn(cell, n*(r.spread.expect(place, rest)+own*left/(since+left)), n*wait, 1)
	}
}

// A probe is a reference of the current period. It is estimated once the next
// reference or the end of the period is known, as if it had not come.
type probe struct {
	given   bool
	from    end
	at      point
	size    float64 // ns that its packet takes
	own     float64 // ns that the reference takes
	packets uint32  // it stands for

	told           bool // what it was estimated as, once it was
	wait, expected float64
}

// end estimates the probe, and teaches the spread how far it is off.
func (b *probe) end(s *spread, to end) {
	if !b.given {
		return
	}
	b.given, b.told = false, true
	to.place -= b.own // as if it had not come
	if to.known {
		to.wait = max(to.wait-b.own, 0)
	}
	course := s.bridge(b.from, to)
	course.closer = 1
	b.wait, b.expected = course.at(b.at.place, b.size)
	since, left := b.at.place-b.from.place, to.place-b.at.place
	if since <= 0 || left <= 0 {
		return
	}
	rest, weight, evidence := max(left-b.size, 0), float64(b.packets), 1.0
	cell, off := cellOf(since, rest), b.wait-b.at.wait
	told := b.expected / course.miss.values[cell]
	course.miss.learn(cell, weight*off*off, weight*told*told, 1)
	line, wait, variance := course.plain(since, left, rest)
	if variance <= 0 {
		return
	}
	seen, expected := b.at.wait, wait
	if b.from.known && to.known { // the slope of a regression through the origin
		seen, expected = seen-line, wait-line
		weight = expected / variance
		evidence = weight * expected
	}
	if expected > 0 {
		course.mend.learn(cell, weight*seen, weight*expected, evidence)
	}
}
