package clock

import (
	"cmp"
	"sort"
)

func byX(p, q point) int { return cmp.Or(cmp.Compare(p.x, q.x), cmp.Compare(p.y, q.y)) }

// lowerHull appends to dst the vertices of the lower convex hull of points, which are sorted by x, on which a
// line with a slope within ±steepest can rest.
func lowerHull(dst, points []point, steepest float64) []point {
	first := len(dst)
	for _, p := range points {
		for n := len(dst); n-first >= 2 && !turnsLeft(dst[n-2], dst[n-1], p); n-- {
			dst = dst[:n-1]
		}
		if n := len(dst); n > first && dst[n-1].x == p.x {
			continue // sorted: the first of one x is the lowest
		}
		dst = append(dst, p)
	}
	// At the ends the hull is steeper than any line in question.
	for n := len(dst); n-first >= 2 && dst[n-1].y-dst[n-2].y > steepest*(dst[n-1].x-dst[n-2].x); n-- {
		dst = dst[:n-1]
	}
	skip := first
	for skip+1 < len(dst) && dst[skip].y-dst[skip+1].y > steepest*(dst[skip+1].x-dst[skip].x) {
		skip++
	}
	return append(dst[:first], dst[skip:]...)
}

// turnsLeft reports whether r is above the line through p and q.
func turnsLeft(p, q, r point) bool {
	return (q.x-p.x)*(r.y-p.y) > (r.x-p.x)*(q.y-p.y)
}

// peel appends the hull of points to dst and returns, in place, the points that are not on it.
func peel(dst, points []point, steepest float64) (hull, rest []point) {
	hull = lowerHull(dst, points, steepest)
	on := hull[len(dst):]
	rest = points[:0]
	for _, p := range points {
		if len(on) > 0 && on[0] == p {
			on = on[1:]
			continue
		}
		rest = append(rest, p)
	}
	return hull, rest
}

// support returns how far the line with a given slope through (0, 0) can be raised until it rests on the hull,
// and the abscissa of the vertex on which it rests.
func support(hull []point, slope float64) (height, x float64) {
	// The edges' slopes ascend; the vertex is where they exceed the line's.
	i := sort.Search(len(hull)-1, func(i int) bool {
		return hull[i+1].y-hull[i].y >= slope*(hull[i+1].x-hull[i].x)
	})
	return hull[i].y - slope*hull[i].x, hull[i].x
}

// highest returns the greatest value at x of the lines below the hull with slopes from one to another.
func highest(hull []point, x, from, to float64) float64 {
	slope := from
	if i := sort.Search(len(hull), func(i int) bool { return hull[i].x > x }); i == len(hull) {
		slope = to
	} else if i > 0 {
		slope = min(max((hull[i].y-hull[i-1].y)/(hull[i].x-hull[i-1].x), from), to)
	}
	height, _ := support(hull, slope)
	return height + slope*x
}
