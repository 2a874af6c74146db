package rli

import "github.com/hoplag/hoplag/hashing"

// A witness is a packet of the current busy period that teaches the spread something later.
type witness struct {
	given bool
	point
	mix     mix
	own     float64 // ns that the reference behind it took
	packets float64 // it stands for
}

// left returns how long the period goes on after it, as if no reference had come.
func (w *witness) left(end float64) float64 {
	if rest := end - w.place - w.own; rest > 0 {
		return max(rest+w.lean, 1)
	}
	return 0
}

// A class holds what is to be learned from the current busy period.
type class struct {
	probe  probe
	lesson witness // a known packet, any one
	offers uint64  // number of known packets that it was chosen from
	sample witness // a packet between the beginning and a known packet, its wait by a plain bridge
	cell   int     // of the sample
}

// end teaches the spread, now that the end of the period is known.
func (c *class) end(s *spread, place float64) {
	c.probe.end(s, end{point: point{place: place}})
	if x := &c.lesson; c.offers > 0 && x.place >= 1 {
		left, packets := x.left(place), float64(c.offers)*x.packets
		s.height.learn(cellOf(x.mix, x.place, left), packets*x.wait, packets*scale(x.place, left), 1)
	}
	if x := &c.sample; x.given {
		left := x.left(place)
		s.before.learn(c.cell, x.packets*s.expect(cellOf(x.mix, x.place, left), x.place, left), x.packets*x.wait, 1)
	}
	c.sample.given, c.offers = false, 0
}

// compare compares the estimate of one packet of a bridge with what packets wait at that place in the period:
// at once if its end is known, or else then. A reference takes own ns.
func (r *Receiver) compare(course *bridge, packets []held, p *period, own float64) {
	if len(packets) == 0 || course.mend == nil || !p.whole {
		return
	}
	h := &packets[r.random()%uint64(len(packets))]
	size := r.sending(h.bytes)
	place, lean := p.place(h.time, size), r.lean(size)
	since, left, n := place-course.from.place, course.to.place-place, float64(len(packets))
	if min(place, since, left) <= 0 { // coarse stamps may be before the period
		return
	}
	left, wait := course.typical(place, lean)
	cell := cellOf(h.mix, since, left)
	_, wait, variance := course.plain(cell, since, left, wait)
	switch {
	case variance == 0:
	case course.to.known: // and as if the reference had not come
		r.class.sample, r.class.cell = witness{true, point{place, wait, lean}, h.mix, own, n}, cell
	default: // the packets after it have waited for the reference, too
		r.spread.after.learn(cell, n*(r.spread.expect(cellOf(h.mix, place, left), place, left)+own), n*wait, 1)
	}
}

// A probe is the latest reference of the period, to be estimated once the next or the end is known.
type probe struct {
	witness
	from                end
	told                bool // what it was estimated as, once it was
	estimated, expected float64
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
	course, miss := s.bridge(b.from, to), 0
	b.estimated, b.expected, _, miss = course.at(b.mix, b.place, b.lean)
	since, left := b.place-b.from.place, to.place-b.place
	if since <= 0 || left <= 0 {
		return
	}
	left, far := course.typical(b.place, b.lean)
	off, told := b.estimated-b.wait, b.expected/course.miss.at(miss)
	course.miss.learn(miss, b.packets*off*off, b.packets*told*told, 1)
	cell := cellOf(b.mix, since, left)
	line, wait, variance := course.plain(cell, since, left, far)
	switch {
	case variance <= 0:
	case course.mend != nil:
		course.mend.learn(cell, b.packets*b.wait, b.packets*wait, 1)
	case course.from.known && wait > line: // the slope of a regression through the origin
		rise := (wait - line) / variance
		s.between.learn(rise*(b.wait-line), rise*(wait-line), rise*(wait-line))
	}
}

// random returns a number that nothing in the traffic keeps step with.
func (r *Receiver) random() uint64 { return uint64(hashing.Word(r.config.Identity, uint64(r.gap))) }
