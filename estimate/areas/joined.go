package areas

import (
	"math"

	"github.com/hoplag/hoplag/estimate"
)

// joined adds up the packets that came without being sent: copies, mostly. They may be of slow packets
// only, so other spans do not stand for theirs. All that is not known is when each came: no later than the
// interval in which it shows, and no earlier than another packet could hide it, evenly if packets arrive so.
type joined struct {
	variance float64 // of the areas of their spans
	apart    float64 // by how much longer than an interval the times are in which they may have come
	within   float64 // intervals in which they came, times weights
	all      float64 // packets
	back     float64 // of all, those that may have been taken for lost before
	hidden   float64 // time that joiners take from areas which never show, because more are always on their way,
	lately   float64 // and how many of these came in the window
}

// joiners are the packets of spans in which joiners show, or would, and those that joined; and the same of
// spans that are over, in which none hides.
type joiners struct{ came, joined, of, over float64 }

// add adds others, each so many times.
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

// add adds the packets that joined a span within the window, and returns how many.
func (j *joined) add(w *window, x *span, back bool, weight float64) (extra float64) {
	a := w.areas
	for k := max(x.from, w.from); k < min(x.to, w.to); k++ {
		n := float64(x.extra[k-x.from])
		if n == 0 {
			continue
		}
		extra += n
		length, time := a.length(k+1), a.between(x.from+a.hiding(x, k-x.from), k+1)
		j.variance += sq(n*weight*time) / 12 // those of one cell are mostly copies of one packet, and came together
		j.apart += n * weight * (time - length) / 2
		j.within += n * weight * length
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

// doubt returns the variance of the areas of all spans that packets joined.
func (j *joined) doubt(w *window) float64 {
	j.variance += sq(j.hidden) / 3
	if j.within == 0 {
		return j.variance
	}
	return j.variance + sq(j.apart+j.within*w.phased())/3
}

// phased returns how far from even the arrivals within an interval are, beyond chance, as a share of
// the interval: by how much they are off its middle on average, and by how much they bunch.
func (w *window) phased() float64 {
	a := w.areas
	var phase moment
	add := func(cut int, received uint32, sum uint64) {
		if received == 1 && cut > w.from && cut <= w.to && a.ends[cut] > a.ends[cut-1] {
			age := estimate.SignExtend(uint64(a.ends[cut])-sum, a.bits)
			phase.add(1, min(max(float64(age)/a.length(cut), 0), 1))
		}
	}
	for i := range a.events {
		e := &a.events[i]
		add(int(e.cut)-a.before, e.received, e.sentSum+e.delay)
	}
	a.calmly(w.from, w.to, func(_, cut int, all []calmEvent) {
		for i := range all {
			add(cut, all[i].packets, all[i].came)
		}
	})
	if phase.n < manyCells {
		return 0.5
	}
	chance := 2 / math.Sqrt(12*phase.n)
	return max(0, math.Abs(phase.sum/phase.n-0.5)-chance) + max(0, 1-12*phase.spread()-2*chance)/2
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
