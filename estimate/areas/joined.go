package areas

import "math"

// joined adds up the packets that came without being sent: copies, mostly. They may be of slow packets
// only, so other spans do not stand for theirs. All that is not known is when each came: no later than the
// interval in which it shows, and no earlier than another packet could hide it, evenly if packets arrive so.
type joined struct {
	variance float64 // of the areas of their spans
	apart    float64 // by how much longer than an interval the times are in which they may have come
	all      float64 // packets
	back     float64 // of all, those that may have been taken for lost before
	hidden   float64 // time that joiners take from areas which never show, because more are always on their way,
	lately   float64 // and how many of these came in the window
}

// joiners are the packets of spans in which joiners show, or would, and those that joined; and of spans that are over, where none hides.
type joiners struct{ came, joined, of, over float64 }

// add adds others, each a number of times.
func (j *joiners) add(o joiners, times float64) {
	*j = joiners{j.came + times*o.came, j.joined + times*o.joined, j.of + times*o.of, j.over + times*o.over}
}

// hide adds what may have joined an open span and does not show: on average as many as elsewhere. They came evenly,
// but in spells, so that twice as many may have, or none.
func (j *joined) hide(w *window, x *span, n float64) {
	many := w.areas.unseen(x)
	if many == 0 {
		return
	}
	begin, end, before := max(x.from, w.from), min(x.to, w.to), x.before
	for k := x.from; k < begin; k++ {
		before += float64(x.in[k-x.from])
	}
	time, of := w.areas.between(begin, end), max(1, x.before+float64(x.received))
	j.hidden += many * (before + n/2) / of * time
	j.variance += many * (before + n/3) / of * sq(time)
	j.lately += many * n / of
}

// join adds the packets that joined a span within the window, and returns how many.
func (r *groupWindow) join(w *window, x *span, back bool, weight float64) (extra float64) {
	j, a := &r.joined, w.areas
	for k := max(x.from, w.from); k < min(x.to, w.to); k++ {
		n := float64(x.extra[k-x.from])
		if n == 0 {
			continue
		}
		extra += n
		length, time := a.length(k+1), a.between(x.from+a.hiding(x, k-x.from), k+1)
		j.variance += sq(n*weight*time) / 12 // those of one cell are mostly copies of one packet, and came together
		j.apart += n * weight * (time - length) / 2
		r.cuts[k-w.from].joined.add(1, n*weight)
		if time == length && x.before == 0 {
			w.phases[k-w.from].see(x, a, k-x.from, n*length)
		}
	}
	if j.all += extra; back {
		j.back += extra
	}
	// A loss beside a copy hides, and ages.
	begin, end := max(x.from, w.from), min(x.to, w.to)
	j.variance += a.losses.share * float64(x.sent) * sq(weight*a.between(begin, end))
	return extra
}

// hiding returns the first interval in which a packet may have joined that shows in interval k, both counted from the
// span's first. A packet on its way hid it until then, and hardly any takes longTail times as long as is usual.
func (a *Areas) hiding(x *span, k int) int {
	if cut := x.from + 1 + k; cut < len(a.losses.usual) {
		return max(x.opened, min(k, k-int(longTail*a.losses.usually(cut)/max(a.step, 1))))
	}
	return x.opened
}

// phases are when packets joined spans of one interval each, as a share of it from its middle, if the others of these
// spans took as long as is usual; and how many others there are.
type phases struct {
	moment
	others float64
}

// see sees a span until joiners show, since others did, lengthened by so much from the middle of an interval.
func (p *phases) see(x *span, a *Areas, at int, length float64) {
	off := 0.0
	for k := at; k >= 0 && (k == at || x.extra[k] == 0); k-- {
		others := float64(x.in[k]) - float64(x.extra[k])
		off += x.area[k] - others*a.losses.usually(x.from+1+k)
		p.others += others
	}
	p.add(1, off/length)
}

// even returns which part of the variance of even arrivals these have about their mean, and twice its relative standard error: the
// square of the variance of n even ones varies by 0.8/n. Packets of bursts have the rest in common.
func (p *phases) even(scatter, length float64) (part, chance float64) {
	if p.n < 2 {
		return 0, 0
	}
	return 12 * max(0, p.spread()*p.n/(p.n-1)-p.others/p.n*scatter/sq(length)), 2 * math.Sqrt(0.8/p.n)
}

// doubt returns the variance of the areas of all spans that packets joined, which may have come together in each, or at one time of all.
func (r *groupWindow) doubt(w *window) float64 {
	bursts, all, n := 0.0, phases{}, 0.0
	for k := range r.cuts {
		p, of, length := &w.phases[k], &r.cuts[k].joined, w.areas.length(w.from+1+k)
		even, chance := p.even(w.scatter, length)
		bursts += (sq(of.sum) - of.squares) * sq(length) * (1 - min(even, 1+chance))
		n += of.sum * length
		all = phases{moment{all.n + p.n, all.sum + p.sum, all.squares + p.squares}, all.others + p.others}
	}
	even, chance := all.even(w.scatter, w.areas.step)
	return r.joined.variance + (sq(r.joined.hidden)+sq(r.joined.apart))/3 + max(bursts, sq(n)*(1-even*(1+chance)), 0)/12
}

// takeAlike takes a span of packets that look alike, of which some may be lost: all that are outstanding until
// it ends, and others do not stand for them. Of one that began under way nothing is known.
func (w *window) takeAlike(x *span, n, area, lost float64) {
	if w.left += n; x.unknown {
		w.unsure += sq(n*w.areas.greatest) / 3
		return
	}
	w.apart, w.aged, w.alike = w.apart+n, w.aged+lost, w.alike+area
}

// takeLate takes packets that came after they had been taken for lost. Of those of a span that came in the window, at most
// all were such packets, and at least as many as cannot have come in the rest of the span.
func (w *window) takeLate(x *span, came int) {
	least, most := float64(max(0, x.late-int(x.received)+came)), float64(min(x.late, came))
	owed := x.owed / float64(x.late)
	if !w.areas.losses.believed() {
		w.unsure += sq(owed * most)
		return
	}
	w.owed += owed * (least + most) / 2
	w.vague += owed * (most - least) / 2
	w.unsure += most * sq(w.areas.step) / 3 // they were sent within a cut
	w.late += (least + most) / 2
}
