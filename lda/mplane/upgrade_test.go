package mplane

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// slowPaths is Algorithm 1's set S of paths, path by path, above all readable.
type slowPaths map[string][]Router

func slowAllPaths(n *Network) slowPaths {
	s := slowPaths{}
	for from := range Router(n.Routers()) {
		for to := range Router(n.Routers()) {
			for _, p := range n.Paths(from, to) {
				s[fmt.Sprint(p)] = p
			}
		}
	}
	return s
}

// split cuts all paths at a router.
func (s slowPaths) split(r Router) slowPaths {
	after := slowPaths{}
	for key, p := range s {
		at := slices.Index(p, r)
		if at <= 0 || at == len(p)-1 {
			after[key] = p
			continue
		}
		for _, part := range [][]Router{p[:at+1], p[at:]} {
			after[fmt.Sprint(part)] = part
		}
	}
	return after
}

func (s slowPaths) coverage() Coverage {
	c := Coverage{Probes: int64(len(s))}
	for _, p := range s {
		hops := len(p) - 1
		c.Hops += int64(hops)
		c.Longest = max(c.Longest, hops)
	}
	return c
}

// most is the router with the greatest sum over the paths that it is inside.
func (s slowPaths) most(routers int, weight func(p []Router) int) Router {
	count := make([]int, routers)
	for _, p := range s {
		for _, r := range p[1 : len(p)-1] {
			count[r] += weight(p)
		}
	}
	return Router(slices.Index(count, slices.Max(count)))
}

// small is a random connected network with many paths of equal cost.
func small(t *testing.T, seed uint64, routers int) *Network {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 0))
	n := new(Network)
	for i := 1; i < routers; i++ {
		for _, j := range []int{r.IntN(i), r.IntN(i)} {
			w := float64(1 + r.IntN(3))
			if n.AddLink(fmt.Sprint(i), fmt.Sprint(j), w) == nil {
				if err := n.AddLink(fmt.Sprint(j), fmt.Sprint(i), w); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return n
}

// Counting along trees makes the choices that Algorithm 1 makes path by path, and finds the same coverage.
func TestUpgradesAgainstAlgorithm1(t *testing.T) {
	for seed := range uint64(10) {
		n := small(t, seed, 25)
		for byPaths, weight := range map[bool]func([]Router) int{
			true:  func([]Router) int { return 1 },
			false: func(p []Router) int { return len(p) - 1 },
		} {
			plan, err := n.PlanUpgrades(t.Context(), UpgradeDemand{Count: 6, ByPaths: byPaths})
			if err != nil {
				t.Fatal(err)
			}
			s := slowAllPaths(n)
			if diff := cmp.Diff(s.coverage(), plan.Before); diff != "" {
				t.Fatalf("seed %d, before (-slow +fast):\n%s", seed, diff)
			}
			for k, step := range plan.Steps {
				r := s.most(n.Routers(), weight)
				s = s.split(r)
				want := s.coverage()
				want.Router = r
				if diff := cmp.Diff(want, step); diff != "" {
					t.Fatalf("seed %d, by paths %v, step %d (-slow +fast):\n%s", seed, byPaths, k, diff)
				}
			}
		}
	}
}

// The bound is never below the paths of one link, which nothing cuts.
func TestBoundOfManyUpgrades(t *testing.T) {
	n := small(t, 3, 300)
	plan, err := n.PlanUpgrades(t.Context(), UpgradeDemand{Count: 100})
	if err != nil {
		t.Fatal(err)
	}
	if last := plan.Steps[99].Hops; plan.Bound < int64(n.Routers()) || plan.Bound > last {
		t.Errorf("bound %d, %d routers, %d hops", plan.Bound, n.Routers(), last)
	}
}

// No choice of three routers gets below the bound, and none is more than the promised share better than the
// greedy one.
func TestBound(t *testing.T) {
	for seed := range uint64(5) {
		n := small(t, seed, 14)
		plan, err := n.PlanUpgrades(t.Context(), UpgradeDemand{Count: 3})
		if err != nil {
			t.Fatal(err)
		}
		best := plan.Before.Hops
		all := slowAllPaths(n)
		for a := range Router(14) {
			for b := range a {
				for c := range b {
					best = min(best, all.split(a).split(b).split(c).coverage().Hops)
				}
			}
		}
		greedy := plan.Steps[2].Hops
		if plan.Bound > best || best > greedy {
			t.Errorf("seed %d: bound %d, best %d, greedy %d: want them in order", seed, plan.Bound, best, greedy)
		}
		if won, could := plan.Before.Hops-greedy, plan.Before.Hops-best; float64(won) < (1-1/2.71828)*float64(could) {
			t.Errorf("seed %d: %d hops are won, the best is %d", seed, won, could)
		}
	}
}

// Planning from routers that are already upgraded continues the same plan.
func TestUpgradedBefore(t *testing.T) {
	n := small(t, 3, 25)
	whole, err := n.PlanUpgrades(t.Context(), UpgradeDemand{Count: 5})
	if err != nil {
		t.Fatal(err)
	}
	rest, err := n.PlanUpgrades(t.Context(), UpgradeDemand{Count: 3, Upgraded: []Router{whole.Steps[0].Router, whole.Steps[1].Router}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(whole.Steps[2:], rest.Steps); diff != "" {
		t.Error(diff)
	}
}

func TestUpgradesEnd(t *testing.T) {
	n := small(t, 1, 5)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := n.PlanUpgrades(ctx, UpgradeDemand{Count: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v after cancelling", err)
	}
	if plan, err := new(Network).PlanUpgrades(t.Context(), UpgradeDemand{}); err != nil || plan.Before != (Coverage{}) {
		t.Errorf("an empty network: %+v, %v", plan, err)
	}
}
