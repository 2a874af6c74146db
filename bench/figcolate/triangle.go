package figcolate

import (
	"context"
	"fmt"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/colate/paper"
)

var triangle = experiment.Experiment{
	Name:   "colate-8",
	Group:  group,
	Title:  "Three points, six links",
	Claim:  "With three points that all send to each other, one counter vector at each point for all its links, the means are as accurate as with two: the number of senders and receivers does not matter (section 6.2.1, Fig. 8).",
	Weight: 15, Quick: 1.5,
	Run: runTriangle,
}

const ends = 4 // links that begin or end at a point: two in, two out

func runTriangle(ctx context.Context, run *experiment.Run) (experiment.Result, error) {
	most := run.Pick(100, 400)
	seed := run.SeedOf("triangle")
	n := countersIn(run, 10)
	// The points' recorders: one each, as the paper has it; and at equal
	// memory one for each end of a link.
	var shared [3]*paper.Recorder
	var err error
	for i := range shared {
		if shared[i], err = paper.New(sums(n, seed)); err != nil {
			return experiment.Result{}, err
		}
	}
	var links []*traffic
	var from, to []int
	step := run.Steps(ctx, 12)
	for a := range 3 {
		for b := range 3 {
			if a == b {
				continue
			}
			k := enterprise
			k.name = fmt.Sprintf("%c to %c", 'A'+a, 'A'+b)
			t, err := newTrafficOf(ctx, run, k, run.Pick(quickPackets, fullPackets)/6)
			if err != nil {
				return experiment.Result{}, err
			}
			for i := range t.packets {
				p := &t.packets[i]
				key := t.flows[p.flow].key
				shared[a].Update(key, p.id, p.in)
				shared[b].Update(key, p.id, p.out)
			}
			links, from, to = append(links, t), append(from, a), append(to, b)
			if err := step(); err != nil {
				return experiment.Result{}, err
			}
		}
	}
	asked := class{"≥ 100", 100, unlimited}
	f := plot.Figure{
		Title:   "Error of means on the six links of a triangle, 10 MB at each point",
		Caption: "Flows of 100 packets and more. Dashed: one vector at a point, for all its links, by Theorem 2. Else: the same memory, one vector for each end of a link, by Theorem 2 and by joint decoding.",
		X:       errorAxis(0.01, 1e7), Y: shareAxis,
	}
	table := experiment.Table{Title: "Median error of means, flows of 100 packets and more", Columns: []string{"link", "flows", "one vector at a point, Theorem 2", "a vector at each end of a link, Theorem 2", "the same, counted", "the same, joint"}}
	result := experiment.Result{}
	all, each, decoded := &errorsOf{}, &errorsOf{}, &errorsOf{}
	for i, t := range links {
		chosen := t.some(asked, most)
		p, err := read(shared[from[i]], shared[to[i]])
		if err != nil {
			return experiment.Result{}, err
		}
		paper := &errorsOf{paper: true}
		for _, j := range chosen {
			x, err := p.theorem2(&t.flows[j])
			if err != nil {
				return experiment.Result{}, err
			}
			paper.add(&t.flows[j], x)
			all.add(&t.flows[j], x)
		}
		race, err := t.race(ctx, n/ends, seed, chosen)
		if err != nil {
			return experiment.Result{}, err
		}
		each.flows, each.off = append(each.flows, race[0].flows...), append(each.off, race[0].off...)
		f.Series = append(f.Series, paper.cdf(asked, t.name))
		decoded.flows, decoded.off = append(decoded.flows, race[2].flows...), append(decoded.off, race[2].off...)
		table.Add(t.name, fmt.Sprint(len(chosen)), experiment.Percent(paper.median(asked)), experiment.Percent(race[0].median(asked)), experiment.Percent(race[1].median(asked)), experiment.Percent(race[2].median(asked)))
		if err := step(); err != nil {
			return experiment.Result{}, err
		}
	}
	f.Series = append(f.Series, each.cdf(asked, "all, a vector at each end"), decoded.cdf(asked, "all, joint"))
	within := all.within(asked, 0.1)
	result.Claims = []experiment.Claim{
		{What: "flows of ≥ 100 packets within 10 %, one vector at a point (α = 0.90)", Paper: "≥ 90 %", Ours: experiment.Percent(within), Verdict: experiment.Holds(within >= 0.9)},
		{What: "median error, one vector at a point and one for each end of a link, equal memory", Paper: experiment.Percent(all.median(asked)), Ours: experiment.Percent(each.median(asked)), Verdict: experiment.Judge(each.median(asked), all.median(asked), 0.1)},
	}
	result.Figures = []plot.Figure{f}
	result.Tables = []experiment.Table{table}
	result.Config = setting(run, map[string]any{"traffic": enterprise.trace, "memory at a point, MB": 10, "seed": seed})
	result.Notes = []string{"A packet of another link is in the vector of one of the two points only, and leaves its whole time stamp in the difference: seconds, against microseconds of delay. So a vector is needed for each end of each link, each of which then holds the same packets as the one at the other end."}
	return result, nil
}
