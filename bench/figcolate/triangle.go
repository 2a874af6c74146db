package figcolate

import (
	"fmt"

	"github.com/hoplag/hoplag/bench/counters"
	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/perflow"
	"github.com/hoplag/hoplag/colate/paper"
)

var triangle = experiment.Experiment{
	Name: "colate-8", Title: "Three points, six links",
	Claim: "With three points that all send to each other, one counter vector at each point for all its links, the means are as accurate " +
		"as with two: the number of senders and receivers does not matter (section 6.2.1, Fig. 8).",
	Weight: 15, Quick: 1.5, Measure: measureTriangle,
}

const ends = 4 // links that begin or end at a point: two in, two out

func measureTriangle(run *experiment.Run) {
	most, seed := run.Pick(100, 400), run.SeedOf("triangle")
	n := countersIn(run, 10)
	shared, links := newTriangle(run, sums(n, seed))
	f := run.Draw("", "Error of means on the six links of a triangle, 10 MB at each point",
		"Flows of 100 packets and more. Dashed: one vector at a point, for all its links, by Theorem 2. Else: "+
			"the same memory, one vector for each end of a link, by Theorem 2 and by joint decoding.", errorAxis(0.01, 1e7), shareAxis)
	table := run.Table("", "Median error of means, flows of 100 packets and more", "link", "flows", "one vector at a point, Theorem 2",
		"a vector at each end of a link, Theorem 2", "the same, counted", "the same, joint")
	none := func(name string) *perflow.Errors { return perflow.New(name, perflow.Infinite) }
	all, each, decoded := none(""), none("all, a vector at each end"), none("all, joint")
	for _, t := range experiment.Each(run, links) {
		chosen := t.some(asked, most)
		paper := t.theorem2(t.name, counters.Read(shared[t.from], shared[t.to]), chosen)
		f.Series = append(f.Series, paper.CDF(asked))
		r := t.race(run, n/ends, seed, chosen)
		all.Merge(paper)
		each.Merge(r.theorem)
		decoded.Merge(r.joint)
		row := []string{t.name, fmt.Sprint(len(chosen))}
		for _, e := range []*perflow.Errors{paper, r.theorem, r.single, r.joint} {
			row = append(row, percent(e.Median(asked)))
		}
		table.Row(row)
	}
	f.Series = append(f.Series, each.CDF(asked), decoded.CDF(asked))
	within := all.Within(asked, 0.1)
	run.Holds("flows of ≥ 100 packets within 10 %, one vector at a point (α = 0.90)", "≥ 90 %", percent(within), within >= 0.9)
	run.Beats("median error, one vector at a point and one for each end of a link, equal memory", each.Median(asked), all.Median(asked), 0.1)
	configure(run, "traffic", enterprise.trace, "memory at a point, MB", 10, "seed", seed)
	run.Note("A packet of another link is in the vector of one of the two points only, and leaves its whole time stamp in the difference: " +
		"seconds, against microseconds of delay. So a vector is needed for each end of each link, each of which then holds the same packets " +
		"as the one at the other end.")
}

// A link is its traffic, from one point to another.
type link struct {
	*traffic
	from, to int
}

// newTriangle lets three points see the traffic of all six links, each with one
// recorder, as the paper has it.
func newTriangle(run *experiment.Run, c paper.Config) (shared [3]*paper.Recorder, links []link) {
	for i := range shared {
		shared[i] = experiment.Try(paper.New(c))
	}
	for a := range 3 {
		for b := range 3 {
			if a == b {
				continue
			}
			k := enterprise
			k.name = fmt.Sprintf("%c to %c", 'A'+a, 'A'+b)
			t := newTrafficOf(run, k, run.Pick(quickPackets, fullPackets)/6, nil)
			for p := range t.all {
				shared[a].Update(p.Flow, p.ID, p.In)
				shared[b].Update(p.Flow, p.ID, p.Out)
			}
			links = append(links, link{t, a, b})
		}
	}
	return shared, links
}
