package clock

import (
	"math"
	"slices"
)

// minStep is the smallest step, in nanoseconds, to tell from noise.
const minStep = 1000

// An expectation is the lowest that the marks of the latest interval can be if the clock went on as before: a line for each direction.
type expectation struct {
	from  int64
	start [2]float64
	slope [2]float64
}

// least returns the lowest expected mark at a time.
func (e *expectation) least(direction int, at int64) float64 {
	return e.start[direction] + e.slope[direction]*float64(at-e.from)
}

// expect predicts the latest interval, for least delays of margin. The polygon's lower edge is concave over
// time and the upper one convex, so their chords are on the safe side.
func (t *Tracker) expect(margin float64) expectation {
	e := expectation{from: t.latest.from}
	var ends [2][2]float64
	for i, at := range [2]int64{t.latest.from, t.latest.to} {
		x := float64(at - t.now.origin)
		low, high := t.now.offsets(margin, x)
		strayed := t.config.Wander * math.Abs(x)
		ends[there][i], ends[back][i] = low+margin-strayed, -high+margin-strayed
	}
	for d := range ends {
		e.start[d] = ends[d][0]
		e.slope[d] = (ends[d][1] - ends[d][0]) / max(1, float64(t.latest.to-t.latest.from))
	}
	return e
}

// solve fits the window with the fresh marks in place of its oldest interval. If the clock has stepped, it forgets what was before.
func (t *Tracker) solve() {
	t.spare.reset(t.latest.middle(), &t.config)
	for d := range t.fresh {
		for i := 1; i < len(t.slots); i++ { // from the oldest on, as sorted lists are sorted fast
			t.spare.add(d, t.slots[(t.next+i)%len(t.slots)].marks[d])
		}
		t.spare.add(d, t.fresh[d])
	}
	agree := t.spare.solve(t.config.Outliers)
	if t.known {
		t.doubtFrom = t.doubtful()
	}
	floor, widest := math.Inf(-1), math.Inf(-1) // recent margins, which depend on the path alone, and outlast steps
	for i := range t.slots {
		if i != t.next {
			floor, widest = max(floor, t.slots[i].floor), max(widest, t.slots[i].margin)
		}
	}
	violations, cut := t.violations()
	switch {
	case !t.spare.both() || !t.known && agree || !t.broken(agree, floor, violations, cut):
		t.spare.short = 2 * max(0, widest-t.spare.margin)
		t.now, t.spare, t.known = t.spare, t.now, agree
	case t.known && !agree && violations <= t.config.Outliers:
		// Too few to tell when the clock stepped, or whether it did: they wait for more marks.
		t.later = true
		t.doubtFrom = min(t.doubtFrom, t.latest.to)
	default:
		t.step(widest, cut)
	}
}

// doubtful returns the time from which on the latest interval may follow a step that shows in too few samples
// to be told from outliers: the time of the sample before them.
func (t *Tracker) doubtful() int64 {
	from := int64(math.MaxInt64)
	e := t.expect(max(0, t.now.margin-2*t.now.excess))
	for d := range t.fresh {
		last := t.latest.from
		for i, m := range t.fresh[d] {
			if m.y >= e.least(d, m.t)-minStep {
				last = m.t
				continue
			}
			if i >= len(t.fresh[d])-t.config.layers() {
				from = min(from, last)
			}
			break
		}
	}
	return from
}

// broken reports whether the fit of the whole window, in t.spare, shows that the clock did not go on as before; floor is the expected
// margin. A step lowers the bounds of one direction and raises those of the other, so both the time before it and the time after it have a
// wider margin than the two together. If a path got shorter, only the time before has. An unclear case counts as a step: that costs
// precision for a while, while the other mistake costs the truth.
func (t *Tracker) broken(agree bool, floor float64, violations int, cut int64) bool {
	if agree && (t.spare.margin >= floor-minStep || violations == 0) {
		return false
	}
	// The fresh marks by themselves, from when the step was noticed.
	t.alone.reset(t.latest.middle(), &t.config)
	for d := range t.fresh {
		t.scratchMarks = after(t.scratchMarks[:0], t.fresh[d], cut)
		t.alone.add(d, t.scratchMarks)
	}
	t.alone.solve(t.config.Outliers)
	shorter := t.alone.both() && t.alone.margin < floor-minStep
	together := t.spare.margin >= t.alone.margin-2*t.alone.excess-minStep
	return !agree || !shorter || !together
}

// after appends to dst the marks from a time on. They are of one packet each, because the mean of several may span a step.
func after(dst, marks list, cut int64) list {
	for _, m := range marks {
		if m.t >= cut && m.packets <= 1 {
			dst = append(dst, m)
		}
	}
	return dst
}

// violations looks for fresh marks that are lower than the clock can make them by going on as before. It returns their number and a time
// from which on all marks are after the step, if they show one. For that it skips as many of the first as there may be outliers, and the
// time that packets on their way then took. Without violations it returns the beginning of the interval.
func (t *Tracker) violations() (count int, cut int64) {
	if !t.known {
		return 0, t.latest.from
	}
	t.times = t.times[:0]
	e := t.expect(max(0, t.now.margin-2*t.now.excess))
	deepest := 0.0
	for d := range t.fresh {
		for _, m := range t.fresh[d] {
			if depth := e.least(d, m.t) - m.y; depth > minStep {
				deepest = max(deepest, depth)
				t.times = append(t.times, m.t)
			}
		}
	}
	if count = len(t.times); count <= t.config.Outliers {
		return count, t.latest.from
	}
	slices.Sort(t.times)
	// A packet on its way does no harm if it was too late to be mistaken: only delays shorter than the step do
	// or, if the step is longer than the round trip, those that do not contradict what follows.
	underWay := 2 * min(deepest+t.now.margin, 4*t.now.margin+minStep)
	return count, t.times[t.config.Outliers] + int64(underWay)
}

// step begins a new window with the marks from the cut on, which broken collected. If they have a narrower
// margin than before, the clock may not have run straight since.
func (t *Tracker) step(widest float64, cut int64) {
	if t.known {
		t.before, t.now = t.now, t.before
		t.cut, t.stepped = cut, true
	}
	t.now, t.alone = t.alone, t.now
	t.known = t.now.both() && t.now.margin >= 0
	t.now.short = 2 * max(0, widest-t.now.margin)
	t.forget()
	for d := range t.fresh {
		t.fresh[d] = after(t.fresh[d][:0], t.fresh[d], cut)
	}
	if t.now.margin < 0 {
		t.fresh[there], t.fresh[back] = t.fresh[there][:0], t.fresh[back][:0]
	}
}
