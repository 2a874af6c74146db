package figmplane

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/lda/mplane"
)

// How numbers are written in claims and tables.
var percent, number = experiment.Percent, experiment.Number

// Made chooses the routers of a map to upgrade.
var Made = experiment.Experiment{
	Name: "mplane-made", Title: "Probes and localisation against upgraded routers (Fig. 9)",
	Claim: "On the Sprint map (315 routers), upgrading 45 in a good order cuts the probes' hop count from about a million to 10,000, and 50 " +
		"bring the average segment from 4 hops to about 1.5; in a random order it takes far more (section VI, Fig. 9). Here on a map of " +
		"as many routers that anybody can draw again.",
	Weight: 3, Quick: 1, Measure: measureMade,
}

// measureMade upgrades a made map's routers in each order.
func measureMade(run *experiment.Run) {
	const most, every = 105, 15 // up to a third of the routers
	n := makeMap(run.Rand("map"), 315, 3)
	plans := map[bool]mplane.UpgradePlan{} // by whether it is Algorithm 1's
	for _, order := range []bool{true, false} {
		plans[order] = experiment.Try(n.PlanUpgrades(context.Background(), mplane.UpgradeDemand{Count: most, ByPaths: order}))
	}
	random := mplane.UpgradePlan{Before: plans[false].Before}
	shuffled := run.Rand("order").Perm(n.Routers())
	var upgraded []mplane.Router
	for _, r := range shuffled[:most] {
		if upgraded = append(upgraded, mplane.Router(r)); len(upgraded)%every == 0 {
			plan := experiment.Try(n.PlanUpgrades(context.Background(), mplane.UpgradeDemand{Upgraded: upgraded}))
			random.Steps = append(random.Steps, plan.Before)
		}
	}
	table := run.Table("Hops of all probes, and of a segment: mean, longest (Fig. 9)", "upgraded routers", "Algorithm 1, by paths",
		"by hops", "at random")
	for k := 0; k <= most; k += every {
		row := []any{k}
		for _, plan := range []struct {
			mplane.UpgradePlan
			every int
		}{{plans[true], 1}, {plans[false], 1}, {random, every}} {
			c := plan.Before
			if k > 0 {
				c = plan.Steps[k/plan.every-1]
			}
			row = append(row, fmt.Sprintf("%s; %s, %d", number(float64(c.Hops)), number(perProbe(c)), c.Longest))
		}
		table.Row(row...)
	}
	judgeUpgrades(run, n, plans, random.Steps[len(random.Steps)-1].Hops)
}

// judgeUpgrades compares the orders, and random choices of a third of the routers.
func judgeUpgrades(run *experiment.Run, n *mplane.Network, plans map[bool]mplane.UpgradePlan, random int64) {
	const fifteenPercent = 44
	ours, paper := plans[false], plans[true]
	at := func(p mplane.UpgradePlan) float64 {
		return float64(p.Steps[fifteenPercent].Hops) / float64(p.Before.Hops)
	}
	run.Meets("probe hop count with 45 upgraded, of that with none", "a hundredth", percent(at(ours)), at(ours) <= 0.01)
	mean := perProbe(paper.Steps[49])
	run.Holds("mean segment, 50 upgraded by Algorithm 1, of "+number(perProbe(paper.Before))+" hops with none", "around 1.5 of 4 hops",
		number(mean), mean >= 1.45 && mean < 1.55)
	run.Beats("probe hop count with 45 upgraded, of that with none: by hops, and by Algorithm 1", at(ours), at(paper))
	run.Holds("probe hop count of 105 upgraded at random", "more than of 45 chosen ones", number(float64(random)),
		random > paper.Steps[fifteenPercent].Hops)
	bound := experiment.Try(n.PlanUpgrades(context.Background(), mplane.UpgradeDemand{Count: fifteenPercent + 1})).Bound
	run.Note(fmt.Sprintf("With 45 routers ours leaves %s of %s hops to the probes; no choice whatever leaves fewer than %s.",
		number(float64(ours.Steps[fifteenPercent].Hops)), number(float64(ours.Before.Hops)), number(float64(bound))))
	run.Note("Every shortest path between two routers is probed, in both directions and each of several of equal cost on its own, but where " +
		"an upgraded router is on it: then its parts are, which are paths of their own. Algorithm 1 upgrades the router on most such " +
		"paths; ours, the router whose paths have most hops together.")
}

// perProbe returns the hops of a typical probe.
func perProbe(c mplane.Coverage) float64 { return float64(c.Hops) / float64(c.Probes) }

// makeMap draws a map similar to a backbone: routers on a plane, each new one linked to some that are near or
// already have many links, with weights by distance, in steps of 0.5 so that equal costs are common.
func makeMap(random *rand.Rand, routers, linksEach int) *mplane.Network {
	n := new(mplane.Network)
	type place struct{ x, y, degree float64 }
	places := make([]place, routers)
	name := func(i int) string { return fmt.Sprintf("router %d", i+1) }
	for i := range places {
		places[i] = place{x: random.Float64(), y: random.Float64(), degree: 1}
		distance := func(j int) float64 { return math.Hypot(places[i].x-places[j].x, places[i].y-places[j].y) }
		for range min(i, linksEach) {
			best, worth := 0, 0.0
			for range 8 { // the best of some: well linked and near
				j := random.IntN(i)
				if w := places[j].degree / (0.1 + distance(j)); w > worth {
					best, worth = j, w
				}
			}
			weight := math.Ceil(20*distance(best)) / 2
			if n.AddLink(name(i), name(best), weight) == nil {
				experiment.Check(n.AddLink(name(best), name(i), weight))
				places[i].degree++
				places[best].degree++
			}
		}
	}
	return n
}
