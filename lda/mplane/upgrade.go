package mplane

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
)

// An Order says how to choose the routers to upgrade.
type Order uint8

// The orders.
const (
	// ByHops chooses, each time, the router that removes the most hops from
	// the probes. No choice of equally many routers removes more than
	// 1/(1−1/e) times as many hops, and [UpgradePlan.Bound] says how close
	// this one is.
	ByHops Order = iota
	// ByPaths is Algorithm 1 of section VI: the router on the most probed
	// paths.
	ByPaths
	// AtRandom chooses any, for comparison.
	AtRandom
)

// An UpgradeDemand says what to plan.
type UpgradeDemand struct {
	Count    int      // number of routers to upgrade
	Upgraded []Router // those already upgraded
	Order    Order
	Seed     uint64 // for AtRandom

	// PlanUpgrades calls Progress, if not nil, with the number of routers
	// chosen so far.
	Progress func(chosen int)
}

// A Coverage says how much probing and how fine a localisation result from
// upgrading some routers. A probe runs along each shortest path between two
// routers that passes no upgraded one. Each direction and each equal-cost path
// counts separately. Longer paths are combined from these.
type Coverage struct {
	Probes int64 // probed paths
	Hops   int64 // of all probes together: the probe hop count of section VI-A

	// MeanSegment, Shortest and Longest are the numbers of hops in a probed
	// segment: how precisely a fault is located (Fig. 9b).
	MeanSegment       float64
	Shortest, Longest int
}

// A Step is one router's upgrade and the coverage after it.
type Step struct {
	Router Router
	Coverage
}

// An UpgradePlan lists routers in the order in which to upgrade them.
type UpgradePlan struct {
	Before Coverage
	Steps  []Step

	// Bound is a lower bound of the probe hop count for any choice of equally
	// many routers. A better choice can gain at most the difference between
	// the last step's hop count and Bound.
	Bound int64
}

// PlanUpgrades chooses which routers to upgrade. It takes a few seconds for a
// map of 1,000 routers, and a minute and some 2 GB for 10,000. The error wraps
// [estimate.ErrConfig], or is that of ctx.
func (n *Network) PlanUpgrades(ctx context.Context, d UpgradeDemand) (UpgradePlan, error) {
	if want := n.Routers() - len(d.Upgraded); d.Count < 0 || d.Count > want {
		return UpgradePlan{}, invalid("Count", d.Count, fmt.Sprintf("0 to %d, as many as are not upgraded", want))
	}
	if d.Order > AtRandom {
		return UpgradePlan{}, invalid("Order", d.Order, "ByHops, ByPaths or AtRandom")
	}
	upgraded, err := n.set("Upgraded", d.Upgraded)
	if err != nil {
		return UpgradePlan{}, err
	}
	s := &upgradeSearch{upgraded: upgraded, gains: make([]gain, n.Routers())}
	if err := s.plant(ctx, n); err != nil {
		return UpgradePlan{}, err
	}
	random := rand.New(rand.NewPCG(d.Seed, 0))
	plan := UpgradePlan{Before: s.coverage(), Bound: s.bound(d.Count)}
	for range d.Count {
		r := s.choose(d.Order, random)
		if err := s.upgrade(ctx, r); err != nil {
			return UpgradePlan{}, err
		}
		plan.Steps = append(plan.Steps, Step{r, s.coverage()})
		plan.Bound = max(plan.Bound, s.bound(d.Count))
		if d.Progress != nil {
			d.Progress(len(plan.Steps))
		}
	}
	return plan, nil
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

// A gain is what upgrading a router would save of the probes.
type gain struct{ paths, hops int64 }

// An upgradeSearch keeps, for every source, the paths that no upgraded router
// cuts and, for every router, what upgrading it would gain. Upgrading a router
// affects the sources whose paths it cuts, and shortens what is kept of them:
// the first few upgrades take nearly all of the time.
//
// The gain of a set of routers is the weight of the paths that they cut, and
// so it is submodular: a greedy choice is within 1−1/e of the best, and the
// best gains of single routers bound what any set adds (bound).
type upgradeSearch struct {
	upgraded []bool
	trees    []pathTree // by source
	gains    []gain     // by router
	total    probes
	longest  []int32 // by source
	direct   []int64 // by source, paths of one link: no router is inside them
}

// probes counts paths and their hops.
type probes struct{ paths, hops int64 }

// plant finds every source's shortest paths.
func (s *upgradeSearch) plant(ctx context.Context, n *Network) error {
	s.trees = make([]pathTree, n.Routers())
	s.longest, s.direct = make([]int32, n.Routers()), make([]int64, n.Routers())
	return s.each(ctx, func(source int, w *upgradeWorker) {
		if w.search == nil {
			w.search = newPathSearch(n)
		}
		s.trees[source] = w.search.from(Router(source))
		for _, b := range s.trees[source].before {
			if b == 0 {
				s.direct[source]++
			}
		}
		w.count(s, source, +1)
	})
}

// upgrade marks a router and counts again from all sources whose paths it
// cuts.
func (s *upgradeSearch) upgrade(ctx context.Context, r Router) error {
	var concerned []int
	for source := range s.trees {
		if source != int(r) && s.trees[source].passes(r) {
			concerned = append(concerned, source)
		}
	}
	counting := func(sign int64) error {
		return s.each(ctx, func(i int, w *upgradeWorker) {
			if i < len(concerned) {
				w.count(s, concerned[i], sign)
			}
		})
	}
	if err := counting(-1); err != nil {
		return err
	}
	s.upgraded[r] = true
	return counting(+1)
}

// each calls f for every source, from several goroutines, and adds up what
// their workers counted. The sums are integers, so their order does not
// matter.
func (s *upgradeSearch) each(ctx context.Context, f func(source int, w *upgradeWorker)) error {
	workers := runtime.GOMAXPROCS(0)
	counted := make([]upgradeWorker, workers)
	var wg sync.WaitGroup
	for k := range counted {
		w := &counted[k]
		w.gains = make([]gain, len(s.gains))
		wg.Go(func() {
			for source := k; source < len(s.trees) && ctx.Err() == nil; source += workers {
				f(source, w)
			}
		})
	}
	wg.Wait()
	for i := range counted {
		w := &counted[i]
		s.total.paths += w.total.paths
		s.total.hops += w.total.hops
		for r := range s.gains {
			s.gains[r].paths += w.gains[r].paths
			s.gains[r].hops += w.gains[r].hops
		}
	}
	return ctx.Err()
}

// choose returns the next router to upgrade: of equally good ones, the first.
func (s *upgradeSearch) choose(order Order, random *rand.Rand) Router {
	if order == AtRandom {
		for {
			if r := random.IntN(len(s.gains)); !s.upgraded[r] {
				return Router(r)
			}
		}
	}
	best := Router(-1)
	value := func(r Router) int64 {
		if order == ByPaths {
			return s.gains[r].paths
		}
		return s.gains[r].hops
	}
	for r := range Router(len(s.gains)) {
		if !s.upgraded[r] && (best < 0 || value(r) > value(best)) {
			best = r
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
	least := int64(0)
	for _, n := range s.direct {
		least += n
	}
	return max(bound, least)
}

func (s *upgradeSearch) coverage() Coverage {
	c := Coverage{Probes: s.total.paths, Hops: s.total.hops, Longest: int(slices.Max(append([]int32{0}, s.longest...)))}
	if c.Probes > 0 {
		c.MeanSegment, c.Shortest = float64(c.Hops)/float64(c.Probes), 1
	}
	return c
}

// maxCount keeps numbers of paths and hops from overflowing: a map with more
// equal-cost paths counts as if it had this many.
const maxCount = math.MaxInt64 >> 24
