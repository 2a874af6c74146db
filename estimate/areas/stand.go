package areas

import "math"

// A cutSpan is about the parts of spans in a cut.
type cutSpan struct {
	sent   float64 // packets, in spans that lost nothing before they were sent
	fresh  float64 // packets that are outstanding at the end, in spans that have not settled yet
	joined moment  // packets that came without being sent, by cell
}

// finish lets exact spans stand for those that may have lost packets: each counts once, and for as many others
// as it stands for, times as much as it takes to make all that came.
func (r *groupWindow) finish(l *losses, group int) {
	if r.others == 0 || r.exact == 0 {
		r.change[2] = share{}
		return
	}
	all := &r.stands.all
	usual, known := r.area/r.exact, all.n // packets that others are known to stand for
	if known == 0 {                       // no loss is known: all are alike
		all.n, all.a, r.change[1] = r.exact, r.area, r.change[0]
		copy(r.aside, r.way)
	}
	r.by = r.other / all.n
	r.received = r.exact + r.other
	r.area += r.by * all.a
	for k := range r.way {
		r.way[k] += r.by * r.aside[k]
	}
	const few = 30 // spans tell little of how many there were; the number of times x that one counts varies like x(x−1)
	rate, most := r.area/r.received, max(r.by, (r.other+few)/(known+few))
	r.variance = r.stands.about(most, rate)
	r.change[0].weigh(r.by, &r.change[1])
	changes := r.change[2]
	r.change[2].weigh(most*most-1, &changes)
	r.change[2].weigh(most, &r.change[1])
	// As many are unknown as others stand for, apart from chance. If not, the surplus or shortage may add nothing
	// or twice as much, and its packets differ as those of different cuts do.
	unlike := math.Sqrt(max(0, sq(r.other-known)-r.stands.squares.nn-all.nn))
	r.variance += sq(unlike) * l.uneven(l.from, l.to)
	r.variance += sq(r.area-usual*r.received) * (sq(l.doubt) + sq(unlike/max(known, 1))/3)
	// Few may hold what exact ones do not. Where their own areas say so, beyond three errors, either may be right.
	if off := r.own - r.by*all.a; max(r.others, r.other, known) <= few && sq(off) > max(r.variance, 9*r.ownDoubt) {
		r.off, r.variance = off/2, r.variance+sq(off)/4
	}
	// Packets slower than all that were seen may have been in spans that are not known, whose areas bound these.
	rare, unseen := l.rare(func(from, to int) float64 { return l.weight(group, from, to) })
	r.variance += min(sq(l.areas.greatest)*rare*(unseen-1), sq(r.aged))
}

// rare returns how many packets slower than all that were seen may be in the window, each of which would stand for so many:
// none was seen in so many windows, so that (in 95 of 100 cases) fewer than three would have been.
func (l *losses) rare(weight func(from, to int) float64) (packets, each float64) {
	long := l.areas.greatest + l.areas.step
	cuts := int(min(long/max(l.areas.step, 1), float64(l.areas.latest()-1)))
	each = weight(max(0, l.to-cuts), max(l.to, cuts))
	return each * min(1, 3/min(lately, l.areas.watched/max(1, l.areas.between(l.from, l.to)))), each
}

// settle adds spans that have not settled yet. Of the packets sent lately in these and in exact ones as many
// are lost as elsewhere, all of them in these; the others are on their way.
func (r *groupWindow) settle(l *losses, group int) {
	if r.fresh.a+r.still == 0 {
		return
	}
	of, sent, all := &l.groups[group], 0.0, 0.0
	for k := range r.cuts {
		sent += r.cuts[k].sent
		all += of.cuts[l.from+1+k].all
	}
	part := min(1, (sent+1)/(all+1))
	lost, aged, variance, ages, oldest := 0.0, 0.0, 0.0, 0.0, 0.0
	for k := 1; k <= l.to; k++ {
		if here, age := of.cuts[k].all*part, l.age(k); !l.areas.old(k) {
			gone := l.rate(k) * here
			lost, oldest = lost+gone, max(oldest, age)
			ages += here * age
			aged += gone * age
			variance += gone * l.burst * age * age
		}
		if k > l.from {
			on := max(0, r.cuts[k-1-l.from].fresh-lost)
			if r.way[k-l.from] += on; k == l.from+1 && !l.areas.old(l.from) { // as few came since
				r.way[0] += on
			}
		}
	}
	variance += sq(aged * l.doubt)
	// No more are lost than the fewest that were outstanding since. Cut off below its mean, the tail of a normal distribution is an
	// exponential one. And Poisson numbers far below one reach up to one or two, as normal ones of half as great a variance more do.
	most := min(r.fresh.a, r.still)
	if l.share > 0 {
		variance += sq(min(oldest, most)) / 2
	}
	if aged > most {
		variance *= variance / (variance + sq(aged-most))
		aged = most
	}
	r.still = min(r.still, ages/(l.of+1)+oldest) // one in as many as are known may be lost, and one more
	if l.share > 0 {
		r.still = 0
	}
	if r.fresh.a == 0 {
		return
	}
	r.received += r.fresh.n
	r.exact += r.fresh.n
	r.area += r.fresh.a - aged
	r.variance += variance
}

// A share is what cells hold: packets n and areas a.
type share struct{ n, a, nn, na, aa float64 }

// shareOf is what one cell holds.
func shareOf(n, a float64) *share { return &share{n, a, n * n, n * a, a * a} }

// weigh adds cells with a weight.
func (s *share) weigh(weight float64, o *share) {
	s.n += weight * o.n
	s.a += weight * o.a
	s.nn += weight * o.nn
	s.na += weight * o.na
	s.aa += weight * o.aa
}

// about returns the sum of the squared distances from a ratio.
func (s *share) about(r float64) float64 { return max(0, s.aa-2*r*s.na+r*r*s.nn) }

// stands adds up what cells hold, each as often as it stands for others, and as often as the square of that.
type stands struct{ all, squares share }

// add adds cells.
func (s *stands) add(times float64, cells *share) {
	s.all.weigh(times, cells)
	s.squares.weigh(sq(times), cells)
}

// about returns the variance of so many times what others hold that these stand for, about a ratio.
func (s *stands) about(by, r float64) float64 { return by*s.all.about(r) + by*by*s.squares.about(r) }
