package mplane

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hoplag/hoplag/estimate"
)

// toy is a network with the shortest paths of Figs. 7 and 8: the figures' costs are not in the text, these give
// the m-sets that it names.
func toy(t *testing.T) *Network {
	t.Helper()
	n := new(Network)
	for _, l := range []struct {
		a, b   string
		weight float64
	}{{"A", "B", 2}, {"A", "F", 1}, {"B", "F", 2}, {"F", "C", 2}, {"F", "E", 2}, {"C", "D", 1}, {"D", "E", 1}} {
		both(t, n, l.a, l.b, l.weight)
	}
	return n
}

func both(t *testing.T, n *Network, a, b string, weight float64) {
	t.Helper()
	if err := errors.Join(n.AddLink(a, b, weight), n.AddLink(b, a, weight)); err != nil {
		t.Fatal(err)
	}
}

func routers(t *testing.T, n *Network, names ...string) []Router {
	t.Helper()
	var rs []Router
	for _, name := range names {
		r, ok := n.Router(name)
		if !ok {
			t.Fatalf("no router %s", name)
		}
		rs = append(rs, r)
	}
	return rs
}

// toyPlan upgrades C and F, as Fig. 7(b) does; the others have servers.
func toyPlan(t *testing.T, n *Network) *Plan {
	t.Helper()
	p, err := n.Plan(routers(t, n, "C", "F"), routers(t, n, "A", "B", "D", "E"))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// hops writes segments as the names of their routers.
func hops(n *Network, p *Plan, segments []SegmentID) []string {
	var all []string
	for _, id := range segments {
		name := ""
		for _, r := range p.Hops(id) {
			name += n.Name(r)
		}
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// The m-sets of Fig. 8: A's is {B, F}, C's {F, D, E}, and F's has A, B, E and D₂, the second shortest path to
// D, which leads through E; the first one, through C, is C's. C itself is in F's set, too: the figure's caption
// leaves it out, and section VI's rule, that m-routers probe the links between them, does not.
func TestToyMSets(t *testing.T) {
	n := toy(t)
	p := toyPlan(t, n)
	for name, want := range map[string][]string{
		"A": {"AB", "AF"},
		"C": {"CD", "CDE", "CF"},
		"F": {"FA", "FB", "FC", "FE", "FED"},
		"D": {"DC", "DE", "DEF"},
	} {
		if diff := cmp.Diff(want, hops(n, p, p.MSet(routers(t, n, name)[0]))); diff != "" {
			t.Errorf("m-set of %s (-want +got):\n%s", name, diff)
		}
	}
	for name, want := range map[string]int{"F": 16, "C": 4, "A": 0} { // d² inside
		ids := p.Internal(routers(t, n, name)[0])
		if len(ids) != want || slices.ContainsFunc(ids, func(id SegmentID) bool { return !p.has(id) || !id.internal() }) {
			t.Errorf("%+v inside %s, want %d", ids, name, want)
		}
	}
}

// A path consists of the segments between monitors and those inside m-routers.
func TestAlong(t *testing.T) {
	n := toy(t)
	p := toyPlan(t, n)
	r := routers(t, n, "A", "F", "C", "D")
	got, err := p.Along(r)
	want := []SegmentID{
		{From: r[0], To: r[1], Via: notInside},
		{From: r[0], To: r[2], Via: r[1]},
		{From: r[1], To: r[2], Via: notInside},
		{From: r[1], To: r[3], Via: r[2]},
		{From: r[2], To: r[3], Via: notInside},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	// Every shortest path between any two routers can be cut, and its parts join up.
	for from := range Router(n.Routers()) {
		for to := range Router(n.Routers()) {
			for _, path := range n.Paths(from, to) {
				ids, err := p.Along(path)
				if err != nil || ids[0].From != from || ids[len(ids)-1].To != to {
					t.Errorf("path %v: %v, %v", path, ids, err)
				}
			}
		}
	}
	for _, bad := range [][]Router{nil, r[:1], {r[0], r[3]}, {r[0], 99}, {-1, r[0]}} {
		if _, err := p.Along(bad); !errors.Is(err, estimate.ErrConfig) {
			t.Errorf("path %v: error %v", bad, err)
		}
	}
}

// Whatever is planned, an error names what is out of range.
func TestConfigErrors(t *testing.T) {
	n := toy(t)
	p := toyPlan(t, n)
	plan := func(upgraded, servers []Router) error { _, err := n.Plan(upgraded, servers); return err }
	upgrades := func(d UpgradeDemand) error { _, err := n.PlanUpgrades(t.Context(), d); return err }
	station := func(c StationConfig) error { _, err := NewStation(c); return err }
	for name, err := range map[string]error{
		"a router that is not there": plan([]Router{6}, nil),
		"a negative router":          plan(nil, []Router{-1}),
		"a router twice":             plan([]Router{1, 1}, nil),
		"too many":                   upgrades(UpgradeDemand{Count: 7}),
		"too many more":              upgrades(UpgradeDemand{Count: 6, Upgraded: []Router{1}}),
		"negative":                   upgrades(UpgradeDemand{Count: -1}),
		"no such router":             upgrades(UpgradeDemand{Count: 1, Upgraded: []Router{6}}),
		"upgraded twice":             upgrades(UpgradeDemand{Count: 1, Upgraded: []Router{2, 2}}),
		"no plan":                    station(StationConfig{Length: 1}),
		"no length":                  station(StationConfig{Plan: p}),
		"short history":              station(StationConfig{Plan: p, Length: 1, History: 7}),
		"endless history":            station(StationConfig{Plan: p, Length: 1, History: 1 << 20}),
	} {
		if !errors.Is(err, estimate.ErrConfig) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
