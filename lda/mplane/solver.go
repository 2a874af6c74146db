package mplane

import (
	"math"
	"slices"
)

// An edge says that the clock of router to is ahead of that of router from by
// difference, in ns, give or take scale.
type edge struct {
	from, to   Router
	difference float64
	scale      float64
}

const (
	reweightings = 20 // of the least-squares problems that approach the least surprise
	sweeps       = 20 // over all routers, for each problem
)

// A clockSolver solves for the clocks of one interval.
type clockSolver struct {
	edges    []edge
	around   [][]int32 // edges by router
	expected []float64
	scales   []float64 // of what is expected
	x        []float64
}

func newClockSolver(edges []edge, expected, scales []float64) *clockSolver {
	s := &clockSolver{edges: edges, around: make([][]int32, len(expected)), expected: expected, scales: scales, x: slices.Clone(expected)}
	for i, e := range edges {
		s.around[e.from] = append(s.around[e.from], int32(i))
		s.around[e.to] = append(s.around[e.to], int32(i))
	}
	return s
}

// surprise returns the weight of a clock that is off by so many times its
// scale: how unlikely that is by the Cauchy distribution. A segment counts at
// most slow: a segment may become slow, however well its usual delay is known.
func surprise(off float64) float64 { return math.Log1p(off * off) }

const slow = 10

// spread finds the clocks when nothing is expected of them: those with the
// least sum of absolute residuals.
func (s *clockSolver) spread() {
	for range 2 * reweightings {
		s.solve(func(off, scale float64) float64 { return 1 / (scale * max(math.Abs(off), scale*1e-3)) }, 1e-30)
	}
}

// jump sets each clock to what surprises least with all others as they are:
// what was expected, or what one of its segments says. It finds a clock that
// was set; settle finds what everything together says.
func (s *clockSolver) jump() {
	for range 3 {
		for r, is := range s.around {
			best, least := s.expected[r], math.Inf(1)
			try := func(x float64) {
				if cost := s.cost(Router(r), x); cost < least {
					best, least = x, cost
				}
			}
			try(s.expected[r])
			try(s.x[r])
			for _, i := range is {
				try(s.says(i, Router(r)))
			}
			s.x[r] = best
		}
	}
}

// settle moves the clocks to where everything together surprises least nearby.
func (s *clockSolver) settle() []float64 {
	for range reweightings {
		s.solve(func(off, scale float64) float64 { return 1 / (scale*scale + off*off) }, 1)
	}
	return s.x
}

// best returns the less surprising of two solutions. One starts from what is
// expected, which a single clock may leave. The other starts from where all
// segments together put the clocks, which finds clocks that move together, as
// before their drift is known.
func (s *clockSolver) best() []float64 {
	s.jump()
	one := slices.Clone(s.settle())
	cost := s.total()
	copy(s.x, s.expected)
	s.spread()
	s.jump()
	if s.settle(); s.total() < cost {
		return s.x
	}
	return one
}

// total returns how surprising all clocks and segments together are.
func (s *clockSolver) total() float64 {
	sum := 0.0
	for r, x := range s.x {
		sum += surprise((x - s.expected[r]) / s.scales[r])
	}
	for _, e := range s.edges {
		sum += min(surprise((e.difference-s.x[e.to]+s.x[e.from])/e.scale), slow)
	}
	return sum
}

// says returns where a segment puts the clock at one of its ends.
func (s *clockSolver) says(i int32, r Router) float64 {
	e := &s.edges[i]
	if e.to == r {
		return s.x[e.from] + e.difference
	}
	return s.x[e.to] - e.difference
}

// cost returns how surprising a clock would be at x.
func (s *clockSolver) cost(r Router, x float64) float64 {
	cost := surprise((x - s.expected[r]) / s.scales[r])
	for _, i := range s.around[r] {
		cost += min(surprise((x-s.says(i, r))/s.edges[i].scale), slow)
	}
	return cost
}

// solve sets each clock to the weighted mean of what its segments say and of
// what was expected. The weight of the latter is multiplied by prior.
func (s *clockSolver) solve(weight func(off, scale float64) float64, prior float64) {
	weights := make([]float64, len(s.edges))
	for i, e := range s.edges {
		weights[i] = weight(e.difference-s.x[e.to]+s.x[e.from], e.scale)
	}
	expect := make([]float64, len(s.x))
	for r := range expect {
		expect[r] = prior * weight(s.x[r]-s.expected[r], s.scales[r])
	}
	for range sweeps {
		for r, is := range s.around {
			sum, total := expect[r]*s.expected[r], expect[r]
			for _, i := range is {
				sum += weights[i] * s.says(i, Router(r))
				total += weights[i]
			}
			s.x[r] = sum / total
		}
	}
}

// largest returns since when clocks are known: since interval, for those in
// the largest part of the network that segments tie together.
func (s *clockSolver) largest(interval uint64) []uint64 {
	var best []uint64
	most := 0
	tied := make([]uint64, len(s.x))
	for r := range s.x {
		if tied[r] > 0 {
			continue
		}
		since := make([]uint64, len(s.x))
		since[r] = interval + 1
		if count := s.tie(since, interval); count > most {
			best, most = since, count
		}
		for i, known := range since {
			tied[i] = max(tied[i], known)
		}
	}
	return best
}

// tie marks as known, since interval, the clocks that segments tie to known
// ones, and returns how many there are.
func (s *clockSolver) tie(since []uint64, interval uint64) (count int) {
	var queue []Router
	for r, known := range since {
		if known > 0 {
			queue = append(queue, Router(r))
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		count++
		for _, i := range s.around[queue[0]] {
			for _, r := range [2]Router{s.edges[i].from, s.edges[i].to} {
				if since[r] == 0 {
					since[r] = interval + 1
					queue = append(queue, r)
				}
			}
		}
	}
	return count
}
