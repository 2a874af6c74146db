package clock

import (
	"math"
	"slices"
)

// A point is a mark relative to the time of a fit: at x, the offset (or its opposite) is at most y.
type point struct{ x, y float64 }

// A fit is what the marks of a window say at one time, its origin: the line offset + drift·x that keeps the
// greatest margin from the bounds of both directions, and the polygon of all lines that keep a given margin.
type fit struct {
	origin        int64
	hulls         [2][]point // lower convex hulls, by ascending x
	maxDrift      float64
	wander        float64
	drift, offset float64 // the latter at the origin, less the tracker's base
	margin        float64 // distance of the line from each bound
	excess        float64 // likely excess of margin over the true least delay
	short         float64 // how far it is below its earlier value in the window

	points [2][]point // all of them, by ascending x
	rest   []point    // scratch: those not peeled
}

// spacings is the number of steps between the lowest residuals that show how densely they lie above the floor. excessFactor says how far
// below the lowest of them the floor may be, in units of those steps together: for residuals whose number grows as the square of the
// distance from the floor, it is farther once in 40 times (if the number grows in proportion, once in 600). With r of rank 1 and
// 1+spacings, (r₁−floor)/(r₁₊ₛ−floor) is the root of a beta variable, (1, s).
const spacings = 5

var excessFactor = func() float64 {
	share := math.Sqrt(1 - math.Pow(0.025, 1.0/spacings))
	return share / (1 - share)
}()

// reset empties the fit for another origin.
func (f *fit) reset(origin int64, c *Config) {
	*f = fit{origin: origin, maxDrift: c.MaxDrift, wander: c.Wander, hulls: f.hulls, points: f.points, rest: f.rest}
	for d := range f.hulls {
		f.hulls[d], f.points[d] = f.hulls[d][:0], f.points[d][:0]
	}
}

// add takes marks of one direction. Bounds far from the origin are looser by as much as the rate may have wandered.
func (f *fit) add(direction int, marks []mark) {
	for _, m := range marks {
		x := float64(m.t - f.origin)
		f.points[direction] = append(f.points[direction], point{x, m.y + f.wander*math.Abs(x)})
	}
}

// solve finds the line after dropping as many layers of hulls as there may be outliers: a wrong bound that cuts off any line is on one of
// these layers. It reports whether both directions have enough samples and do not contradict each other.
func (f *fit) solve(outliers int) bool {
	for d := range f.hulls {
		slices.SortFunc(f.points[d], byX)
		f.hulls[d] = f.outermost(f.hulls[d], f.points[d], outliers)
	}
	if !f.both() {
		return false
	}
	low, high := -f.maxDrift, f.maxDrift
	for range 64 { // the margin is a concave function of the drift
		f.drift = low + (high-low)/2
		if _, slope := f.gap(f.drift); slope > 0 {
			low = f.drift
		} else {
			high = f.drift
		}
	}
	upper, _ := support(f.hulls[there], f.drift)
	lower, _ := support(f.hulls[back], -f.drift)
	f.offset, f.margin = (upper-lower)/2, (upper+lower)/2
	f.excess = (f.spread(there, f.drift, outliers) + f.spread(back, -f.drift, outliers)) / 2
	return f.margin >= 0
}

// both reports whether there are bounds of both directions.
func (f *fit) both() bool { return len(f.hulls[there]) > 0 && len(f.hulls[back]) > 0 }

// outermost returns the hull of points without its outermost layers, reusing an old hull.
func (f *fit) outermost(hull, points []point, layers int) []point {
	f.rest = append(f.rest[:0], points...)
	rest := f.rest
	for range layers {
		hull, rest = peel(hull[:0], rest, f.maxDrift)
	}
	return lowerHull(hull[:0], rest, f.maxDrift)
}

// spread returns how far below the lowest bounds of one direction, measured from a line, the floor may be that
// more samples would show. What was dropped may be right.
func (f *fit) spread(direction int, slope float64, outliers int) float64 {
	var lowest [MaxOutliers + 1 + spacings]float64
	least := lowest[:outliers+1+spacings]
	for i := range least {
		least[i] = math.Inf(1)
	}
	for _, p := range f.points[direction] {
		r := p.y - slope*p.x
		for i := range least {
			if r < least[i] {
				r, least[i] = least[i], r
			}
		}
	}
	if math.IsInf(least[outliers+spacings], 1) {
		return math.Inf(1)
	}
	return max(excessFactor*(least[outliers+spacings]-least[outliers]), least[outliers]-least[0])
}

// gap returns twice the margin of the best line with a given drift, and how it grows with the drift.
func (f *fit) gap(drift float64) (gap, slope float64) {
	upper, x := support(f.hulls[there], drift)
	lower, z := support(f.hulls[back], -drift)
	return upper + lower, z - x
}

// drifts returns the range of drifts of the lines that keep the margin.
func (f *fit) drifts(margin float64) (low, high float64) {
	return f.edge(margin, -f.maxDrift), f.edge(margin, f.maxDrift)
}

// edge returns the farthest such drift on one side. The gap is concave: tangents from outside reach 2·margin outside it, or there.
func (f *fit) edge(margin, outside float64) float64 {
	for {
		gap, slope := f.gap(outside)
		next := outside + (2*margin-gap)/slope
		if gap >= 2*margin || !(math.Abs(next-f.drift) < math.Abs(outside-f.drift)) {
			return outside
		}
		outside = next
	}
}

// offsets returns the range of values at x of the lines that keep the margin, less the tracker's base.
func (f *fit) offsets(margin, x float64) (low, high float64) {
	from, to := f.drifts(margin)
	return margin - highest(f.hulls[back], x, -to, -from), highest(f.hulls[there], x, from, to) - margin
}
