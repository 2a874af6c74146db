package figrli

import (
	"fmt"
	"math"
	"slices"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/perflow"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

var comparison = experiment.Experiment{
	Name: "rli-10", Title: "Against trajectory sampling, the multiflow estimator and probes (Fig. 10)",
	Claim: "On the flows that packet sampling at 0.1 % finds, at high utilisation, most of RLI's errors are below 1 %: 500 times less than " +
		"trajectory sampling, of which half are above 80 %, and almost 100 times less than the multiflow estimator; RLI-L is in between " +
		"(section V-C, Fig. 10a). At all utilisations RLI is in many cases ten times better than the multiflow estimator (Fig. 10b).",
	Weight: 40, Quick: 1.5, Measure: measureComparison,
}

// contenders are those of Fig. 10a.
var contenders = []string{"trajectory sampling", "multiflow estimator", byLeft.name, byLine.name, byPeriod.name, "RLI, references ahead"}

func measureComparison(run *experiment.Run) {
	packets := run.Pick(60_000, 1_500_000)
	run.Note("Both routers sample the same packets, 0.1 % of them by hash. A flow begins with its first sampled packet, and the truth is of "+
		"its packets from there on; RLI measures all of those. Trajectory sampling averages the flow's sampled delays, and the multiflow "+
		"estimator those of all flows' first and last samples within the flow's own.",
		"RLI's references go behind packets, and in another run ahead of them; claims of RLI are judged by the better.")
	table := run.Table("Relative error of flows' means: median / 75th percentile",
		append([]string{"traffic", "utilisation", "flows sampled"}, contenders...)...)
	for _, kind := range drawn {
		for _, u := range utilisations {
			lists, flows := compete(run, setting{kind: kind, utilisation: u, packets: packets, injector: adaptive})
			row := []string{kind.name, percent(u), fmt.Sprint(flows)}
			var medians []float64
			for _, list := range lists {
				medians, row = append(medians, median(list)), append(row, spread(list))
			}
			table.Row(row)
			judgeContenders(run, fmt.Sprintf("%s, %s", kind.name, percent(u)), u == levels[0].utilisation, medians)
		}
	}
}

// compete returns the errors of the contenders on the flows that sampling
// finds, and the number of those flows.
func compete(run *experiment.Run, s setting) (lists [][]float64, flows int) {
	p := simulate(run, s)
	known := p.sample()
	lists = append(lists, known.trajectory, known.multiflow)
	for _, m := range methods {
		lists = append(lists, p.judge(p.receive(p.config(m), known.born), known.truth).mean)
	}
	s.ahead = true
	q := simulate(run, s)
	also := q.sample()
	lists = append(lists, q.judge(q.receive(q.config(byLine), also.born), also.truth).mean)
	return lists, len(perflow.Known(known.trajectory))
}

func judgeContenders(run *experiment.Run, where string, high bool, medians []float64) {
	trajectory, multiflow, left, ours := medians[0], medians[1], medians[2], medians[4]
	line := min(medians[3], medians[5]) // wherever the references go
	times := func(what, paper string, ratio, low, high float64) {
		run.Claim(where+what, paper, number(ratio), experiment.Fits(ratio, low, high, 0.25))
	}
	if high {
		times(": trajectory sampling's median error over RLI's", "500", trajectory/line, 500, 500)
		times(": the multiflow estimator's over RLI's", "almost 100", multiflow/line, 100, 100)
		run.Holds(where+": RLI below RLI-L below multiflow below trajectory sampling", "in this order",
			percent(line)+", "+percent(left)+", "+percent(multiflow)+", "+percent(trajectory),
			line < left && left < multiflow && multiflow <= 1.05*trajectory)
	} else {
		times(": the multiflow estimator's median error over RLI's", "often over 10", multiflow/line, 10, math.Inf(1))
	}
	best := min(trajectory, multiflow, left, line)
	run.Within(where+": busy-aware's median error on the same flows", percent(best)+" (best of the others)", ours, best, 0.1)
}

// sampled is the fraction of the packets whose times both routers keep, chosen
// by the same hash (section V-C).
const sampled = 0.001

// A sampling is what routers know that keep the times of sampled packets at
// both ends.
type sampling struct {
	born  []int32 // the first sampled packet of each flow; -1 of a flow without one
	truth []flow  // each flow's delays from its first sampled packet on

	// Relative errors by flow: of the mean of the flow's own samples
	// (trajectory sampling), and of the mean of all flows' samples between its
	// first and its last (multiflow estimator). The latter uses only the first
	// and last of each flow, because a flow record keeps no others.
	trajectory, multiflow []float64
}

// sample returns the part of the departures' delays that the routers know.
func (p *passage) sample() *sampling {
	threshold := hashing.Threshold(sampled)
	type record struct {
		own         estimate.Moments
		first, last perflow.Sample
	}
	records := make([]record, len(p.flows))
	n := len(p.flows)
	s := &sampling{
		born: slices.Repeat([]int32{-1}, n), truth: make([]flow, n),
		trajectory: perflow.Unanswered(n), multiflow: perflow.Unanswered(n),
	}
	for i := range p.events {
		d := &p.events[i]
		if !d.regular() {
			continue
		}
		r := &records[d.flow]
		if hashing.Sampled(uint64(identity(d.number)), threshold) == 1 {
			here := perflow.Sample{At: d.out, Value: float64(d.delay)}
			if r.own.N() == 0 {
				r.first, s.born[d.flow] = here, d.number
			}
			r.last = here
			r.own.Add(float64(d.delay))
		}
		if s.born[d.flow] >= 0 {
			s.truth[d.flow].delays.Add(float64(d.delay))
		}
	}
	var background perflow.Samples
	for i := range records {
		r := &records[i]
		if r.own.N() > 0 {
			background = append(background, r.first)
		}
		if r.own.N() > 1 {
			background = append(background, r.last)
		}
	}
	between := background.Between()
	for i := range records {
		if r := &records[i]; r.own.N() > 0 {
			truth := s.truth[i].mean()
			s.trajectory[i] = estimate.RelativeError(r.own.Mean(), truth)
			s.multiflow[i] = estimate.RelativeError(between(r.first.At, r.last.At), truth)
		}
	}
	return s
}
