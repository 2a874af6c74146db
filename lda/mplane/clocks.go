package mplane

import (
	"cmp"
	"math"
	"slices"
)

// A course is how far the clock of every router is ahead, interval by
// interval, as all segments between routers tell together. A clock's step
// shows in every segment that ends or begins there, in opposite directions; a
// slow segment shows in itself alone. What explains more with less is
// believed: the least sum of absolute residuals.
type course struct {
	ahead    [][]float64 // ns, by interval since the first, by router
	first    uint64      // interval
	baseline map[SegmentID]baseline
}

// A baseline is a segment's usual mean delay without clocks, and how far from
// it means usually are.
type baseline struct{ mean, spread float64 }

// An edge says that the clock of router to is ahead of that of router from by
// difference, in ns, give or take scale.
type edge struct {
	from, to   Router
	difference float64
	scale      float64
}

const (
	reweightings = 30 // of the least-squares problems whose limit is least absolute residuals
	sweeps       = 20 // over all routers, of each problem
)

// solveClocks returns for every router by how much its clock is ahead so that
// the residuals of the edges, each over its scale, have the least absolute
// sum: by least squares, reweighted, each solved router by router. Half-way
// what was expected joins in: a clock that is about as far ahead as that,
// within the scale, stays so, and one that is not was stepped, and is free.
func solveClocks(edges []edge, expected []float64, scale float64) []float64 {
	x := slices.Clone(expected)
	around := make([][]int32, len(x))
	for i, e := range edges {
		around[e.from] = append(around[e.from], int32(i))
		around[e.to] = append(around[e.to], int32(i))
	}
	weights := make([]float64, len(edges))
	prior := make([]float64, len(x))
	for round := range reweightings {
		for i, e := range edges {
			residual := math.Abs(e.difference - x[e.to] + x[e.from])
			weights[i] = 1 / (e.scale * max(residual, e.scale*1e-3))
		}
		for r := range x {
			prior[r] = 1e-30 // next to nothing: routers that no edge reaches stay as they were
			if off := x[r] - expected[r]; round >= reweightings/2 {
				prior[r] = 1 / (scale*scale + off*off)
			}
		}
		for range sweeps {
			sweep(x, edges, weights, around, expected, prior)
		}
	}
	return x
}

// sweep solves each router's clock with all others as they are.
func sweep(x []float64, edges []edge, weights []float64, around [][]int32, expected, prior []float64) {
	for r, is := range around {
		sum, total := prior[r]*expected[r], prior[r]
		for _, i := range is {
			e := &edges[i]
			if e.to == Router(r) {
				sum += weights[i] * (x[e.from] + e.difference)
			} else {
				sum += weights[i] * (x[e.to] - e.difference)
			}
			total += weights[i]
		}
		x[r] = sum / total
	}
}

// follow solves the clocks of all intervals up to one, which were not yet.
func (s *Station) follow(interval uint64) {
	c := &s.course
	if len(c.ahead) == 0 || interval > c.first+uint64(len(c.ahead)+s.config.History) {
		s.begin(interval) // for the first time, or after longer than anything is kept
	}
	for c.first+uint64(len(c.ahead)) <= interval {
		s.advance(c.first + uint64(len(c.ahead)))
	}
	if over := len(c.ahead) - s.config.History; over > 0 {
		c.ahead = slices.Delete(c.ahead, 0, over)
		c.first += uint64(over)
	}
}

// begin finds the first clocks: half of what the two directions between a pair
// of routers differ is taken for their offset.
func (s *Station) begin(interval uint64) {
	c := &s.course
	c.first = s.earliest(interval)
	var edges []edge
	for id, g := range s.segments {
		if id.Internal() {
			continue
		}
		v, back := g.at(c.first), s.opposite(id).at(c.first)
		if v != nil && back != nil {
			edges = append(edges, edge{id.From, id.To, (v.Delay.Mean - back.Delay.Mean) / 2, s.scale(v, 0)})
		}
	}
	expected := make([]float64, s.plans[0].network.Routers())
	c.ahead = [][]float64{solveClocks(sorted(edges), expected, 1e12)}
	c.baseline = map[SegmentID]baseline{}
	s.settle(c.first)
}

// opposite is the segment back, or nil.
func (s *Station) opposite(id SegmentID) *segment {
	for _, p := range s.plans {
		if back, ok := p.opposite(id); ok {
			return s.segments[back]
		}
	}
	return nil
}

// earliest is the first interval kept of which anything is known.
func (s *Station) earliest(interval uint64) uint64 {
	first := interval
	for _, g := range s.segments {
		for i := range g.values {
			if v := &g.values[i]; v.known && v.interval < first && v.interval+uint64(s.config.History) > interval {
				first = v.interval
			}
		}
	}
	return first
}

// advance solves one interval after the last.
func (s *Station) advance(interval uint64) {
	c := &s.course
	expected := slices.Clone(c.ahead[len(c.ahead)-1])
	if n := len(c.ahead); n > 1 { // a clock that drifts goes on drifting
		for r, before := range c.ahead[n-2] {
			expected[r] += expected[r] - before
		}
	}
	var edges []edge
	for id, base := range c.baseline {
		if v := s.segments[id].at(interval); v != nil {
			edges = append(edges, edge{id.From, id.To, v.Delay.Mean - base.mean, s.scale(v, base.spread)})
		}
	}
	c.ahead = append(c.ahead, solveClocks(sorted(edges), expected, s.config.Wander))
	s.settle(interval)
}

// sorted puts edges into an order of their own, that of a map being another
// each time.
func sorted(edges []edge) []edge {
	slices.SortFunc(edges, func(a, b edge) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to), cmp.Compare(a.difference, b.difference))
	})
	return edges
}

// scale is how well a measurement between two clocks is known to be as usual.
func (s *Station) scale(v *value, spread float64) float64 {
	return math.Hypot(math.Hypot(v.Error, spread), s.config.Wander/10)
}

// settle brings each segment's baseline, its usual delay without clocks, to an
// interval: the median of what is kept.
func (s *Station) settle(interval uint64) {
	for id, g := range s.segments {
		if id.Internal() {
			continue
		}
		if usual := s.past(g, interval+1); len(usual) > 0 {
			mean, spread := middle(usual)
			s.course.baseline[id] = baseline{mean, spread}
		}
	}
}

// past returns a segment's mean delays before an interval, clocks taken off.
func (s *Station) past(g *segment, interval uint64) []float64 {
	var means []float64
	for i := range g.values {
		v := &g.values[i]
		if v.known && !v.disputed && v.interval < interval && v.interval+uint64(s.config.History) >= interval {
			if offset, ok := s.course.between(g.id, v.interval); ok {
				means = append(means, v.Delay.Mean-offset)
			}
		}
	}
	return means
}

// between is by how much the clock at a segment's end was ahead of that at its
// beginning, and whether that interval was solved. Inside a router there is
// one clock.
func (c *course) between(id SegmentID, interval uint64) (float64, bool) {
	if id.Internal() {
		return 0, true
	}
	if interval < c.first || interval-c.first >= uint64(len(c.ahead)) {
		return 0, false
	}
	at := c.ahead[interval-c.first]
	return at[id.To] - at[id.From], true
}

// middle returns the median of some numbers, of which there is at least one,
// and their spread about it: what the median of absolute deviations makes of
// normal values' standard deviation. It sorts them.
func middle(xs []float64) (centre, spread float64) {
	centre = median(xs)
	deviations := make([]float64, len(xs))
	for i, x := range xs {
		deviations[i] = math.Abs(x - centre)
	}
	const toDeviation = 1.4826
	return centre, toDeviation * median(deviations)
}

// median is the middle of some numbers, of which there is at least one. It
// sorts them.
func median(xs []float64) float64 {
	slices.Sort(xs)
	half := len(xs) / 2
	if len(xs)%2 == 0 {
		return (xs[half-1] + xs[half]) / 2
	}
	return xs[half]
}
