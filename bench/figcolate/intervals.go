package figcolate

import (
	"fmt"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/perflow"
	"github.com/hoplag/hoplag/colate"
	"github.com/hoplag/hoplag/colate/paper"
	"github.com/hoplag/hoplag/estimate/joint"
)

// Intervals compares COLATE's intervals of flows' means with the truth.
var Intervals = experiment.Experiment{
	Name: "ours-colate-intervals", Title: "COLATE: intervals that hold",
	Claim: "The paper's analysis takes time stamps to be smeared over counters unit by unit (section 3.2), and the interval that follows " +
		"is to hold with the probability stated; ours is calibrated by the counters of flows that never were, and is to hold at least as " +
		"often as it says.",
	Weight: 30, Quick: 6, Measure: measureIntervals,
}

// confidence is that of the intervals.
const confidence = 0.95

func measureIntervals(run *experiment.Run) {
	most, seed := run.Pick(200, 1500), run.SeedOf("intervals")
	all := []*traffic{ownDelays(run), newTraffic(run, backbone), newTraffic(run, dataCentre)}
	n := scaled(run, 455_000)
	table := run.Table("Coverage of 95 % intervals, and median half width", "traffic", "packets of the flow", "flows", "the paper's",
		"ours", "joint, sums")
	for _, t := range all {
		p, ask := t.plain(n, seed), t.counted(n, seed)
		decoded := p.decode(t.everyRecord())
		t.holding(p, ask, &decoded, most, table).judge(run, t.name)
	}
	run.Note("Flows of every size are asked for alike, so that large ones are far more of those counted than they are of the traffic. " +
		"The interval of joint decoding supposes that a flow's delays do not depend on its size; the others do not.")
}

var intervalNames = [3]string{"the paper's", "ours", "joint"}

// A holding says how often intervals of each kind held on one traffic.
type holding struct {
	total  [3]perflow.Coverage
	lowest [3]float64 // coverage, and of which size
	where  [3]string
}

// holding queries some flows of each size, and adds rows to the table.
func (t *traffic) holding(p plain, ask func([]joint.FlowRecord) []colate.Result, decoded *joint.Result, most int,
	table *experiment.Table) *holding {
	h := &holding{lowest: [3]float64{1, 1, 1}}
	for _, bin := range bins {
		chosen := t.some(bin, most)
		if len(chosen) == 0 {
			continue
		}
		cells := []string{t.name, bin.Name, fmt.Sprint(len(chosen))}
		for m, of := range hold(t, p, ask, decoded, chosen) {
			h.total[m].Merge(&of)
			if len(chosen) >= 100 && of.Share() < h.lowest[m] {
				h.lowest[m], h.where[m] = of.Share(), bin.Name
			}
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
		if m > 0 {
			judge = run.Meets
		}
		judge(fmt.Sprintf("%s: coverage of 95 %% intervals over %d flows, and of the worst size, %s", name, h.total[m].All, intervalNames[m]),
			"≥ 95 %", fmt.Sprintf("%.1f %%; at least %.1f %% (flows of %s)", 100*h.total[m].Share(), 100*h.lowest[m], h.where[m]),
			h.total[m].Share() >= confidence)
	}
}

// hold returns how often the intervals of some flows hold their mean: the
// paper's, ours, and those of joint decoding.
func hold(t *traffic, p plain, ask func([]joint.FlowRecord) []colate.Result, decoded *joint.Result, chosen []int) (by [3]perflow.Coverage) {
	answers := ask(t.records(chosen))
	for k, i := range chosen {
		f := &t.flows[i]
		by[0].Add(paper.Theorem2Interval(p.up, p.down, f.key, uint64(f.packets), confidence), f.mean())
		by[1].Add(answers[k].MeanInterval(confidence), f.mean())
		by[2].Add(decoded.MeanInterval(i, confidence), f.mean())
	}
	return by
}
