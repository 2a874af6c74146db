package areas

import (
	"fmt"
	"math"
	"sync"

	"github.com/hoplag/hoplag/estimate"
)

// A window is what the groups know of the packets between two cuts.
type window struct {
	areas    *Areas
	from, to int
	cells    []usualCut // of each: received in exact spans, and their area
	groups   []groupWindow
	lossy    bool
	scatter  float64  // variance of the time of one packet
	young    float64  // packets received that may be from before the beginning
	took     float64  // time of those that were alone
	copies   float64  // packets that joined
	calmly   usualCut // received in calm events, and their areas
	phases   []phases // of joiners, by cut

	left         float64 // received where nothing is known,
	twins        float64 // and of all received, those that look like others on their way
	apart        float64 // of these in spans of packets that look alike,
	aged, alike  float64 // and for how long these may have aged that are lost, and the areas of these spans
	owed, unsure float64 // ages that packets had when they were told to be lost, and squares of unlikely ones
	vague        float64 // by how much more or less of these if all that may have came in the window, or none
	late         float64 // packets that came after they had been taken for lost, or may have
}

// A groupWindow adds up the spans of a group. Those that lost nothing are exact. They stand for the others,
// each with the inverse of its chance to be known ([losses.weight]).
type groupWindow struct {
	area, received float64 // of exact spans, and of all once they are finished
	variance       float64 // of the area
	sent           float64 // packets received in all spans, whatever is known of them: not those that were lost

	exact, cells           float64 // exact spans: packets received, and how many
	negative, early, there float64 // those with a negative area, packets that came before they were sent, and all that cross cuts
	stands                 stands  // exact spans, as often as they stand for others,
	by                     float64 // and times so many, to make all that came in those
	each                   share   // areas of whole cells

	others, other float64 // spans that may have lost packets, and packets received in them
	aged          float64 // their areas, and the ages of what they lost
	own, ownDoubt float64 // their areas less these ages as expected, if they are few, and the variance;
	off           float64 // and half of what these are more than exact spans would make them, if they differ
	fresh         share   // spans that have not settled yet: received, and areas if all in them comes
	young         float64 // received where packets from before the beginning may have come
	unknown       float64 // and where nothing is known
	joined        joined  // packets that came without being sent
	hidden, still float64 // time that packets may have aged that are lost and not known to be, and likewise in spans that have not settled

	cuts       []cutSpan
	pending    float64   // packets on their way at the end of which it is not known that they have come since
	way, aside []float64 // packets on their way, by cut from the first one on, and as exact spans stand for them
	change     [3]share  // of spans, times how many more are on their way at one end than at the other (nn: squared), by (w−1)⁰, ¹ and ²
}

// cellSums has room for what each cell received.
var cellSums = sync.Pool{New: func() any { return new([]usualCut) }}

// pool adds up the spans of the window by group. It collects the packets that were alone in their cell and came
// in the window, and those that were on their way at its ends.
func (a *Areas) pool(from, to int) *window {
	l, w := &a.losses, &a.window
	a.alone, a.onWay = a.alone[:0], [2]endAges{}
	a.crossing[0], a.crossing[1] = a.crossing[0][:0], a.crossing[1][:0]
	room := cellSums.Get().(*[]usualCut)
	*room = zeros(*room, len(a.places))
	*w = window{areas: a, from: from, to: to, cells: *room, groups: resize(w.groups, len(a.groups)-1), lossy: l.total > 0,
		phases: zeros(w.phases, to-from)}
	for g := range w.groups {
		r := &w.groups[g]
		*r = groupWindow{cuts: zeros(r.cuts, to-from), way: zeros(r.way, to-from+1), aside: zeros(r.aside, to-from+1)}
	}
	a.calmly(from, to, w.calm)
	a.walk(from, to, w.take)
	cellSums.Put(room)
	w.scatters()
	for g := range w.groups {
		r := &w.groups[g]
		r.sent = r.received + r.other + r.unknown + r.young + r.fresh.n + r.joined.all
		r.finish(l, g)
		r.settle(l, g)
		r.area += r.joined.hidden
		r.variance += r.doubt(w)
		r.change[2].nn += sq(r.joined.lately) / 3
		if a.early(from) {
			w.young += r.young
		}
	}
	return w
}

// calm takes intervals at both ends of which cells were settled at one level. All that it adds up is in registers.
func (w *window) calm(group, cut int, all []calmEvent) {
	var n, time, nn, na, aa, with, mixed, times, negative, took float64
	alone, cells, r := w.areas.alone, w.cells, &w.groups[group]
	for i := range all {
		e := &all[i]
		packets, area, u := float64(e.packets), e.area, &cells[e.cell]
		n, time, nn, na, aa = n+packets, time+area, nn+packets*packets, na+packets*area, aa+area*area
		with, mixed, times = with+packets*u.packets, mixed+packets*u.time+area*u.packets, times+area*u.time
		if u.add(packets, area); area < 0 {
			negative++
		}
		if e.packets == 1 {
			alone = append(alone, Alone{int64(area), 0, uint32(cut - 1), uint32(cut)})
			took += math.Abs(area)
		}
	}
	r.cuts[cut-1-w.from].sent += n
	w.took, r.negative, w.areas.alone = w.took+took, r.negative+negative, alone
	w.calmly.add(n, time)
	r.add(w.areas.losses.weight(group, cut-1, cut), float64(len(all)), &share{n, time, nn, na, aa})
	r.each.weigh(1, &share{n, time, nn + 2*with, na + mixed, aa + 2*times}) // what these add to whole cells
}

// add adds exact spans.
func (r *groupWindow) add(weight, spans float64, sum *share) {
	r.stands.add(weight-1, sum)
	r.received += sum.n
	r.area += sum.a
	r.exact += sum.n
	r.cells += spans
}

// whole takes the area of a cell's span, and adds what it adds to all cells, which tell how areas scatter, as in calm.
func (u *usualCut) whole(all *share, n, area float64) {
	all.n += n
	all.a += area
	all.nn += n * (2*u.packets + n)
	all.na += n*(u.time+area) + area*u.packets
	all.aa += area * (2*u.time + area)
	u.add(n, area)
}

// take takes a span.
func (w *window) take(x *span) {
	a, l, r := w.areas, &w.areas.losses, &w.groups[x.group]
	came, out := w.passed(x)
	if x.joined == 0 && came+out == 0 && x.from < w.from && x.to >= w.to { // what is on its way is throughout
		x.young, x.unknown = false, false
	}
	fresh := x.open && x.sure < w.to && x.joined == 0 && x.twins == 0 && !x.young && !x.unknown && !a.old(x.from)
	hides := x.before > 0 && a.told > 0              // what was lost before the cuts that are kept
	back := x.joined > 0 && x.losing && l.believed() // they may have been taken for lost
	sure := x.exact || x.open && (!w.lossy && !fresh && !hides || x.sure >= w.to) || x.joined > 0 && !x.open
	sure = (sure || x.sure >= w.to && x.sure == a.lastAged) && !back
	weight := l.weight(x.group, x.from, x.to)
	if x.open {
		r.pending += float64(max(0, x.most[w.to-1-x.from]))
	}
	if x.late > 0 {
		w.takeLate(x, came)
	}
	after := x.joined > 0 && x.all <= w.from-x.from // all that may have been on its way at the beginning has come
	n, area, on := w.parts(x, r, fresh, sure, weight)
	w.twins += min(n, float64(x.twins)) // each is sent while one like it is on its way, which is slow
	if x.joined > 0 {
		n -= r.join(w, x, back, weight)
	}
	switch {
	case x.twins > 0 && !sure:
		r.unknown += n
		w.takeAlike(x, n, area, on)
	case x.young && !after:
		r.young += n
	case x.unknown && !after:
		r.unknown += n
		w.left += n
	case fresh:
		r.fresh.n += n
		r.fresh.a += area
		r.joined.hide(w, x, n)
	case !sure:
		r.other += n
		r.aged += max(0, area)
		if x.received > 0 {
			if r.others++; r.others <= manyCells {
				s := Span{Received: uint32(n)}
				a.aged(x, max(x.from, w.from), min(x.to, w.to), &s)
				r.own, r.ownDoubt = r.own+min(max(0, area-s.Aged), max(0, area)), r.ownDoubt+s.Variance
			}
		}
	default:
		r.add(weight, 1, shareOf(n, area))
		if x.open || x.joined == 0 {
			if w.cells[x.cell].whole(&r.each, n, area); area < 0 {
				r.negative++
			}
		}
		r.ends(w, x, weight, n, area)
		r.joined.hide(w, x, n)
	}
	w.crossing(x, (x.open || x.joined == 0) && (sure || fresh && !w.lossy) && a.unseen(x) < 0.5, fresh, weight)
}

// passed returns how many packets of a span came and were sent in the window.
func (w *window) passed(x *span) (came, sent int) {
	for k := max(x.from, w.from); k < min(x.to, w.to); k++ {
		came += int(x.in[k-x.from])
		sent += int(x.out[k-x.from])
	}
	return came, sent
}

// ends takes the packets of a span that are on their way at the ends of the window.
func (r *groupWindow) ends(w *window, x *span, weight, n, area float64) {
	more := 0.0
	if x.from < w.from {
		more = float64(x.on[w.from-1-x.from])
		r.cross(0, weight, more)
	}
	if x.to >= w.to {
		more -= float64(x.on[w.to-1-x.from])
	}
	for i, by := range [3]float64{1, weight - 1, sq(weight - 1)} {
		r.change[i].weigh(by, &share{n: more * n, a: more * area, nn: sq(more)})
	}
}

// parts adds the parts of a span by cut, and returns what it received within the window, its area, and how much of that
// is of packets that were outstanding until the end.
func (w *window) parts(x *span, r *groupWindow, fresh, sure bool, weight float64) (n, area, until float64) {
	for k := max(x.from, w.from); k < min(x.to, w.to); k++ {
		at, cut := k-x.from, &r.cuts[k-w.from]
		on, hides := float64(x.on[at]), max(0, float64(x.most[at]))*w.areas.length(k+1)
		n, area, until = n+float64(x.in[at]), area+x.area[at], until+hides
		if x.open && !fresh && !w.lossy && x.sure < w.to {
			if w.areas.between(k+1, w.areas.latest()) >= w.areas.greatest {
				r.hidden += hides
			} else {
				r.still += hides
			}
		}
		switch {
		case (x.young || x.unknown) && x.joined == 0 || x.twins > 0 && !sure:
		case fresh:
			cut.sent += float64(x.out[at])
			cut.fresh += on
			r.still += hides
		case sure:
			r.early += max(0, -on)
			r.there += math.Abs(on)
			cut.sent += float64(x.out[at])
			r.cross(k+1-w.from, weight, on)
		}
	}
	return n, area, until
}

// cross adds packets on their way at a cut.
func (r *groupWindow) cross(cut int, weight, n float64) {
	r.way[cut] += n
	r.aside[cut] += (weight - 1) * n
}

// crossing takes a packet that was alone, and what is known of the ages of packets on their way at the ends.
func (w *window) crossing(x *span, known, fresh bool, weight float64) {
	a, alone := w.areas, x.alone()
	came := x.to
	if x.in[len(x.in)-1] == 0 { // before it was sent
		came = x.from + 1
	}
	if alone && came > w.from && came <= w.to {
		a.alone = append(a.alone, Alone{x.sum, 0, uint32(x.from), uint32(x.to)})
		w.took += math.Abs(float64(x.sum))
	}
	for i, cut := range [2]int{w.from, w.to} {
		of := &a.onWay[i]
		switch {
		case cut <= x.from || cut > x.to || x.on[cut-x.from-1] == 0: // none is
		case !known && fresh:
			of.came += max(0, float64(x.on[cut-x.from-1]-x.most[cut-x.from-1]))
		case !known || x.joined > 0 && (x.young || x.unknown) && cut <= x.from+x.all:
		case x.twins > 0:
			of.alike = plus(of.alike, a.bounds(x, cut), 1)
		default:
			ages := a.bounds(x, cut)
			if of.bound(ages, weight); alone {
				a.crossing[i] = append(a.crossing[i], Alone{int64(ages.Least), 0, uint32(x.from), uint32(x.to)})
			}
		}
	}
}

// bounds bounds the ages of the packets of an exact span on their way at a cut. The age of a single one is
// known. Points may cut at times that differ by nearly an interval.
func (a *Areas) bounds(x *span, cut int) ageBounds {
	ages := a.ages(x, cut, a.greatest+a.step)
	if x.alone() {
		age := float64(estimate.SignExtend(uint64(a.ends[cut])-x.sentSum, a.bits))
		ages.Least, ages.Most = age, age
	}
	if ages.Packets < 0 { // they count less than none, and so do their ages
		ages.Least, ages.Most = -ages.Most, -ages.Least
	}
	return ages
}

// manyCells is how many cells tell of others: Student's interval of 30 is 4 % wider than the normal one.
const manyCells = 30

// mostLate is the share of packets that may come after they were taken for lost: others of their cells stand
// for them, although they may be of another kind. mostYoung is that of a group's packets that may be in young cells.
const mostLate, mostYoung = 0.05, 0.05

// combine adds up the groups.
func (w *window) combine() (Transit, error) {
	var total, counted, way, early, there, concealed float64
	for g := range w.groups {
		r := &w.groups[g]
		early += r.early
		there += r.there
		total += r.sent
		w.unsure += sq(r.joined.back * w.areas.losses.latest)
		w.late += r.joined.back
		w.copies += r.joined.all
		concealed += r.joined.hidden
		counted += r.exact
		way += math.Abs(r.area)
	}
	none := Transit{Received: total}
	if counted == 0 || 4*w.left > total {
		return none, estimate.ErrNoSamples
	}
	if w.late > mostLate*total {
		return none, fmt.Errorf("%w: %.0f of %.0f packets that came had been taken for lost", estimate.ErrNoSamples, w.late, total)
	}
	hidden := w.least(func(r *groupWindow) float64 { return r.hidden })
	if hidden > way/2 {
		if 2*early > there {
			return none, fmt.Errorf("%w: packets come before they are sent", estimate.ErrClocks)
		}
		return none, fmt.Errorf("%w: cells always have packets on their way, so nothing tells which are lost: take more cells, or sample",
			estimate.ErrNoSamples)
	}
	hidden += w.least(func(r *groupWindow) float64 { return r.still })
	t := w.merge(total)
	if t.Received == 0 { // all that is known is of fast packets
		return none, estimate.ErrNoSamples
	}
	// Packets that look alike take as long as others do, as far as what may be lost of them allows it. That is
	// not known of each, so that errors add up.
	least, most := w.alike-w.aged, w.alike
	time := min(max(w.apart*t.Mean, least), most)
	hidden = math.Hypot(math.Hypot(hidden, w.vague), max(time-least, most-time))
	t.Joined, t.Alike, t.Hidden, t.Mean = w.copies, w.twins, concealed/total, t.Mean+(w.owed+time-w.apart*t.Mean)/total
	t.Error = math.Sqrt(sq(t.Error) + (w.unsure+sq(hidden)/3)/sq(total))
	return t, nil
}

// merge merges the groups, the sparsest first, as long as that adds knowledge.
func (w *window) merge(total float64) Transit {
	best := Transit{Error: math.Inf(1)}
	rest := &w.groups[len(w.groups)-1]
	for g := len(w.groups) - 1; g >= 0; g-- {
		r := &w.groups[g]
		few := r.cells < manyCells && r.exact < min(r.received/2, r.other-r.stands.all.n) // stand for others whom losses do not explain
		if r != rest && (few || r.young > mostYoung*(r.received+r.young)) {
			continue // what is known is by chance, or of fast packets
		}
		if r.others > 0 && r.exact > 0 {
			r.variance = max(r.variance, w.scatter*(r.other+r.by*r.by*r.stands.squares.n))
		}
		if r != rest {
			rest.merge(r)
		}
		if t := w.transit(rest, total); rest.exact > 0 && (t.Error <= best.Error || g == 0 && !w.lossy && r.joined.hidden == 0) {
			best = t
		}
	}
	return best
}

// transit returns what groups tell that are merged, of so many packets in all.
func (w *window) transit(r *groupWindow, total float64) Transit {
	out, scale := total-r.received, total/r.received
	var change share
	change.weigh(scale*scale, &r.change[2])
	change.weigh(scale*(scale-1), &r.change[0])
	slow := max(0, out-w.copies) / r.received // of what joined, the spans bound how long it took
	variance := r.variance*scale*scale + w.scatter*out*(1+out/r.received) + sq(w.areas.greatest)*(1+slow)*slow
	return Transit{
		Mean:    r.area / r.received,
		Error:   math.Hypot(math.Sqrt(variance), w.young*r.area/r.received) / total,
		degrees: uint64(max(1, r.cells-1)),
		First:   OnWay{Packets: r.way[0] * scale}, Last: OnWay{Packets: r.way[len(r.way)-1] * scale, Pending: r.pending * scale},
		Scatter:  w.scatter,
		Received: total, Exact: r.exact, negative: r.negative / r.cells,
		uneven: w.uneven(r), early: r.early / max(r.there, 1), crossed: r.there, scale: scale,
		change: change.nn, along: change.a - change.n*r.area/r.received, off: r.off * scale,
	}
}

// least adds up how long packets may have aged that are lost, where none is known to be. Groups sample the same
// packets: none lost a greater share than another one would show, give or take one packet in each.
func (w *window) least(of func(*groupWindow) float64) (sum float64) {
	one, share := max(1, w.areas.between(w.from, w.to)), math.Inf(1)
	for g := range w.groups {
		share = min(share, (of(&w.groups[g])+one)/w.groups[g].sent)
	}
	for g := range w.groups {
		sum += min(of(&w.groups[g]), share*w.groups[g].sent+one)
	}
	return sum
}

// scatters finds the variance of the time of one packet, from whole cells.
func (w *window) scatters() {
	var all share
	squares, cells, received, way := 0.0, 0.0, 0.0, 0.0
	for g := range w.groups {
		r := &w.groups[g]
		all.weigh(1, &r.each)
		squares += r.each.about(r.each.a / max(r.each.n, 1))
		cells, received, way = cells+r.cells, received+r.received, way+r.area
	}
	w.scatter = squares / max(all.n, 1)
	switch {
	case cells == 0: // as if times were exponential
		w.scatter = sq(way / max(received, 1))
	case cells < manyCells: // which may be alike by chance
		w.scatter += sq(all.a/max(all.n, 1)) / cells
	}
}

// uneven returns the variance of the numbers on their way about their mean in time, beyond twice that of
// Poisson ones, relative to its square.
func (w *window) uneven(r *groupWindow) float64 {
	mean, squares := r.area/max(1, w.areas.between(w.from, w.to)), 0.0
	for _, n := range r.way {
		squares += sq(n - mean)
	}
	mean = max(math.Abs(mean), 1)
	return max(0, squares/float64(len(r.way))-2*mean) / sq(mean)
}

// merge adds up what two groups know.
func (r *groupWindow) merge(o *groupWindow) {
	r.area, r.variance, r.received = r.area+o.area, r.variance+o.variance, r.received+o.received
	r.off += o.off
	r.exact, r.cells, r.negative = r.exact+o.exact, r.cells+o.cells, r.negative+o.negative
	r.early, r.there, r.pending = r.early+o.early, r.there+o.there, r.pending+o.pending
	r.change[0].weigh(1, &o.change[0])
	r.change[2].weigh(1, &o.change[2])
	for k, n := range o.way {
		r.way[k] += n
	}
}
