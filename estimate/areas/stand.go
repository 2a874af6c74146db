package areas

// A share is what spans hold, some of them more than once: packets n and areas a.
type share struct{ n, a, nn, na, aa float64 }

// add adds a span or a cell, so many times.
func (s *share) add(times, n, a float64) {
	s.n += times * n
	s.a += times * a
	s.nn += times * n * n
	s.na += times * n * a
	s.aa += times * a * a
}

// about returns the sum of the squared distances from a ratio of areas to packets.
func (s *share) about(r float64) float64 { return max(0, s.aa-2*r*s.na+r*r*s.nn) }

// finish lets exact spans stand for those that may have lost packets: each counts once, and
// for as many others as it stands for, times as much as it takes to make all that came.
func (r *groupWindow) finish(l *losses, group int) {
	if r.others == 0 || r.exact == 0 {
		return
	}
	plain := r.area / r.exact
	if r.stands.n > 0 {
		r.by = r.other / r.stands.n
	}
	r.area, r.received = r.area+r.by*r.stands.a, r.exact+r.other
	if r.stands.n == 0 {
		r.area += r.other * plain
	}
	for k := range r.way {
		r.way[k] += r.by * r.aside[k]
	}
	// The number of times x that a span counts varies like x(x−1). How many packets came from few
	// spans tells little of how many there were.
	const few = 10
	rate, most := r.area/r.received, max(r.by, (r.other+few)/(r.stands.n+few))
	r.variance = most*most*r.squares.about(rate) + most*r.stands.about(rate)
	r.variance += sq((r.area - plain*r.received) * l.doubt)
	// One more packet like the slowest may have been in a span that is not known.
	long := l.areas.greatest + l.areas.step
	lost := l.often(group) * long
	cuts := int(min(long/max(l.areas.step, 1), float64(l.areas.latest()-1)))
	unseen := 1 + r.by*max(0, l.weight(group, lost, lost/l.hazards[0], max(0, l.to-cuts), max(l.to, cuts))-1)
	r.variance += sq(l.areas.greatest) * unseen * (unseen - 1)
}

// settle adds spans that have not settled yet. Of the packets sent lately in these and in
// exact ones as many are lost as elsewhere, all of them in these; the others are on their way.
func (r *groupWindow) settle(l *losses, group int) {
	if r.freshArea == 0 {
		return
	}
	r.received += r.fresh
	r.exact += r.fresh
	r.area += r.freshArea
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
			r.way[k-l.from] += max(0, r.cuts[max(k-1-l.from, 0)].fresh-lost)
		}
	}
	aged = min(aged, r.freshArea)
	r.area -= aged
	// One more may be lost of as many as are known, or any if none are.
	r.variance += variance + sq(aged*l.doubt) + sq(min(ages/(l.of+1), r.freshArea))
}
