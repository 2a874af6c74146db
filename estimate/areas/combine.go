package areas

import (
	"fmt"
	"math"

	"github.com/hoplag/hoplag/estimate"
)

// manyCells is how many cells tell of others: Student's interval of 30 is 4 % wider than the normal one.
const manyCells = 30

// mostLate is the share of packets that may come after they were taken for lost: others
// of their cells stand for them, although they may be of another kind.
const mostLate = 0.05

// combine adds up the groups, and leaves out those that add more variance than
// knowledge or contradict sparser ones, the densest first: what they hold is known from
// the others.
func (w *window) combine() (Transit, error) {
	var total, counted, left, apart, owed, unsure, early, there, late, joined, last float64
	for g := range w.groups {
		r := &w.groups[g]
		early += r.early
		there += r.there
		total += r.sent
		last += max(r.last, 0)
		left, apart, owed = left+r.left, apart+r.apart, owed+r.owed
		unsure += r.unsure + sq(r.joined.back*w.areas.losses.latest)
		late += r.joined.late + r.joined.back
		joined += r.joined.all
		counted += r.exact
	}
	if counted == 0 || 4*left > total {
		return Transit{Received: total, Left: left}, estimate.ErrNoSamples
	}
	if late > mostLate*total {
		return Transit{Received: total, Left: left}, fmt.Errorf("%w: %.0f of %.0f packets that came had been taken for lost",
			estimate.ErrNoSamples, late, total)
	}
	w.scatters()
	hidden, way := w.hidden()
	if hidden > way/2 {
		if 2*early > there {
			return Transit{Received: total, Left: left}, fmt.Errorf("%w: packets come before they are sent", estimate.ErrClocks)
		}
		return Transit{Received: total, Left: left}, errCrowded
	}
	best, rest := Transit{Error: math.Inf(1)}, pooled{}
	for g := len(w.groups) - 1; g >= 0; g-- {
		r := &w.groups[g]
		if r.by > 0 {
			r.variance = max(r.variance, w.scatter*(r.by*r.by*r.squares.n+r.by*r.stands.n))
		}
		if w.contradicts(&r.pooled, &rest) {
			continue
		}
		if rest.merge(&r.pooled); rest.exact == 0 {
			continue
		}
		t := w.transit(&rest, total, last)
		t.Left, t.Joined, t.Mean, t.Error = left, joined, t.Mean+(owed-apart*t.Mean)/total, math.Sqrt(sq(t.Error)+(unsure+sq(hidden)/3)/sq(total))
		if t.Error <= best.Error || g == 0 && !w.lossy {
			best = t
		}
	}
	if best.Received == 0 {
		return Transit{Received: total, Left: left}, estimate.ErrNoSamples
	}
	return best, nil
}

// transit returns what groups tell that are merged, of so many packets received in all, and on their
// way at the end.
func (w *window) transit(r *pooled, total, last float64) Transit {
	out, scale := total-r.received+last-max(r.last, 0), total/r.received
	variance := r.variance*scale*scale + w.scatter*out*(1+out/r.received) + sq(w.areas.greatest)*scale*(scale-1)
	return Transit{
		Mean:     r.area / r.received,
		Error:    math.Hypot(math.Sqrt(variance), w.young*r.area/r.received) / total,
		Degrees:  uint64(max(1, r.cells-1)),
		First:    OnWay{Packets: r.first * scale},
		Last:     OnWay{Packets: r.last * scale},
		Scatter:  w.scatter,
		Received: total,
		Exact:    r.exact,
		Negative: r.negative / r.cells,
		early:    r.early / max(r.there, 1),
		crossed:  r.there,
		uneven:   w.uneven(),
	}
}

// errCrowded says that nothing tells what was lost.
var errCrowded = fmt.Errorf("%w: cells always have packets on their way, so nothing tells which are lost: take more cells, or sample",
	estimate.ErrNoSamples)

// hidden returns for how long packets may have aged that are lost, where none is known to be, and
// the time of all. What is outstanding at the end in a cell that was never empty may be lost
// for all that it tells. But groups sample the same packets: where another one has less to
// hide, no more is lost than it would show, or all but one.
func (w *window) hidden() (hidden, way float64) {
	one := float64(w.areas.ends[w.to] - w.areas.ends[w.from])
	for g := range w.groups {
		r := &w.groups[g]
		least := r.hidden
		for h := range w.groups {
			if o := &w.groups[h]; h != g && o.sent > 0 {
				least = min(least, (o.hidden+one)*r.sent/o.sent)
			}
		}
		hidden += least
		way += math.Abs(r.area)
	}
	return hidden, way
}

// scatters finds the variance of the time of one packet, from whole cells.
func (w *window) scatters() {
	squares, of, cells, area, received, way := 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
	for g := range w.groups {
		r := &w.groups[g]
		received += r.received
		way += r.area
		squares += r.each.about(r.each.a / max(r.each.n, 1))
		of += r.each.n
		area += r.each.a
		cells += r.cells
	}
	w.scatter = squares / max(of, 1)
	switch {
	case cells == 0: // as if times were exponential
		w.scatter = sq(way / max(received, 1))
	case cells < manyCells: // which may be alike by chance
		w.scatter += sq(area/max(of, 1)) / cells
	}
}

// uneven returns the relative variance of the numbers on their way by cut, beyond twice that of Poisson ones.
func (w *window) uneven() float64 {
	var m estimate.Moments
	for k := range w.groups[0].way {
		n := 0.0
		for g := range w.groups {
			n += w.groups[g].way[k]
		}
		m.Add(n)
	}
	mean := max(m.Mean(), 1)
	return max(0, m.Variance()-2*mean) / sq(mean)
}

// contradicts reports whether a group differs from sparser ones beyond chance. They are
// samples of the same packets, so in the denser one fewer slow packets are known than
// their weights stand for. A group that lost nothing is exact.
func (w *window) contradicts(r, rest *pooled) bool {
	if r.received == 0 || r.variance == 0 || rest.cells < manyCells || rest.exact < manyCells {
		return false
	}
	apart := r.area/r.received - rest.area/rest.received
	chance := w.scatter*(1/r.received+1/rest.received) + r.variance/sq(r.received) + rest.variance/sq(rest.received)
	return apart*apart > 6.25*chance // 2.5 standard errors: once in 80 reports by chance
}

// merge adds what others know.
func (r *pooled) merge(o *pooled) {
	r.area += o.area
	r.variance += o.variance
	r.received += o.received
	r.exact += o.exact
	r.cells += o.cells
	r.negative += o.negative
	r.early += o.early
	r.there += o.there
	r.first += o.first
	r.last += o.last
}
