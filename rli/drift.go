package rli

import "math"

// A drift follows how the base delay changes because one clock runs faster
// than the other. References that found the link idle reveal the base delay
// exactly. The drift is a line through the latest of them, if none is farther
// from it than time stamps are off.
type drift struct {
	times [idlers]int64
	bases [idlers]float64
	n     int // so far

	slope float64 // ns per ns, of the receiver's clock
	since int64   // slope counts from this time
}

const (
	idlers = 32 // a power of two
	// No clock drifts by more than one part in a thousand.
	fastest = 1e-3
)

// at returns how much the base delay has changed at time t.
func (d *drift) at(t int64) float64 { return d.slope * float64(t-d.since) }

// add takes in the base delay of a reference that found the link idle. It
// reports whether it is time for another line.
func (d *drift) add(t int64, base float64) bool {
	d.times[d.n%idlers], d.bases[d.n%idlers] = t, base
	d.n++
	return d.n%4 == 0
}

// line returns the slope and, at time t, the base delay of the least-squares
// line, the time span behind it, and its greatest error.
func (d *drift) line(t int64) (slope, base, span, worst float64) {
	n := min(d.n, idlers)
	var x, y, xx, xy float64
	for i := range n {
		dx := float64(d.times[i] - t)
		x += dx / float64(n)
		y += d.bases[i] / float64(n)
		span = max(span, -dx)
	}
	for i := range n {
		dx := float64(d.times[i]-t) - x
		xx += dx * dx
		xy += dx * (d.bases[i] - y)
	}
	if xx > 0 {
		slope = xy / xx
	}
	for i := range n {
		worst = max(worst, math.Abs(d.bases[i]-y-slope*(float64(d.times[i]-t)-x)))
	}
	return slope, y - slope*x, span, worst
}

// follow takes in the bounds from a reference received at time t, and corrects
// the drift if it has changed.
func (l *link) follow(t int64, b bounds) {
	if !(b.width() <= l.tolerance) || !l.drift.add(t, b.low+b.width()/2) {
		return
	}
	slope, base, span, worst := l.drift.line(t)
	if worst > l.tolerance || math.Abs(slope) > fastest || math.Abs(slope-l.drift.slope)*span <= l.tolerance {
		return
	}
	l.drift.slope, l.drift.since = slope, t
	l.recent, l.before, l.age = bounds{base - l.tolerance/2, base + l.tolerance/2}, unbounded, 0
}
