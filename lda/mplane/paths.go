package mplane

import (
	"slices"

	"github.com/hoplag/hoplag/internal/heap"
)

// A pathTree holds every shortest path from one source, including those of equal cost: the routers in the order
// of their distance, each after those through which it is reached.
type pathTree struct {
	routers []Router
	before  []int32 // positions of the last routers but one, one router's after another's
	ends    []int32 // of each router's part of before
}

// into returns the positions of the routers through which one is reached, if it is not the source.
func (t *pathTree) into(at int32) []int32 {
	if at == 0 {
		return nil
	}
	return t.before[t.ends[at-1]:t.ends[at]]
}

// A distance is a router on the frontier of a search.
type distance struct {
	cost   float64
	router Router
}

// Before orders the frontier by cost, then by number.
func (d distance) Before(e distance) bool {
	return d.cost < e.cost || d.cost == e.cost && d.router < e.router
}

// A pathSearch finds shortest paths by Dijkstra's algorithm, from one source after another.
type pathSearch struct {
	network  *Network
	cost     []float64
	position []int32 // in the tree, or unsettled
	frontier heap.Heap[distance]
}

const (
	unsettled = -1
	unseen    = -1
	sameCost  = 1e-12 // the relative difference up to which two costs are equal, for rounding
)

func newPathSearch(n *Network) *pathSearch {
	return &pathSearch{network: n, cost: make([]float64, n.Routers()), position: make([]int32, n.Routers())}
}

// from returns the tree of a source.
func (s *pathSearch) from(source Router) pathTree {
	for r := range s.position {
		s.position[r], s.cost[r] = unsettled, unseen
	}
	var t pathTree
	s.cost[source] = 0
	s.frontier.Push(distance{0, source})
	for len(s.frontier) > 0 {
		d := s.frontier.Pop()
		if s.position[d.router] != unsettled {
			continue
		}
		s.settle(&t, d)
		for _, l := range s.network.links[d.router] {
			if c := d.cost + l.weight; s.cost[l.to] == unseen || c < s.cost[l.to]*(1-sameCost) {
				s.cost[l.to] = c
				s.frontier.Push(distance{c, l.to})
			}
		}
	}
	return t
}

// settle makes a router the next of the tree, behind every settled router through which it can be reached at
// the same cost.
func (s *pathSearch) settle(t *pathTree, d distance) {
	for _, l := range s.network.into[d.router] {
		if at := s.position[l.from]; at != unsettled && s.cost[l.from]+l.weight <= d.cost*(1+sameCost) {
			t.before = append(t.before, at)
		}
	}
	s.position[d.router] = int32(len(t.routers))
	t.routers, t.ends = append(t.routers, d.router), append(t.ends, int32(len(t.before)))
}

// maxPaths is the largest number of equal-cost paths between two routers that are told apart.
const maxPaths = 64

// Paths returns the shortest paths from one router to another, each with both ends, in the order of their
// routers' numbers: at most 64 of equal cost, none if to cannot be reached or equals from.
func (n *Network) Paths(from, to Router) [][]Router {
	if !n.has(from) || !n.has(to) || from == to {
		return nil
	}
	t := newPathSearch(n).from(from)
	at := slices.Index(t.routers, to)
	if at < 0 {
		return nil
	}
	return t.paths(int32(at), func(Router) bool { return true })
}

// paths lists the paths to the router at a position whose inner routers all pass, at most maxPaths, in the
// order of their routers' numbers.
func (t *pathTree) paths(at int32, passes func(Router) bool) (paths [][]Router) {
	var tail []Router
	var walk func(at int32)
	walk = func(at int32) {
		tail = append(tail, t.routers[at])
		defer func() { tail = tail[:len(tail)-1] }()
		if at == 0 {
			path := slices.Clone(tail)
			slices.Reverse(path)
			paths = append(paths, path)
			return
		}
		for _, b := range t.into(at) {
			if len(paths) < maxPaths && (b == 0 || passes(t.routers[b])) {
				walk(b)
			}
		}
	}
	walk(at)
	slices.SortFunc(paths, slices.Compare[[]Router])
	return paths
}
