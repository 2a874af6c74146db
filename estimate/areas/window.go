package areas

import (
	"math"

	"github.com/hoplag/hoplag/estimate"
)

// A window is what the groups know of the packets between two cuts.
type window struct {
	areas    *Areas
	from, to int
	cell     int // at hand
	groups   []groupWindow
	lossy    bool
	scatter  float64 // variance of the time of one packet
	young    float64 // packets received that may be of before the beginning
}

// pooled adds up the spans of groups.
type pooled struct {
	area, received         float64 // of exact spans, and of all once they are finished
	variance               float64 // of the area
	exact, cells           float64 // exact spans: packets received, and how many
	negative, early, there float64 // those with a negative area, packets that came before they were sent, and all that cross cuts
	first, last            float64 // packets on their way at the first cut and at the last
}

// A groupWindow adds up the spans of a group. Those that lost nothing are exact. They
// stand for the others, each with the inverse of its chance to be known ([losses.weight]).
type groupWindow struct {
	pooled
	sent            float64 // received in all spans
	stands, squares share   // exact spans, each as often as it stands for others, and by the square of that
	by              float64 // how many times that often it does
	n, a            float64 // of the cell at hand
	each            share   // areas of whole cells

	others, other    float64 // spans that may have lost packets, and packets received in them
	fresh, freshArea float64 // received in spans that have not settled yet, and areas if all in them comes
	left, young      float64 // received where nothing is known, and where packets of before the beginning may have come
	joined           joined  // packets that came without being sent
	apart            float64 // left, but their areas are in owed: received in spans of packets that look alike
	owed, unsure     float64 // ages that packets had when they were told to be lost, and squares of unlikely ones
	hidden           float64 // time that packets may have aged that are lost and not known to be

	cuts       []cutSpan
	way, aside []float64 // packets on their way, by cut from the first one on, and as exact spans stand for others
	busy       []float64 // packets on their way, by all cuts
}

// A cutSpan is about the parts of spans in a cut.
type cutSpan struct {
	sent  float64 // packets, in spans that lost nothing before they were sent
	fresh float64 // packets that are outstanding at the end, in spans that have not settled yet
}

// pool adds up the spans of the window by group. It collects the packets that were
// alone in their cell and came in the window, and those that were on their way at
// its ends.
func (a *Areas) pool(from, to int) *window {
	l, w := &a.losses, &a.window
	a.alone, a.onWay = a.alone[:0], [2]endAges{}
	a.crossing[0], a.crossing[1] = a.crossing[0][:0], a.crossing[1][:0]
	w.areas, w.cell, w.young = a, -1, 0
	w.from, w.to, w.lossy, w.groups = from, to, l.total > 0, resize(w.groups, len(a.groups)-1)
	for g := range w.groups {
		r := &w.groups[g]
		*r = groupWindow{cuts: resize(r.cuts, to-from), way: resize(r.way, to-from+1), aside: resize(r.aside, to-from+1), busy: r.busy[:0]}
		clear(r.cuts)
		clear(r.way)
		clear(r.aside)
	}
	a.walk(from, w.calm, w.take)
	for g := range w.groups {
		r := &w.groups[g]
		r.next()
		r.sent = r.received + r.other + r.left + r.young + r.fresh + r.joined.all
		r.finish(l, g)
		r.settle(l, g)
		r.variance += r.joined.doubt(w)
		r.first, r.last = r.way[0], r.way[to-from]
		r.busy = append(resize(r.busy, from), r.way...)
		for k := from; k > 0; k-- {
			r.busy[k-1] = r.busy[k] + l.fewer(g, k)
		}
		if a.early(from) {
			w.young += r.young
		}
	}
	return w
}

// group returns the group of a cell, which is now at hand.
func (w *window) group(group, cell int) *groupWindow {
	r := &w.groups[group]
	if cell != w.cell {
		w.cell = cell
		r.next()
	}
	return r
}

// calm takes an interval at both ends of which a cell was settled at one level.
func (w *window) calm(c *areaCell, cut int, e *areaEvent, area float64, _ bool) {
	if cut > w.to {
		return
	}
	a, group, n := w.areas, int(c.group), float64(e.received)
	r := w.group(group, int(c.number))
	r.add(a.losses.weight(group, a.losses.hazards[cut]*n, n, cut-1, cut), n, area)
	r.whole(n, area)
	r.cuts[cut-1-w.from].sent += n
	if e.received == 1 {
		a.alone = append(a.alone, Alone{group, estimate.SignExtend(e.sentSum, a.bits), int64(area), 0, cut - 1, cut})
	}
}

// next ends a cell.
func (r *groupWindow) next() {
	r.each.add(1, r.n, r.a)
	r.n, r.a = 0, 0
}

// add adds an exact span.
func (r *groupWindow) add(weight, n, area float64) {
	r.stands.add(weight-1, n, area)
	r.squares.add(sq(weight-1), n, area)
	r.received += n
	r.area += area
	r.exact += n
	r.cells++
}

// whole takes the area of a span that tells how areas scatter.
func (r *groupWindow) whole(n, area float64) {
	r.n += n
	r.a += area
	if area < 0 {
		r.negative++
	}
}

// take takes a span.
func (w *window) take(x *span) {
	if x.from >= w.to {
		return
	}
	a, l, r := w.areas, &w.areas.losses, w.group(x.group, x.cell)
	fresh := x.open && x.sure < w.to && x.joined == 0 && !x.alike && !x.young && !x.unknown && !a.old(x.from)
	hides := x.before > 0 && a.told > 0              // what was lost before the cuts that are kept
	back := x.joined > 0 && x.losing && l.believed() // they may have been taken for lost
	sure := x.exact || x.open && (!w.lossy && !fresh && !hides || x.sure >= w.to) || x.joined > 0 && !x.open
	sure = sure && !back
	weight := l.standsFor(x)
	if x.late > 0 && x.to <= w.to {
		if l.believed() {
			r.owed += x.owed
			r.unsure += float64(x.late) * sq(a.step) / 3 // they were sent within a cut
			r.joined.late += float64(x.late)
		} else {
			r.unsure += sq(x.owed)
		}
	}
	if x.open && !w.lossy && x.sure < w.to {
		gone, all := w.hides(x)
		if !fresh {
			r.hidden += gone
		}
		if l.of < enough {
			r.unsure += sq(all) / 3
		}
	}
	n, area := w.parts(x, r, fresh, sure, weight)
	if x.joined > 0 {
		n -= r.joined.add(w, x, back, weight)
	}
	switch {
	case x.alike && !sure:
		r.takeAlike(w, x, n, area)
	case x.young:
		r.young += n
	case x.unknown:
		r.left += n
	case fresh:
		r.fresh += n
		r.freshArea += area
	case !sure:
		r.other += n
		if x.received > 0 {
			r.others++
		}
	default:
		r.add(weight, n, area)
		if x.open || x.joined == 0 {
			r.whole(n, area)
		}
		if x.from < w.from {
			r.cross(0, weight, float64(x.steps[w.from-1-x.from].on))
		}
	}
	w.crossing(x, (x.open || x.joined == 0) && (sure || fresh && !w.lossy), weight)
}

// hides returns for how long packets of an open span may have aged in the window that are lost: all
// that were outstanding the greatest delay ago and still are, and all that still are.
func (w *window) hides(x *span) (time, all float64) {
	a, gone := w.areas, int32(0)
	for k := range x.steps[:w.to-x.from] {
		cut := x.from + 1 + k
		if float64(a.ends[a.latest()]-a.ends[cut]) >= a.greatest {
			gone = max(0, x.steps[k].most)
		}
		if cut > w.from {
			time += float64(gone) * a.length(cut)
			all += float64(max(0, x.steps[k].most)) * a.length(cut)
		}
	}
	return time, all
}

// takeAlike takes a span of packets that look alike, of which some may be lost: all that are outstanding
// until it ends, and others do not stand for them. Of one that began under way nothing is known.
func (r *groupWindow) takeAlike(w *window, x *span, n, area float64) {
	a, lost := w.areas, 0.0
	for k := max(x.from, w.from); k < min(x.to, w.to); k++ {
		lost += max(0, float64(x.steps[k-x.from].most)) * a.length(k+1)
	}
	if r.left += n; x.unknown {
		r.unsure += sq(n*a.greatest) / 3
		return
	}
	r.apart, r.owed = r.apart+n, r.owed+area-lost/2
	r.unsure += sq(lost) / 3
}

// parts adds the parts of a span by cut, and returns what it received within the window, and its area.
func (w *window) parts(x *span, r *groupWindow, fresh, sure bool, weight float64) (n, area float64) {
	for k := max(x.from, w.from); k < min(x.to, w.to); k++ {
		s, cut := &x.steps[k-x.from], &r.cuts[k-w.from]
		n += float64(s.in)
		area += s.area
		if on := float64(s.on); x.young || x.unknown || x.alike && !sure {
			continue
		} else if fresh {
			cut.sent += float64(s.out)
			cut.fresh += on
		} else if sure {
			r.early += max(0, -on)
			r.there += math.Abs(on)
			cut.sent += float64(s.out)
			r.cross(k+1-w.from, weight, on)
		}
	}
	return n, area
}

// cross adds packets on their way at a cut.
func (r *groupWindow) cross(cut int, weight, n float64) {
	r.way[cut] += n
	r.aside[cut] += (weight - 1) * n
}

// crossing takes a packet that was alone, and what is known of the ages of packets on
// their way at the ends.
func (w *window) crossing(x *span, known bool, weight float64) {
	a, alone := w.areas, x.alone()
	one := Alone{x.group, estimate.SignExtend(x.sentSum, a.bits), x.sum, 0, x.from, x.to}
	if alone && x.to <= w.to {
		a.alone = append(a.alone, one)
	}
	for i, cut := range [2]int{w.from, w.to} {
		if !known || cut <= x.from || cut > x.to || x.steps[cut-x.from-1].on == 0 {
			continue
		}
		// Points may cut at times that differ by nearly an interval.
		of, ages := &a.onWay[i], a.ages(x, cut, a.greatest+a.step)
		if x.alike {
			of.alike, of.doubt = plus(of.alike, ages, 1), of.doubt+sq(ages.Most-ages.Least)/12
			continue
		}
		if alone {
			a.crossing[i] = append(a.crossing[i], one)
			ages.Least = float64(estimate.SignExtend(uint64(a.ends[cut])-x.sentSum, a.bits))
			ages.Most = ages.Least
		}
		if ages.Packets < 0 { // they count less than none, and so do their ages
			ages.Least, ages.Most = -ages.Most, -ages.Least
		}
		of.bound(ages, weight)
	}
}
