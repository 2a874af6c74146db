package figmplane

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/lda/mplane"
)

// How numbers are written in claims and tables.
var percent, number = experiment.Percent, experiment.Number

var sprint = experiment.Experiment{
	Name: "mplane-9", Title: "Probes and localisation against upgraded routers, Sprint",
	Claim: "On the Sprint map (315 routers), upgrading 45 in a good order cuts the probes' hop count from about a million to 10,000, and 50 " +
		"bring the average segment from 4 hops to about 1.5; in a random order it takes far more (section VI, Fig. 9).",
	Weight: 3, Quick: 1, Measure: measureSprint,
}

var made = experiment.Experiment{
	Name: "mplane-made", Title: "Probes and localisation against upgraded routers, a made map",
	Claim:  "As mplane-9, on a map of as many routers that anybody can draw again: a hundredfold less probing with 15 % of the routers.",
	Weight: 3, Quick: 1,
	Measure: func(run *experiment.Run) {
		measureMap(run, makeMap(run.Rand("map"), 315, 3), "made map")
	},
}

func measureSprint(run *experiment.Run) {
	file, err := os.Open(sprintFile)
	if errors.Is(err, fs.ErrNotExist) {
		run.Note("Not measured: the map of AS 1239 is not part of the project. mplane-made does the same on a map that is drawn.")
		return
	}
	run.Try(err)
	defer file.Close()
	run.Outside(sprintFile)
	plans := measureMap(run, experiment.Try(mplane.ReadWeights(file)), "Sprint")
	greedy, before := plans[mplane.ByPaths], plans[mplane.ByPaths].Before
	run.Holds("probe hop count of all paths, none upgraded", "about 1,000,000", number(float64(before.Hops)),
		experiment.IsBetween(float64(before.Hops), 9e5, 1.1e6, 0))
	hops := float64(greedy.Steps[44].Hops)
	run.Within("probe hop count, 45 upgraded by Algorithm 1, of that of none", "1 %", hops/float64(before.Hops), 0.01, 0.1)
	run.Holds("mean segment, none upgraded", "4 hops", number(before.MeanSegment), experiment.IsBetween(before.MeanSegment, 4, 4, 0.2))
	mean := greedy.Steps[49].MeanSegment
	run.Holds("mean segment, 50 upgraded by Algorithm 1", "around 1.5 hops", number(mean), experiment.IsBetween(mean, 1.5, 1.5, 0.1))
}

// measureMap upgrades a map's routers in each order, and draws Fig. 9.
func measureMap(run *experiment.Run, n *mplane.Network, name string) map[mplane.Order]mplane.UpgradePlan {
	const most = 105 // a third of the routers
	hops := run.Draw("a", "Probe hop count, "+name, "", plot.LinearAxis("upgraded routers"), plot.LogAxis("hops of all probes"))
	segments := run.Draw("b", "Hops of a segment, "+name, "", plot.LinearAxis("upgraded routers"), plot.LinearAxis("hops"))
	table := run.Table("upgrades", "Coverage, "+name, "order", "upgraded", "probe hop count", "mean segment", "longest segment")
	plans := map[mplane.Order]mplane.UpgradePlan{}
	orders := []struct {
		order mplane.Order
		name  string
		paper bool
	}{{mplane.ByPaths, "Algorithm 1, by paths", true}, {mplane.ByHops, "by hops", false}, {mplane.AtRandom, "at random", true}}
	for k, o := range experiment.Each(run, orders) {
		demand := mplane.UpgradeDemand{Count: most, Order: o.order, Seed: run.SeedOf("order")}
		plan := experiment.Try(n.PlanUpgrades(run.Context(), demand))
		plans[o.order] = plan
		line := plot.Series{Name: o.name, Paper: o.paper, Pair: k + 1}
		mean, longest := line, line
		mean.Name, longest.Name = o.name+", mean", o.name+", longest"
		add := func(upgraded int, c mplane.Coverage) {
			x := float64(upgraded)
			line.Add(x, float64(c.Hops))
			mean.Add(x, c.MeanSegment)
			longest.Add(x, float64(c.Longest))
			if upgraded%15 == 0 {
				table.Row(o.name, upgraded, number(float64(c.Hops)), number(c.MeanSegment), c.Longest)
			}
		}
		add(0, plan.Before)
		for i, step := range plan.Steps {
			add(i+1, step.Coverage)
		}
		hops.Add(line)
		segments.Add(mean, longest)
	}
	judgeUpgrades(run, n, plans)
	run.Config("map", name, "routers", n.Routers(), "links", n.LinkCount())
	return plans
}

// judgeUpgrades compares the orders.
func judgeUpgrades(run *experiment.Run, n *mplane.Network, plans map[mplane.Order]mplane.UpgradePlan) {
	const fifteenPercent = 44
	ours, paper, random := plans[mplane.ByHops], plans[mplane.ByPaths], plans[mplane.AtRandom]
	at := func(p mplane.UpgradePlan) float64 {
		return float64(p.Steps[fifteenPercent].Hops) / float64(p.Before.Hops)
	}
	run.Keeps("probe hop count with 45 upgraded, of that with none", "a hundredth", percent(at(ours)), at(ours) <= 0.01).Headline = true
	run.Beats("probe hop count with 45 upgraded, of that with none: by hops, and by Algorithm 1", at(ours), at(paper), 0.02)
	run.Holds("upgrades at random that are as good as 45 chosen ones", "far more", reached(random, paper.Steps[fifteenPercent].Hops),
		random.Steps[len(random.Steps)-1].Hops > paper.Steps[fifteenPercent].Hops)
	bound := experiment.Try(n.PlanUpgrades(run.Context(), mplane.UpgradeDemand{Count: fifteenPercent + 1})).Bound
	run.Notef("With 45 routers ours leaves %s of %s hops to the probes; no choice whatever leaves fewer than %s.",
		number(float64(ours.Steps[fifteenPercent].Hops)), number(float64(ours.Before.Hops)), number(float64(bound)))
	run.Note("Every shortest path between two routers is probed, in both directions and each of several of equal cost on its own, but where " +
		"an upgraded router is on it: then its parts are, which are paths of their own. Algorithm 1 upgrades the router on most such " +
		"paths; ours, the router whose paths have most hops together.")
}

// reached returns after how many upgrades a plan has at most this many hops.
func reached(p mplane.UpgradePlan, hops int64) string {
	for i, step := range p.Steps {
		if step.Hops <= hops {
			return fmt.Sprint(i + 1)
		}
	}
	return fmt.Sprintf("more than %d", len(p.Steps))
}

// sprintFile is the place of the map of AS 1239, which is not part of the
// project.
var sprintFile = filepath.Join("..", "shared", "data", "topology", "as1239.weights")

// makeMap draws a map similar to a backbone: routers on a plane, each new one
// linked to some that are near or already have many links, with weights by
// distance, in steps of 0.5 so that equal costs are common.
func makeMap(random *rand.Rand, routers, linksEach int) *mplane.Network {
	n := mplane.NewNetwork()
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
