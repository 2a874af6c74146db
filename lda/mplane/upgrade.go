package mplane

import (
	"context"
	"fmt"
	"math"
	"slices"
)

// An UpgradeDemand says what to plan.
type UpgradeDemand struct {
	Count    int      // number of routers to upgrade
	Upgraded []Router // those already upgraded

	// ByPaths is Algorithm 1 of section VI: it chooses, each time, the router on the most probed paths.
	// Otherwise it chooses the one that removes the most hops from the probes; [UpgradePlan.Bound] says how
	// close to the best choice that is.
	ByPaths bool
}

// A Coverage says how much probing is left, and how finely faults are located, after some routers are upgraded.
// A probe runs along each shortest path between two routers that passes no upgraded one, in each direction and
// on each equal-cost path.
type Coverage struct {
	Router Router // that was upgraded last, in a plan's steps

	Probes int64 // probed paths
	Hops   int64 // of all probes together: the probe hop count of section VI-A

	// Longest is the number of hops in the longest probed segment, as Hops/Probes is in a typical one: how
	// precisely a fault is located (Fig. 9b).
	Longest int
}

// An UpgradePlan lists routers in the order in which to upgrade them.
type UpgradePlan struct {
	Before Coverage
	Steps  []Coverage // after each upgrade
	Bound  int64      // of the probe hop count, from below, for any choice of equally many routers
}

// PlanUpgrades chooses which routers to upgrade, in a few seconds for a map of 1,000 routers. The error wraps
// [estimate.ErrConfig], or is that of ctx.
func (n *Network) PlanUpgrades(ctx context.Context, d UpgradeDemand) (UpgradePlan, error) {
	if want := n.Routers() - len(d.Upgraded); d.Count < 0 || d.Count > want {
		return UpgradePlan{}, invalid("Count", d.Count, fmt.Sprintf("0 to %d, as many as are not upgraded", want))
	}
	upgraded, err := n.set("Upgraded", d.Upgraded)
	if err != nil {
		return UpgradePlan{}, err
	}
	s := &upgradeSearch{upgraded: upgraded, counts: counts{gains: make([]probes, n.Routers())}}
	for search, r := newPathSearch(n), Router(0); int(r) < n.Routers() && ctx.Err() == nil; r++ {
		s.trees = append(s.trees, search.from(r))
	}
	s.recount(ctx)
	plan := UpgradePlan{Before: s.coverage(), Bound: s.bound(d.Count)}
	for range d.Count {
		r := s.choose(d.ByPaths)
		s.upgraded[r] = true
		if s.recount(ctx); ctx.Err() != nil {
			break
		}
		step := s.coverage()
		step.Router = r
		plan.Steps = append(plan.Steps, step)
		plan.Bound = max(plan.Bound, s.bound(d.Count))
	}
	return plan, ctx.Err()
}

// set returns which routers are listed.
func (n *Network) set(field string, routers []Router) ([]bool, error) {
	in := make([]bool, n.Routers())
	for _, r := range routers {
		if !n.has(r) || in[r] {
			return nil, invalid(field, routers, fmt.Sprintf("different routers from 0 to %d", n.Routers()-1))
		}
		in[r] = true
	}
	return in, nil
}

// An upgradeSearch keeps every source's paths and, for every router, what upgrading it would gain. The gain of
// a set of routers is the weight of the paths that they cut, and so it is submodular: a greedy choice is within
// 1−1/e of the best, and the best gains of single routers bound what any set adds.
type upgradeSearch struct {
	upgraded []bool
	trees    []pathTree // by source
	counts
}

// probes counts paths and their hops.
type probes struct{ paths, hops int64 }

// maxCount keeps numbers of paths and hops from overflowing: a map with more equal-cost paths counts as if it
// had this many.
const maxCount = math.MaxInt64 >> 24

func (p *probes) add(paths, hops int64) {
	p.paths, p.hops = min(p.paths+paths, maxCount), min(p.hops+hops, maxCount)
}

// counts are over all sources.
type counts struct {
	total   probes
	direct  int64    // paths of one link: no router is inside them
	gains   []probes // by router, what upgrading it would save
	longest int32    // hops of a path

	to, from []probes // for one source, by position: the paths to there, and those on from there
	hops     []int32  // of the longest path to there
}

// recount counts all paths.
func (s *upgradeSearch) recount(ctx context.Context) {
	s.total, s.direct, s.longest = probes{}, 0, 0
	clear(s.gains)
	for i := range s.trees {
		if ctx.Err() == nil {
			s.count(&s.trees[i], s.upgraded)
		}
	}
}

// count counts the paths of a source that no upgraded router cuts and, for every router on them, what upgrading
// it would gain, as J. Brandes counts shortest paths: once along the tree and once back.
func (c *counts) count(t *pathTree, upgraded []bool) {
	n := len(t.routers)
	c.to, c.from = append(c.to[:0], make([]probes, n)...), append(c.from[:0], make([]probes, n)...)
	c.hops = append(c.hops[:0], make([]int32, n)...)
	c.countTo(t, upgraded)
	c.countFrom(t, upgraded)
	for i, r := range t.routers {
		if to, from := c.to[i], c.from[i]; i > 0 && to.paths > 0 {
			c.total.add(to.paths, to.hops)
			c.longest = max(c.longest, c.hops[i])
			if !upgraded[r] {
				c.gains[r].add(to.paths*from.paths, to.hops*from.paths+to.paths*from.hops)
			}
		}
	}
}

// countTo counts the paths from the source to every router.
func (c *counts) countTo(t *pathTree, upgraded []bool) {
	c.to[0].paths = 1
	for i := range t.routers {
		for _, b := range t.into(int32(i)) {
			if b == 0 {
				c.direct++
			}
			if to := c.to[b]; to.paths > 0 && (b == 0 || !upgraded[t.routers[b]]) {
				c.to[i].add(to.paths, to.hops+to.paths)
				c.hops[i] = max(c.hops[i], c.hops[b]+1)
			}
		}
	}
}

// countFrom counts the paths that continue from every router.
func (c *counts) countFrom(t *pathTree, upgraded []bool) {
	for i := len(t.routers) - 1; i > 0; i-- {
		if c.to[i].paths == 0 { // upgraded routers have cut it off
			continue
		}
		on := probes{paths: 1} // the path that ends here, and those that continue
		if !upgraded[t.routers[i]] {
			on.add(c.from[i].paths, c.from[i].hops)
		}
		for _, b := range t.into(int32(i)) {
			c.from[b].add(on.paths, on.hops+on.paths)
		}
	}
}

// choose returns the next router to upgrade: of equally good ones, the first.
func (s *upgradeSearch) choose(byPaths bool) Router {
	best, most := Router(-1), int64(-1)
	for r, gain := range s.gains {
		value := gain.hops
		if byPaths {
			value = gain.paths
		}
		if !s.upgraded[r] && value > most {
			best, most = Router(r), value
		}
	}
	return best
}

// bound returns a lower bound of the probe hop count with count more routers.
func (s *upgradeSearch) bound(count int) int64 {
	var gains []int64
	for r, g := range s.gains {
		if !s.upgraded[r] {
			gains = append(gains, g.hops)
		}
	}
	slices.Sort(gains)
	bound := s.total.hops
	for _, g := range gains[max(0, len(gains)-count):] {
		bound -= g
	}
	return max(bound, s.direct)
}

func (s *upgradeSearch) coverage() Coverage {
	return Coverage{Probes: s.total.paths, Hops: s.total.hops, Longest: int(s.longest)}
}
