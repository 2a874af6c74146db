package areas

import (
	"math"

	"github.com/hoplag/hoplag/estimate"
)

// joined adds up the packets that came without being sent: copies, mostly. They may be of slow packets
// only, so other spans do not stand for theirs. All that is not known is when each came: no later than the
// interval in which it shows, and no earlier than the first in which any came, evenly if packets arrive so.
type joined struct {
	variance float64 // of the areas of their spans
	apart    float64 // by how much longer than an interval the times are in which they may have come
	within   float64 // intervals in which they came, times weights
	all      float64 // packets
	late     float64 // packets that came late
	back     float64 // those that may have, of which it is not known
}

// add adds the packets that joined a span within the window, and returns how many.
func (j *joined) add(w *window, x *span, back bool, weight float64) (extra float64) {
	a, hidden := w.areas, 0.0
	for k := max(x.from, w.from); k < min(x.to, w.to); k++ {
		n := float64(x.extra[k-x.from])
		hidden += x.hidden[k-x.from] * a.length(k+1)
		if n == 0 {
			continue
		}
		extra += n
		length, time := a.length(k+1), float64(a.ends[k+1]-a.ends[x.from+x.opened])
		j.variance += n * sq(weight*time) / 12
		j.apart += n * weight * (time - length) / 2
		j.within += n * weight * length
	}
	j.variance += sq(weight*hidden) / 12
	if j.all += extra; back {
		j.back += extra
	}
	// A loss beside a copy hides, and ages.
	begin, end := max(x.from, w.from), min(x.to, w.to)
	j.variance += a.losses.share * float64(x.sent) * sq(weight*float64(a.ends[end]-a.ends[begin]))
	return extra
}

// doubt returns the variance of the areas of all spans that packets joined.
func (j *joined) doubt(w *window) float64 {
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
	for i := range a.events {
		e := &a.events[i]
		if cut := int(e.cut) - a.before; e.received == 1 && cut > w.from && cut <= w.to && a.ends[cut] > a.ends[cut-1] {
			age := estimate.SignExtend(uint64(a.ends[cut])-e.sentSum-e.delay, a.bits)
			phase.add(1, min(max(float64(age)/a.length(cut), 0), 1))
		}
	}
	if phase.n < manyCells {
		return 0.5
	}
	chance := 2 / math.Sqrt(12*phase.n)
	return max(0, math.Abs(phase.sum/phase.n-0.5)-chance) + max(0, 1-12*phase.spread()-2*chance)/2
}

// An olderSpans adds up spans that packets joined which may have been on their way since the beginning.
type olderSpans struct {
	young, left float64    // packets received
	area, more  float64    // at least, and by how much more that may be, while they had not come
	crossed     float64    // packets on their way at the ends of the window,
	doubt       [2]float64 // and variances of their ages
}

// takeJoined takes a span that packets joined which may have been on its way since the beginning, until they came.
func (r *groupWindow) takeJoined(w *window, x *span, n, area float64) {
	o := &r.older
	for k := max(x.from, w.from); k < min(x.to, w.to, x.from+x.all); k++ {
		o.more += float64(x.joined) * w.areas.length(k+1)
	}
	if o.area += area; x.young {
		o.young += n
	} else {
		o.left += n
	}
	o.crossed += math.Abs(float64(x.on[max(x.from, w.from)-x.from])) + math.Abs(float64(x.on[min(x.to, w.to)-x.from-1]))
}

// decide says whether others stand for the packets of these spans, or what is known of each.
func (o *olderSpans) decide(w *window, r *groupWindow) {
	n, length := o.young+o.left, float64(w.areas.ends[w.to]-w.areas.ends[w.from])
	if sq(o.more)/12 > w.scatter*n+o.crossed*sq(length) {
		r.young += o.young
		r.left += o.left
		*o = olderSpans{}
		return
	}
	r.owed += o.area + o.more/2
	for i, doubt := range o.doubt {
		w.areas.onWay[i].doubt += doubt
	}
}

// older returns how many packets that joined a span may have been on their way at a cut, or have come by then.
func (x *span) older(cut int) float64 {
	switch k := cut - x.from - 1; {
	case x.joined == 0 || k >= x.all:
		return 0
	case x.young || x.unknown:
		return float64(x.joined)
	default:
		return x.hidden[k]
	}
}

// takeAlike takes a span of packets that look alike, of which some may be lost: all that are outstanding until
// it ends, and others do not stand for them. Of one that began under way nothing is known.
func (r *groupWindow) takeAlike(w *window, x *span, n, area float64) {
	a, lost := w.areas, 0.0
	for k := max(x.from, w.from); k < min(x.to, w.to); k++ {
		lost += max(0, float64(x.most[k-x.from])) * a.length(k+1)
	}
	if r.left += n; x.unknown {
		r.unsure += sq(n*a.greatest) / 3
		return
	}
	r.apart += n
	r.alike.add(lost, area)
}
