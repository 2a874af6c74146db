package estimate

import "math"

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

type groupWindow struct {
	area, variance float64 // of all
	received       float64
	left           float64 // received, of which nothing is known
	young          float64 // likewise, where packets of before the beginning may have come
	exact          float64 // received in exact spans
	cells          float64
	negative       float64    // exact spans with a negative area
	early, there   float64    // packets that came before they were sent, and all that cross cuts, in exact spans
	each           share      // areas of whole cells
	sure           share      // areas of exact spans
	n, a           float64    // of the cell at hand
	scatter        float64    // variance of the time of one packet
	noise          float64    // variance of what is known of single cells
	clear          bool       // most of the scatter is that of packets
	squares        float64    // scatter, added up over packets
	cuts           []cutShare // exact spans, and closed ones that lost packets
	way            []float64  // packets on their way, by cut from the first one on
	sent           float64    // received, and left or young, before groups are merged
	busy           []float64  // likewise, way
}

// A cutShare is what spans hold in a cut, by class.
type cutShare struct{ exact, lossy [spanClasses]share }

// pool adds up the spans of the window by group. It collects the packets that were
// alone in their cell and came in the window, and the ages of those on their way at
// its ends.
func (a *Areas) pool(from, to int) *window {
	l, w := &a.losses, &a.window
	a.alone = a.alone[:0]
	for i := range a.onWay {
		a.onWay[i] = endAges{all: resize(a.onWay[i].all, len(a.groups)-1)}
		clear(a.onWay[i].all)
	}
	w.areas, w.cell, w.young = a, -1, 0
	w.from, w.to, w.lossy, w.groups = from, to, l.total > 0, resize(w.groups, len(a.groups)-1)
	for g := range w.groups {
		r := &w.groups[g]
		*r = groupWindow{cuts: resize(r.cuts, to-from), way: resize(r.way, to-from+1), busy: r.busy[:0]}
		clear(r.cuts)
		clear(r.way)
	}
	a.walk(from, w.calm, w.take)
	for g := range w.groups {
		r := &w.groups[g]
		r.next()
		r.variance += l.variance(g)
		r.finish(l.burst)
		r.sent, r.busy = r.received+r.left+r.young, append(r.busy, r.way...)
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
	r, n := w.group(int(c.group), int(c.number)), float64(e.received)
	r.n += n
	r.a += area
	r.received += n
	r.sure.add(n, area)
	r.cuts[cut-1-w.from].exact[0].add(n, area)
	r.cells++
	if area < 0 {
		r.negative++
	}
	if a := w.areas; e.sent == 1 {
		a.alone = append(a.alone, Alone{int(c.group), SignExtend(e.sentSum, a.bits), int64(area), 0, cut - 1, cut})
	}
}

// take takes a span.
func (w *window) take(x *span) {
	if x.from >= w.to {
		return
	}
	a, l := w.areas, &w.areas.losses
	r := w.group(x.group, x.cell)
	if x.late > 0 && x.to <= w.to {
		if l.believed() {
			r.area += x.owed
		} else {
			r.variance += sq(x.owed)
		}
	}
	w.add(r, x, l.resolve(x), l.burst)
	for i, cut := range [2]int{w.from, w.to} {
		if x.from < cut && cut < x.to && x.on[cut-x.from-1] > 0 {
			a.ages(x, cut, &a.onWay[i])
		}
	}
	if x.alone() && x.to <= w.to {
		a.alone = append(a.alone, Alone{x.group, SignExtend(x.sentSum, a.bits), x.sum, 0, x.from, x.to})
	}
}

// next ends a cell.
func (r *groupWindow) next() {
	r.each.add(r.n, r.a)
	r.n, r.a = 0, 0
}

// add adds a span, whose areas have the given variance.
func (w *window) add(r *groupWindow, x *span, variance, burst float64) {
	sure := x.certain(w.to)
	lossy := !sure && !x.open && x.lost > 0 && x.joined == 0
	r.noise += variance
	if !lossy {
		r.variance += variance * burst
	}
	class, total, before := spanClass(x.to-x.from), 0.0, r.n
	for k := max(x.from, w.from); k < min(x.to, w.to); k++ {
		area, in := x.area[k-x.from], float64(x.in[k-x.from])
		if x.young {
			r.young += in
			continue
		} else if x.unknown {
			r.left += in
			continue
		}
		total += area
		r.way[k+1-w.from] += x.way[k-x.from]
		r.received += in
		if on := float64(x.on[k-x.from]); sure {
			r.early += max(0, -on)
			r.there += math.Abs(on)
		}
		of := &r.cuts[k-w.from]
		switch {
		case sure && (area != 0 || in > 0):
			of.exact[class].add(in, area)
		case lossy:
			of.lossy[class].add(in, area)
			of.lossy[class].variance += variance
			variance = 0
		default:
			r.area += area
		}
		r.n += in
	}
	r.a += total
	if n := r.n - before; sure && (n > 0 || total != 0) {
		r.sure.add(n, total)
	}
	if x.from < w.from && !x.unknown {
		r.way[0] += x.way[w.from-1-x.from]
	}
	if sure {
		r.cells++
		if total < 0 {
			r.negative++
		}
	}
}

// finish adds up the cuts. What spans hold that lost packets is known from
// themselves, and from exact spans of the same class and cut, whichever is
// better.
func (r *groupWindow) finish(burst float64) {
	for c := range spanClasses {
		var all, lossy share
		for k := range r.cuts {
			all.merge(&r.cuts[k].exact[c])
			lossy.merge(&r.cuts[k].lossy[c])
		}
		r.area += all.a
		r.exact += all.n
		if lossy.cells == 0 {
			continue
		}
		area, variance := lossy.a, lossy.variance*burst
		if all.cells >= manyCells && all.like(&lossy) {
			like, spread := 0.0, 0.0
			for k := range r.cuts {
				if one, of := &r.cuts[k].lossy[c], &r.cuts[k].exact[c]; one.cells > 0 {
					if of.cells < manyCells {
						of = &all
					}
					a, v := of.predict(one.cells, one.n)
					like += a
					spread += v
				}
			}
			if spread < variance {
				area, variance = like, spread
			}
		}
		r.area += area
		r.variance += variance
	}
	if r.received > 0 {
		squares := r.each.squares()
		r.scatter = max(squares-r.noise, 0) / r.received
		r.clear = r.noise < squares/2 && r.exact > r.received/2
	}
}

// fewClear is how many packets may all be of one kind where there are others.
const fewClear = 1000

// manyCells is how many cells tell what others hold.
const manyCells = 30

// mostYoung is the share of the packets of a group that may be in young cells.
const mostYoung = 0.05

// combine adds up the groups, and leaves out those that add more variance than
// knowledge, the densest first: what they hold is known from the others.
func (w *window) combine() (Transit, error) {
	total, counted, left := 0.0, 0.0, 0.0
	for g := range w.groups {
		r := &w.groups[g]
		total += r.received + r.left + r.young
		left += r.left
		counted += r.exact
	}
	if counted == 0 || 4*left > total {
		return Transit{Received: total, Left: left}, ErrNoSamples
	}
	w.scatter = w.scatters()
	best := Transit{Error: math.Inf(1)}
	rest := &w.groups[len(w.groups)-1]
	for g := len(w.groups) - 1; g >= 0; g-- {
		r := &w.groups[g]
		if r == rest {
			r.squares = r.scatter * r.received
		} else if r.young > mostYoung*(r.received+r.young) {
			continue // what is known is of fast packets
		} else {
			w.doubt(r, rest)
			rest.merge(r)
		}
		if rest.exact == 0 {
			continue
		}
		out, one := total-rest.received, max(w.scatter, rest.squares/rest.received)
		scale := total / rest.received
		t := Transit{
			Mean:     rest.area / rest.received,
			Error:    math.Sqrt(rest.variance*scale*scale+one*out*(1+out/rest.received)+sq(w.young*rest.area/rest.received)) / total,
			Degrees:  uint64(max(1, rest.cells-1)),
			First:    OnWay{Packets: rest.way[0] * scale},
			Last:     OnWay{Packets: rest.way[len(rest.way)-1] * scale},
			Scatter:  one,
			Left:     left,
			Received: total,
			Exact:    rest.exact,
			Negative: rest.negative / rest.cells,
			steady:   steady(rest.way),
			early:    rest.early > rest.there/2,
			used:     g,
		}
		if t.Error <= best.Error || g == 0 && !w.lossy {
			best = t
		}
	}
	return best, nil
}

// scatters returns the variance of the time of one packet: of the groups in which it
// is clear or, if these have few packets, by what many others show.
func (w *window) scatters() float64 {
	var squares, of [2]float64 // of all groups, and of the clear ones
	atMost, sure := math.Inf(1), share{}
	for g := range w.groups {
		r := &w.groups[g]
		sure.merge(&r.sure)
		squares[0] += r.scatter * r.received
		of[0] += r.received
		if r.clear {
			squares[1] += r.scatter * r.received
			of[1] += r.received
		}
		if r.received > fewClear {
			atMost = min(atMost, r.each.squares()/r.received)
		}
	}
	scatter := squares[0] / of[0]
	if of[1] > 0 {
		scatter = squares[1] / of[1]
	}
	if of[1] < fewClear && !math.IsInf(atMost, 1) {
		scatter = max(scatter, atMost)
	}
	if of[1] < sure.n/2 {
		// Where most is noise nothing is left of the scatter, or a few packets tell it that happen
		// to be alike. It is not less than that of exact spans, of which one may be unlike the others.
		scatter = max(scatter, (sure.squares()+sq(sure.a/sure.n))/sure.n)
	}
	return scatter
}

// steady reports whether numbers vary as Poisson ones do.
func steady(numbers []float64) bool {
	var m Moments
	for _, n := range numbers {
		m.Add(n)
	}
	return m.Variance() <= 3*max(m.Mean(), 1)
}

// doubt adds to the variance of a group what it differs from sparser ones
// beyond chance. They are samples of the same packets. A group that lost nothing
// is exact.
func (w *window) doubt(r, rest *groupWindow) {
	if r.received == 0 || r.variance == 0 || rest.cells < manyCells || rest.exact < manyCells {
		return
	}
	one := max(w.scatter, rest.squares/rest.received)
	apart := r.area/r.received - rest.area/rest.received
	chance := one*(1/r.received+1/rest.received) + r.variance/sq(r.received) + rest.variance/sq(rest.received)
	if apart*apart > 6.25*chance {
		r.variance += (apart*apart - chance) * sq(r.received)
	}
}

// merge adds up what two groups know.
func (r *groupWindow) merge(o *groupWindow) {
	r.area += o.area
	r.variance += o.variance
	r.received += o.received
	r.exact += o.exact
	r.cells += o.cells
	r.negative += o.negative
	r.early += o.early
	r.there += o.there
	r.squares += o.scatter * o.received
	for k, n := range o.way {
		r.way[k] += n
	}
}
