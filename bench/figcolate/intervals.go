package figcolate

import (
	"fmt"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/colate/paper"
	"github.com/hoplag/hoplag/estimate"
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
	most := run.Pick(200, 1500)
	seed := run.SeedOf("intervals")
	var all []*traffic
	own, config := ownDelays(run)
	all = append(all, own)
	for _, k := range []kind{backbone, dataCentre} {
		t := newTraffic(run, k)
		all = append(all, t)
	}
	n := scaled(run, 455_000)
	coverage := plot.Figure{
		Name: "coverage", Title: fmt.Sprintf("Flows whose mean is in its 95 %% interval, %d counters", n),
		Caption: "Dashed: the paper's. Solid: ours, of as many bits, some of which count.",
		X:       binAxis, Y: plot.Axis{Label: "flows (%)", Min: 0, Max: 100},
	}
	widths := plot.Figure{
		Name: "width", Title: "Half the width of intervals, median, " + own.name,
		Caption: "Relative to the mean delay. What is wider than its mean says only that little is known.",
		X:       binAxis, Y: plot.LogAxis("half width (%)"),
	}
	table := run.Table("", "Coverage of 95 % intervals, and median half width", "traffic", "packets of the flow", "flows", "the paper's",
		"ours", "joint, sums")
	configure(run, "traffic", []any{config, backbone.trace, dataCentre.trace}, "counters", n, "seed", seed)
	for pair, t := range experiment.Each(run, all) {
		plain := t.record(sums(n, seed))
		counting := t.count(counted(n, seed))
		decoded := plain.joint(run, t)
		h := t.holding(plain, counting, &decoded, most, pair+1, table)
		coverage.Series = append(coverage.Series, h.lines[:2]...)
		h.judge(run, t.name)
		if pair == 0 {
			widths.Series = h.breadths
		}
	}
	coverage.Series = append(coverage.Series, plot.Level("asked for", 100*confidence, 0, float64(len(bins)-1)))
	run.Figures(coverage, widths)

	run.Note("Flows of every size are asked for alike, so that large ones are far more of those counted than they are of the traffic. " +
		"The interval of joint decoding supposes that a flow's delays do not depend on its size; the others do not.")
}

var intervalNames = [3]string{"the paper's", "ours", "joint"}

// A holding is how intervals of each kind held on one traffic.
type holding struct {
	lines, breadths []plot.Series
	total           [3]struct{ in, all uint64 }
	lowest          [3]float64 // coverage, and of which size
	where           [3]string
}

// holding asks about some flows of each size, and adds rows to the table.
func (t *traffic) holding(plain *points, counting *countedPoints, decoded *joint.Result, most, pair int, table *experiment.Table) *holding {
	h := &holding{lowest: [3]float64{1, 1, 1}, lines: make([]plot.Series, 3), breadths: make([]plot.Series, 3)}
	for m, name := range intervalNames {
		h.lines[m] = plot.Series{Name: t.name + ", " + name, Paper: m == 0, Pair: pair}
		h.breadths[m] = plot.Series{Name: name, Paper: m == 0}
	}
	for b, bin := range bins {
		chosen := t.some(bin, most)
		if len(chosen) == 0 {
			continue
		}
		in, half := hold(t, plain, counting, decoded, chosen)
		for m := range h.total {
			h.total[m].in += uint64(in[m])
			h.total[m].all += uint64(len(chosen))
		}
		cells := []string{t.name, bin.Name, fmt.Sprint(len(chosen))}
		for m := range intervalNames {
			share := float64(in[m]) / float64(len(chosen))
			width := quantile(half[m], 0.5)
			if len(chosen) >= 100 && share < h.lowest[m] {
				h.lowest[m], h.where[m] = share, bin.Name
			}
			h.lines[m].Add(float64(b), 100*share)
			h.breadths[m].Add(float64(b), 100*width)
			cells = append(cells, fmt.Sprintf("%.1f %%, ± %s", 100*share, experiment.Percent(width)))
		}
		table.Add(cells...)
	}
	return h
}

// judge judges the paper's intervals and ours.
func (h *holding) judge(run *experiment.Run, name string) {
	for m := range 2 {
		share := float64(h.total[m].in) / float64(h.total[m].all)
		verdict := experiment.Holds(share >= confidence)
		if m > 0 && share >= confidence {
			verdict = experiment.Win
		}
		run.Claim(fmt.Sprintf("%s: coverage of 95 %% intervals over %d flows, and of the worst size, %s", name, h.total[m].all, intervalNames[m]),
			"≥ 95 %", fmt.Sprintf("%.1f %%; at least %.1f %% (flows of %s)", 100*share, 100*h.lowest[m], h.where[m]), verdict)
	}
}

// hold is how many intervals of some flows hold their mean, and half their
// widths relative to it: the paper's, ours, and those of joint decoding.
func hold(t *traffic, plain *points, counting *countedPoints, decoded *joint.Result, chosen []int) (in [3]int, half [3][]float64) {
	answers := counting.estimate(t, chosen)
	for k, i := range chosen {
		f := &t.flows[i]
		plain.gather(f)
		theirs := experiment.Try(paper.Theorem2Interval(plain.sender, plain.receiver, uint64(f.packets), confidence))
		for m, interval := range []estimate.Interval{theirs, answers[k].MeanInterval(confidence), decoded.MeanInterval(i, confidence)} {
			if interval.Contains(f.mean()) {
				in[m]++
			}
			half[m] = append(half[m], (interval.High-interval.Low)/2/f.mean())
		}
	}
	return in, half
}
