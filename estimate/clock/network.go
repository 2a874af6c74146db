package clock

import (
	"fmt"
	"math"

	"github.com/hoplag/hoplag/estimate"
)

// A Link is the reading of the clock of point To by point From. All readings of
// a network should be of the same time; a difference adds to the offsets only
// in proportion to the drift.
type Link struct {
	From, To int
	Reading  Reading
}

// A Network is what the readings of many pairs of points say together.
type Network struct {
	// Offsets and Drifts are those of every point relative to point 0. Around
	// every loop they add up to 0. They differ from the links' readings as little
	// as possible, in proportion to the links' certain intervals: a path is
	// asymmetric by some share of its round trip, and loops average that out.
	Offsets, Drifts []float64

	// Certain holds the offset of every point, from all links together, and is
	// often shorter than that of the direct link. It is the whole line if the
	// links' certain intervals contradict each other.
	Certain []estimate.Interval

	// Disagreements say, for every link, how far its offset differs from what the
	// other links say of its two points, or 0 if they say nothing.
	Disagreements []float64

	// Suspect is the link without which the others agree. It is -1 if there is
	// none, if the links agree within their likely intervals, or if several links
	// would do: in a lone triangle any of the three may be wrong.
	Suspect int

	// Contradiction says that no offsets are within all certain intervals: the
	// samples of at least one link are wrong, or its clock stepped.
	Contradiction bool
}

// SolveNetwork combines the readings of pairs of points, which are numbered
// from 0. It takes time in proportion to the cube of the number of points.
//
// The error wraps [estimate.ErrConfig] if a link names a point that does not
// exist or has a reading without an offset, and [estimate.ErrNoSamples] if no
// links lead from point 0 to some other point.
func SolveNetwork(points int, links []Link) (Network, error) {
	if points < 1 {
		return Network{}, estimate.Invalid("clock", "points", points, "at least 1")
	}
	for i, l := range links {
		if l.From < 0 || l.From >= points || l.To < 0 || l.To >= points || l.From == l.To {
			return Network{}, estimate.Invalid("clock", fmt.Sprintf("link %d", i), fmt.Sprintf("from %d to %d", l.From, l.To),
				fmt.Sprintf("two different points from 0 to %d", points-1))
		}
		if width := l.sigma(); math.IsInf(width, 0) || math.IsNaN(width) || math.IsNaN(l.Reading.Offset) {
			return Network{}, estimate.Invalid("clock", fmt.Sprintf("link %d", i), "without an offset", "a reading of both directions")
		}
	}
	inverse, missing := invert(points, links)
	if missing > 0 {
		return Network{}, fmt.Errorf("clock: %w: no links lead from point 0 to point %d", estimate.ErrNoSamples, missing)
	}
	n := Network{Suspect: -1}
	n.Offsets = inverse.solve(links, func(r *Reading) float64 { return r.Offset })
	n.Drifts = inverse.solve(links, func(r *Reading) float64 { return r.Drift })
	n.Certain, n.Contradiction = tighten(points, links, func(r *Reading) estimate.Interval { return r.Certain })
	n.blame(points, links, inverse)
	return n, nil
}

// sigma returns the standard error of a link's offset, relative to those of
// others.
func (l *Link) sigma() float64 {
	return max(1, (l.Reading.Certain.High-l.Reading.Certain.Low)/2)
}

// A grounded matrix is the inverse of the weighted graph's Laplacian without
// point 0: entry (i, j) is the covariance of the offsets of points i+1 and j+1.
type grounded [][]float64

// at returns the covariance of two points' offsets.
func (g grounded) at(i, j int) float64 {
	if i == 0 || j == 0 {
		return 0
	}
	return g[i-1][j-1]
}

// invert returns the covariances, or the first point that no link reaches. It
// uses Gauss–Jordan elimination, without pivoting because the matrix is
// positive definite.
func invert(points int, links []Link) (g grounded, missing int) {
	if missing = unreached(points, links); missing > 0 {
		return nil, missing
	}
	n := points - 1
	left, right := square(n), square(n)
	for i := range right {
		right[i][i] = 1
	}
	for i := range links {
		l := &links[i]
		weight := 1 / (l.sigma() * l.sigma())
		for _, p := range [2]int{l.From, l.To} {
			if p > 0 {
				left[p-1][p-1] += weight
			}
		}
		if l.From > 0 && l.To > 0 {
			left[l.From-1][l.To-1] -= weight
			left[l.To-1][l.From-1] -= weight
		}
	}
	for k := range left {
		pivot := left[k][k]
		for j := range left {
			left[k][j] /= pivot
			right[k][j] /= pivot
		}
		for i := range left {
			factor := left[i][k]
			if i == k || factor == 0 {
				continue
			}
			for j := range left {
				left[i][j] -= factor * left[k][j]
				right[i][j] -= factor * right[k][j]
			}
		}
	}
	return right, 0
}

func square(n int) [][]float64 {
	m := make([][]float64, n)
	for i := range m {
		m[i] = make([]float64, n)
	}
	return m
}

// unreached returns the first point that no links lead to from point 0, or 0.
func unreached(points int, links []Link) int {
	reached := make([]bool, points)
	reached[0] = true
	for more := true; more; {
		more = false
		for _, l := range links {
			if reached[l.From] != reached[l.To] {
				reached[l.From], reached[l.To], more = true, true, true
			}
		}
	}
	for p, ok := range reached {
		if !ok {
			return p
		}
	}
	return 0
}

// solve returns the least-squares values of the points relative to point 0,
// given the differences that the links measured.
func (g grounded) solve(links []Link, value func(*Reading) float64) []float64 {
	pull := make([]float64, len(g)+1)
	for i := range links {
		l := &links[i]
		weighted := value(&l.Reading) / (l.sigma() * l.sigma())
		pull[l.To] += weighted
		pull[l.From] -= weighted
	}
	x := make([]float64, len(g)+1)
	for i := range g {
		for j := range g {
			x[i+1] += g[i][j] * pull[j+1]
		}
	}
	return x
}

// tighten returns what the intervals of all links leave of every point's
// offset, by Bellman and Ford's shortest paths, and whether they contradict
// each other.
func tighten(points int, links []Link, of func(*Reading) estimate.Interval) ([]estimate.Interval, bool) {
	all := make([]estimate.Interval, points)
	for i := range all {
		all[i] = estimate.Interval{Low: math.Inf(-1), High: math.Inf(1), Confidence: 1}
	}
	all[0].Low, all[0].High = 0, 0
	for range points + 1 {
		changed := false
		for i := range links {
			l := &links[i]
			d, from, to := of(&l.Reading), &all[l.From], &all[l.To]
			changed = narrow(to, from.Low+d.Low, from.High+d.High) || changed
			changed = narrow(from, to.Low-d.High, to.High-d.Low) || changed
		}
		if !changed {
			return all, false
		}
	}
	for i := range all {
		all[i] = anywhere
	}
	return all, true
}

// narrow reports whether an interval got shorter by more than rounding.
func narrow(i *estimate.Interval, low, high float64) bool {
	const rounding = 1e-3 // ns
	changed := low > i.Low+rounding || high < i.High-rounding
	i.Low, i.High = max(i.Low, low), min(i.High, high)
	return changed
}

// blame fills in Disagreements and Suspect. Removing a link lowers the sum of
// squared residuals by the square of its own disagreement, over the variance
// of that.
func (n *Network) blame(points int, links []Link, g grounded) {
	n.Disagreements = make([]float64, len(links))
	total, most, second := 0.0, 0.0, 0.0
	worst := -1
	for i := range links {
		l := &links[i]
		variance := l.sigma() * l.sigma()
		known := g.at(l.From, l.From) + g.at(l.To, l.To) - 2*g.at(l.From, l.To)
		residual := l.Reading.Offset - (n.Offsets[l.To] - n.Offsets[l.From])
		total += residual * residual / variance
		left := 1 - known/variance // 0 if the link is the only way
		if left < 1e-9 {
			continue
		}
		n.Disagreements[i] = residual / left
		drop := residual * residual / variance / left
		switch {
		case drop > most:
			most, second, worst = drop, most, i
		case drop > second:
			second = drop
		}
	}
	if _, disagree := tighten(points, links, func(r *Reading) estimate.Interval { return r.Likely }); !disagree {
		return
	}
	if most >= 0.75*total && second <= 0.75*most {
		n.Suspect = worst
	}
}
