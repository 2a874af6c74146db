package rli

import "github.com/hoplag/hoplag/hashing"

// A lesson is a known packet of the current period, any one. It teaches the spread
// something once the end of the period is known.
type lesson struct {
	point
	mix     mix
	rest    float64 // ns that it and the reference behind it took to send
	packets float64 // it stands for: those since the reference before
	of      uint64  // number of known packets that it was chosen from
}

// offer chooses x with the same probability as all before.
func (l *lesson) offer(x lesson, random uint64) {
	x.of = l.of + 1
	if random%x.of == 0 {
		*l = x
	}
	l.of = x.of
}

// end teaches the spread, now that the end of the period is known.
func (l *lesson) end(s *spread, end float64) {
	if l.of > 0 {
		s.learn(l.mix, l.place, end-l.place-l.rest, l.wait, float64(l.of)*l.packets)
	}
	l.of = 0
}

// A sample is a packet between the beginning of the current period and a known
// packet.
type sample struct {
	given       bool
	mix         mix
	cell        int
	place, rest float64
	wait        float64 // by a plain bridge
	packets     float64 // it stands for
}

// end compares the sample with what packets wait at its place in the period.
func (x *sample) end(s *spread, end float64) {
	if x.given {
		rest := max(end-x.place-x.rest, 0)
		s.before.learn(x.cell, x.packets*s.expect(cellOf(x.mix, x.place, rest), x.place, rest), x.packets*x.wait, 1)
	}
	x.given = false
}

// compare draws one packet of a bridge to compare the bridge's estimate with
// what packets wait at that place in the period. It compares at once if the
// end of the period is known, and otherwise later.
func (r *Receiver) compare(course *bridge, packets []held, p *period) {
	if course.mend == nil || !p.whole {
		return
	}
	h := &packets[r.random()%uint64(len(packets))]
	size, own := r.sending(h.bytes), r.sending(int32(r.config.ReferenceBytes))
	place := p.place(h.time, size)
	since, left := place-course.from.place, course.to.place-place
	rest, n := max(left-size, 0), float64(len(packets))
	if since <= 0 || left <= 0 {
		return
	}
	cell := cellOf(h.mix, since, rest)
	_, wait, variance := course.plain(cell, since, left, rest)
	switch {
	case variance == 0:
	case course.to.known: // and as if the reference had not come
		r.sample = sample{true, h.mix, cell, place, size + own, wait, n}
	default:
		// The packets after it have waited for the reference too; the nearer
		// the period's end, the less.
		r.spread.after.learn(cell, n*(r.spread.expect(cellOf(h.mix, place, rest), place, rest)+own*left/(since+left)), n*wait, 1)
	}
}

// A probe is a reference of the current period. It is estimated once the next
// reference or the end of the period is known, as if it had not come.
type probe struct {
	given   bool
	from    end
	at      point
	mix     mix
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
	b.wait, b.expected = course.at(b.mix, b.at.place, b.size)
	since, left := b.at.place-b.from.place, to.place-b.at.place
	if since <= 0 || left <= 0 {
		return
	}
	rest, weight := max(left-b.size, 0), float64(b.packets)
	cell, off := cellOf(b.mix, since, rest), b.wait-b.at.wait
	told := b.expected / course.miss.at(cell)
	course.miss.learn(cell, weight*off*off, weight*told*told, 1)
	line, wait, variance := course.plain(cell, since, left, rest)
	switch {
	case variance <= 0:
	case course.mend != nil:
		course.mend.learn(cell, weight*b.at.wait, weight*wait, 1)
	case wait > line: // the slope of a regression through the origin
		rise := (wait - line) / variance
		s.between.learn(rise*(b.at.wait-line), rise*(wait-line), rise*(wait-line))
	}
}

// random returns a number that nothing in the traffic keeps step with.
func (r *Receiver) random() uint64 {
	return uint64(hashing.Word(r.config.Identity, uint64(r.gap)))
}
