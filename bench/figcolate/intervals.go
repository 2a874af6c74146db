package figcolate

import (
	"fmt"

	"github.com/hoplag/hoplag/bench/counters"
	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/perflow"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/colate/paper"
	"github.com/hoplag/hoplag/estimate/joint"
)

var intervals = experiment.Experiment{
	Name: "ours-colate-intervals", Title: "COLATE: intervals that hold",
	Claim: "The paper's analysis takes time stamps to be smeared over counters unit by unit (section 3.2), and the interval that follows " +
		"is to hold with the probability stated; ours is calibrated by the counters of flows that never were, and is to hold at least as " +
		"often as it says.",
	Weight: 30, Quick: 6, Measure: measureIntervals,
}

// confidence is asked for.
const confidence = 0.95

func measureIntervals(run *experiment.Run) {
	most, seed := run.Pick(200, 1500), run.SeedOf("intervals")
	own, config := ownDelays(run)
	all := []*traffic{own, newTraffic(run, backbone), newTraffic(run, dataCentre)}
	n := scaled(run, 455_000)
	coverage := run.Draw("coverage", fmt.Sprintf("Flows whose mean is in its 95 %% interval, %d counters", n),
		"Dashed: the paper's. Solid: ours, of as many bits, some of which count.", binAxis, flowsAxis)
	widths := run.Draw("width", "Half the width of intervals, median, "+own.name,
		"Relative to the mean delay. What is wider than its mean says only that little is known.", binAxis, plot.LogAxis("half width (%)"))
	table := run.Table("", "Coverage of 95 % intervals, and median half width", "traffic", "packets of the flow", "flows", "the paper's",
		"ours", "joint, sums")
	configure(run, "traffic", []any{config, backbone.trace, dataCentre.trace}, "counters", n, "seed", seed)
	for pair, t := range experiment.Each(run, all) {
		plain := counters.Record(sums(n, seed), t.all)
		counting := counters.Count(counted(n, seed), t.all)
		decoded := plain.Joint(run, t.everyRecord())
		h := t.holding(plain, counting, &decoded, most, pair+1, table)
		coverage.Series = append(coverage.Series, h.lines[:2]...)
		h.judge(run, t.name)
		if pair == 0 {
			widths.Series = h.breadths[:]
		}
	}
	coverage.Series = append(coverage.Series, plot.Level("asked for", 100*confidence, 0, float64(len(bins)-1)))
	run.Note("Flows of every size are asked for alike, so that large ones are far more of those counted than they are of the traffic. " +
		"The interval of joint decoding supposes that a flow's delays do not depend on its size; the others do not.")
}

var intervalNames = [3]string{"the paper's", "ours", "joint"}

// A holding is how intervals of each kind held on one traffic.
type holding struct {
	lines, breadths [3]plot.Series
	total           [3]perflow.Coverage
	lowest          [3]float64 // coverage, and of which size
	where           [3]string
}

// holding asks about some flows of each size, and adds rows to the table.
func (t *traffic) holding(plain *counters.Plain, counting *counters.Counted, decoded *joint.Result, most, pair int,
	table *experiment.Table) *holding {
	h := &holding{lowest: [3]float64{1, 1, 1}}
	for m, name := range intervalNames {
		h.lines[m] = plot.Series{Name: t.name + ", " + name, Paper: m == 0, Pair: pair}
		h.breadths[m] = plot.Series{Name: name, Paper: m == 0}
	}
	for b, bin := range bins {
		chosen := t.some(bin, most)
		if len(chosen) == 0 {
			continue
		}
		cells := []string{t.name, bin.Name, fmt.Sprint(len(chosen))}
		for m, of := range hold(t, plain, counting, decoded, chosen) {
			h.total[m].Merge(&of)
			if len(chosen) >= 100 && of.Share() < h.lowest[m] {
				h.lowest[m], h.where[m] = of.Share(), bin.Name
			}
			h.lines[m].Add(float64(b), 100*of.Share())
			h.breadths[m].Add(float64(b), 100*of.HalfWidth())
			cells = append(cells, fmt.Sprintf("%.1f %%, ± %s", 100*of.Share(), percent(of.HalfWidth())))
		}
		table.Row(cells)
	}
	return h
}

// judge judges the paper's intervals and ours.
func (h *holding) judge(run *experiment.Run, name string) {
	for m := range 2 {
		judge := run.Holds
		if m > 0 && h.total[m].Share() >= confidence {
			judge = run.Keeps
		}
		judge(fmt.Sprintf("%s: coverage of 95 %% intervals over %d flows, and of the worst size, %s", name, h.total[m].All, intervalNames[m]),
			"≥ 95 %", fmt.Sprintf("%.1f %%; at least %.1f %% (flows of %s)", 100*h.total[m].Share(), 100*h.lowest[m], h.where[m]),
			h.total[m].Share() >= confidence)
	}
}

// hold is how intervals of some flows hold their mean: the paper's, ours, and
// those of joint decoding.
func hold(t *traffic, plain *counters.Plain, counting *counters.Counted, decoded *joint.Result, chosen []int) (by [3]perflow.Coverage) {
	answers := counting.Estimate(t.records(chosen))
	for k, i := range chosen {
		f := &t.flows[i]
		up, down := plain.Gather(f.key)
		by[0].Add(experiment.Try(paper.Theorem2Interval(up, down, uint64(f.packets), confidence)), f.mean())
		by[1].Add(answers[k].MeanInterval(confidence), f.mean())
		by[2].Add(decoded.MeanInterval(i, confidence), f.mean())
	}
	return by
}
