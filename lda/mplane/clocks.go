package mplane

import (
	"cmp"
	"math"
	"slices"
)

// A course says how far the clock of every router is ahead, interval by
// interval, according to all segments between routers together. A clock's step
// shows in every segment that ends or begins there, in opposite directions; a
// slow segment shows only in itself. The Station believes the explanation with
// the fewest surprises: however far off a surprise is, it counts little more
// than once.
type course struct {
	ahead    [][]float64               // ns, by interval since the first, by router
	since    []uint64                  // when a router's clock became known: the interval plus 1, or 0
	first    uint64                    // interval
	baseline map[SegmentID][2]baseline // by means, and by readings
}

// A baseline is what a segment usually says about clocks when they agree: its
// mean delay, or the error of a reading of its monitors, because no reading
// sees whether both directions take equally long. spread is the usual distance
// from it.
type baseline struct {
	mean, spread float64
	intervals    int // number of intervals behind it
}

// follow solves the clocks of all intervals up to this one that are not solved
// yet.
func (s *Station) follow(interval uint64) {
	c := &s.course
	if len(c.ahead) == 0 || interval > c.first+uint64(len(c.ahead)+s.config.History) {
		s.begin(interval) // the first time, or after longer than anything is kept
	}
	for c.first+uint64(len(c.ahead)) <= interval {
		s.advance(c.first + uint64(len(c.ahead)))
	}
	if over := len(c.ahead) - s.config.History; over > 0 {
		c.ahead = slices.Delete(c.ahead, 0, over)
		c.first += uint64(over)
	}
}

// begin finds the first clocks.
func (s *Station) begin(interval uint64) {
	c := &s.course
	c.first = s.earliest(interval)
	c.baseline = map[SegmentID][2]baseline{}
	expected := make([]float64, s.plans[0].network.Routers())
	c.since = make([]uint64, len(expected))
	solver := newClockSolver(s.edges(c.first), expected, s.scales(c.first))
	solver.spread()
	c.ahead = [][]float64{solver.settle()}
	c.since = solver.largest(c.first)
	s.settle(c.first)
}

// scales returns how well each clock's course is known before an interval: not
// at all until segments tie it to others, and without its drift for some
// intervals after that.
func (s *Station) scales(interval uint64) []float64 {
	const (
		unknown = 1e12
		drift   = 1e-4 // of poor clocks
	)
	scales := make([]float64, len(s.course.since))
	for r, since := range s.course.since {
		switch {
		case since == 0:
			scales[r] = unknown
		case interval+1-since < MinHistory:
			scales[r] = drift * float64(s.config.Length)
		default:
			scales[r] = s.config.Wander
		}
	}
	return scales
}

// edges returns what all segments say about the clocks in an interval. A
// segment without a baseline is taken at its word: the reading, or half of the
// difference between the two directions.
func (s *Station) edges(interval uint64) []edge {
	var edges []edge
	for id, g := range s.segments {
		v := g.at(interval)
		if v == nil || id.Internal() {
			continue
		}
		base := s.course.baseline[id][v.kind()]
		e := edge{id.From, id.To, v.tells() - base.mean, s.scale(v, base)}
		if base.intervals == 0 && v.kind() == byMean {
			back := s.opposite(id).at(interval)
			if back == nil {
				continue
			}
			e.difference = (v.Delay.Mean - back.Delay.Mean) / 2
		}
		edges = append(edges, e)
	}
	slices.SortFunc(edges, func(a, b edge) int { // the order of a map differs each time
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to), cmp.Compare(a.difference, b.difference))
	})
	return edges
}

// opposite returns the segment back, or nil.
func (s *Station) opposite(id SegmentID) *segment {
	for _, p := range s.plans {
		if back, ok := p.Opposite(id); ok {
			return s.segments[back]
		}
	}
	return nil
}

// earliest returns the first interval kept about which anything is known.
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
	solver := newClockSolver(s.edges(interval), c.expected(), s.scales(interval))
	c.ahead = append(c.ahead, solver.best())
	solver.tie(c.since, interval)
	s.settle(interval)
}

// expected returns where the clocks should be in the next interval: on from
// the last one by the median drift of the latest ones, so that a step does not
// count as drift.
func (c *course) expected() []float64 {
	last := len(c.ahead) - 1
	expected := slices.Clone(c.ahead[last])
	recent := c.ahead[max(0, last-8):]
	if len(recent) < 2 {
		return expected
	}
	drifts := make([]float64, len(recent)-1)
	for r := range expected {
		for k := range drifts {
			drifts[k] = recent[k+1][r] - recent[k][r]
		}
		expected[r] += median(drifts)
	}
	return expected
}

// The kinds of statements that a measurement makes about the clocks at its
// ends.
const (
	byMean    = 0
	byReading = 1
)

// kind returns byReading if the monitors follow each other's clocks.
func (v *value) kind() int {
	if v.AheadError > 0 {
		return byReading
	}
	return byMean
}

// tells returns what a measurement says about the clocks at its ends.
func (v *value) tells() float64 {
	if v.kind() == byReading {
		return v.Ahead
	}
	return v.Delay.Mean
}

// scale returns how close a measurement's statement is expected to be to the
// usual one. Until enough intervals show how means vary, it is no better than
// the measurement's packets allow.
func (s *Station) scale(v *value, b baseline) float64 {
	chance := v.Error
	if v.kind() == byReading {
		chance = v.AheadError
	} else if b.intervals < MinHistory {
		b.spread = v.Delay.StdDev
	}
	return math.Hypot(math.Hypot(chance, b.spread), s.config.Wander/10)
}

// settle updates each segment's baseline, its usual delay without clocks, to
// an interval: the median of what is kept.
func (s *Station) settle(interval uint64) {
	for id, g := range s.segments {
		if id.Internal() {
			continue
		}
		var bases [2]baseline
		for kind, usual := range s.past(g, interval+1) {
			if len(usual) > 0 {
				mean, spread := middle(usual)
				bases[kind] = baseline{mean, spread, len(usual)}
			}
		}
		s.course.baseline[id] = bases
	}
}

// past returns what a segment said before an interval, with clocks subtracted,
// by kind.
func (s *Station) past(g *segment, interval uint64) [2][]float64 {
	var told [2][]float64
	for i := range g.values {
		v := &g.values[i]
		if v.known && !v.disputed && v.interval < interval && v.interval+uint64(s.config.History) >= interval {
			if offset, ok := s.course.between(g.id, v.interval); ok {
				told[v.kind()] = append(told[v.kind()], v.tells()-offset)
			}
		}
	}
	return told
}

// between returns how far the clock at a segment's end was ahead of the one at
// its beginning, and whether that interval was solved. Inside a router there
// is one clock.
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
