package rli

import "github.com/hoplag/hoplag/hashing"

// A witness is a packet of the current busy period that teaches the spread something later.
type witness struct {
	given bool
	point
	mix     mix
	packets float64 // it stands for
}

// alone returns what a packet of its size waits if none is known beside it, and the scale of its cell's height.
func (w *witness) alone(s *spread, place float64) (cell int, scaled, wait float64) {
	b := s.bridge(end{}, end{point: point{place: place}})
	cell, left, _, typical, variance := b.typical(w.mix, w.place, w.lean)
	if scaled = scale(w.place, left); typical > 0 {
		wait = max(typical+b.shift(left, w.lean, typical, variance), 0)
		scaled *= wait / typical
	}
	return cell, scaled, wait
}

type class struct { // what is to be learned from the current busy period
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
		cell, scaled, _ := x.alone(s, place)
		packets := float64(c.offers) * x.packets
		s.height.learn(cell, packets*x.wait, packets*scaled, 1)
	}
	if x := &c.sample; x.given {
		_, _, wait := x.alone(s, place)
		s.before.learn(c.cell, x.packets*wait, x.packets*x.wait, 1)
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
	place, lean := p.place(h.time, r.sending(h.bytes)), r.lean(r.sending(h.bytes))
	if min(place, place-course.from.place, course.to.place-place) <= 0 { // coarse stamps may be before the period
		return
	}
	n := float64(len(packets))
	cell, left, _, wait, variance := course.typical(h.mix, place, lean)
	switch {
	case variance == 0:
	case course.to.known: // and as if the reference had not come
		r.class.sample, r.class.cell = witness{true, point{place, wait, lean - own}, h.mix, n}, cell
	default: // the packets after it have waited for the reference, or for part of it: for half
		place = max(place-own, 1)
		r.spread.after.learn(cell, n*(r.spread.height.at(cellOf(h.mix, place, left))*scale(place, left)+own/2), n*wait, 1)
	}
}

// A probe is the latest reference of the period, to be estimated once the next or the end is known.
type probe struct {
	witness
	from                end
	told                bool // what it was estimated as, once it was
	estimated, expected float64
}

// end estimates the probe, and tells the spread how far it is off.
func (b *probe) end(s *spread, to end) {
	if !b.given {
		return
	}
	b.given, b.told = false, true
	course, miss := s.bridge(b.from, to), 0
	b.estimated, b.expected, miss = course.at(b.mix, b.place, b.lean)
	if min(b.place-b.from.place, to.place-b.place) <= 0 {
		return
	}
	off, told := b.estimated-b.wait, b.expected/course.miss.at(miss)
	course.miss.learn(miss, b.packets*off*off, b.packets*told*told, 1)
	cell, _, line, wait, variance := course.typical(b.mix, b.place, b.lean)
	switch {
	case variance <= 0:
	case course.mend != nil:
		course.mend.learn(cell, b.packets*b.wait, b.packets*wait, 1)
	case course.from.known && wait > line:
		rise := wait - line
		s.between.learn(b.packets*(b.wait-line), b.packets*rise, rise*rise/variance)
	}
}

// random returns a number that nothing in the traffic keeps step with.
func (r *Receiver) random() uint64 { return uint64(hashing.Word(r.config.Identity, uint64(r.gap))) }
