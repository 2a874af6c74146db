package areas

// A standing is what exact spans say of all: packets and areas, each as often as it
// stands for some, and the squares of the former.
type standing struct{ n, a, squares float64 }

func (s *standing) merge(o *standing) {
	s.n += o.n
	s.a += o.a
	s.squares += o.squares
}

// A cutSpan is about the parts of spans in a cut.
type cutSpan struct {
	exact, stands standing
	other         float64 // packets received in spans that lost some
	sent          float64 // packets, in spans that lost nothing before they were sent
	fresh         float64 // packets that are outstanding at the end, in spans that have not settled yet
}

// stand lets the part of an exact span in a cut stand for weight.
func (r *groupWindow) stand(cut int, weight, n, area float64) {
	c := &r.cuts[cut]
	c.exact.n += n
	c.exact.a += area
	c.stands.n += weight * n
	c.stands.a += weight * area
	c.stands.squares += weight * weight * n
}

// An extent says how often each exact span counts so that all are counted: as often as
// it stands for some, times by, and more times besides.
type extent struct{ by, more float64 }

// extent returns how often exact spans count so that as many packets come as did. If
// others lost packets that are named, and those that did not stay few, they count once,
// and for those beside as often as it takes.
func (c *cutSpan) extent(named bool) extent {
	if named && c.exact.n+c.other < c.stands.n {
		by := c.other / (c.stands.n - c.exact.n)
		return extent{by, 1 - by}
	}
	const few = 30 // packets, whose number tells little
	return extent{(c.exact.n + c.other + few) / (c.stands.n + few), 0}
}

// of returns what all hold, of which exact spans hold so much once and as they stand for others.
func (e extent) of(once, stands float64) float64 { return e.by*stands + e.more*once }

// finish lets exact spans stand for all, by cut where many packets came.
func (r *groupWindow) finish(l *losses, group int) {
	if r.others == 0 || r.exact == 0 {
		return
	}
	for k := range r.cuts {
		c := &r.cuts[k]
		r.all.other += c.other
		r.all.exact.merge(&c.exact)
		r.all.stands.merge(&c.stands)
	}
	e := r.all.extent(l.areas.named)
	plain := r.area / r.exact
	r.area, r.received = 0, r.exact+r.other
	for k := range r.cuts {
		c := &r.cuts[k]
		if sq(c.stands.n) > manyPackets*c.stands.squares {
			r.area += c.extent(l.areas.named).of(c.exact.a, c.stands.a)
		} else {
			r.area += e.of(c.exact.a, c.stands.a)
		}
	}
	for k := range r.way {
		r.way[k] = e.of(r.way[k], r.aside[k])
	}
	// The number of times x that a span counts varies like x(x−1).
	rate := r.area / r.received
	r.variance = e.by*e.by*r.twice.about(rate) + e.by*(2*e.more-1)*r.once.about(rate) + e.more*(e.more-1)*r.plain.about(rate)
	r.variance = max(r.variance, 0) + sq((r.area-plain*r.received)*l.vague(group))
	r.variance += sq(r.stale.slower(l, group, rate))
	// One more packet like the slowest may have been in a span that is not known.
	long := l.areas.greatest + l.areas.step
	lost := l.often(group) * long
	cuts := int(min(long/max(l.areas.step, 1), float64(l.areas.latest()-1)))
	unseen := max(1, e.of(1, l.weight(group, lost, lost/l.hazard(0), max(0, l.to-cuts), max(l.to, cuts))))
	r.variance += sq(l.areas.greatest) * unseen * (unseen - 1)
}

// staleSpans are spans that have not settled, though they began more than a patience ago:
// received and areas, and packets that they may have lost before the oldest cut that is kept.
type staleSpans struct{ spans, received, area, lost float64 }

func (s *staleSpans) add(o staleSpans) {
	*s = staleSpans{s.spans + o.spans, s.received + o.received, s.area + o.area, s.lost + o.lost}
}

// slower returns how much longer than at a rate packets of stale spans took. Some of these spans
// lost packets, which others stand for: as many as are not known to be lost in others. The rest
// have not settled because their packets are slow.
func (s *staleSpans) slower(l *losses, group int, rate float64) float64 {
	lost := s.lost
	for k := 1; k <= l.to && l.areas.old(k); k++ {
		c := &l.groups[group].cuts[k]
		lost += max(0, l.rate(k)*c.all-c.lost)
	}
	return (s.area - rate*s.received) * max(0, 1-lost/max(1, s.spans))
}

// settle adds spans that have not settled yet. Of the packets sent lately in these and in
// exact ones as many are lost as elsewhere, all of them in these; the others are on their way.
func (r *groupWindow) settle(l *losses, group int) {
	if r.fresh.exact.a == 0 {
		return
	}
	r.received += r.fresh.exact.n
	r.exact += r.fresh.exact.n
	r.area += r.fresh.exact.a
	of, ends, sent, all := &l.groups[group], l.areas.ends, 0.0, 0.0
	for k := range r.cuts {
		sent += r.cuts[k].sent
		all += of.cuts[l.from+1+k].all
	}
	lost, aged, variance, ages := 0.0, 0.0, 0.0, 0.0
	for k := 1; k <= l.to; k++ {
		if l.areas.old(k) {
			continue
		}
		here := of.cuts[k].all * min(1, sent/max(all, 1))
		gone := l.rate(k) * here
		age := float64(ends[l.to] - ends[max(k, l.from)])
		if k > l.from {
			age += l.areas.length(k) / 2
		}
		lost += gone
		ages += here * age
		aged += gone * age
		variance += gone * age * age
		if k >= l.from {
			c := &r.cuts[max(k-1-l.from, 0)]
			r.way[k-l.from] += max(0, c.fresh-lost)
		}
	}
	aged = min(aged, r.fresh.exact.a)
	r.area -= aged
	// One more may be lost of as many as are known, or any if none are.
	r.variance += variance + sq(aged*l.doubt) + sq(min(ages/(l.of+1), r.fresh.exact.a))
}

// manyPackets is how many packets tell what others take: their mean is known to a tenth of the scatter.
const manyPackets = 100
