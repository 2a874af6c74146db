package figreal

import (
	"fmt"

	"github.com/hoplag/hoplag/bench/counters"
	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/perflow"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/lds"
)

var realLDS = experiment.Experiment{
	Name: "real-lds", Title: "LDS: the error of flows by their size and by memory",
	Claim: "Half a cell for each flow gives flows of 500 to 999 packets a median error of 1.2 %, and larger ones less, whatever delays " +
		"do, on a link with next to no loss (section 5.1, two monitors in a real network). Where packets are lost, rows five times as long, " +
		"a spread over five cells, and sampling by 1, 0.5, 0.1 and 0.01 keep an answer for every flow (section 5.2).",
	Weight: 12, Quick: 5, Measure: measureLDS,
}

// perFlow is how many cells the paper has for a flow, in its reference sketch
// and in the one for losses: 70,000 and 350,000 for some 146,000 flows.
const (
	perFlow      = 70_000.0 / 146_000
	perFlowLossy = 5 * perFlow
)

// sketches are the paper's two shapes, and one between them that keeps answers
// for large flows at less cost to the rest; without their columns.
var sketches = []struct {
	name   string
	config lds.Config
}{
	{"spread 1", lds.Config{Rows: 4, Spread: 1, Rates: [lds.MaxRows]float64{1, 1, 1, 1}, SumBits: 48, DigestBits: 16}},
	{"spread 5, sampled", lds.Config{Rows: 4, Spread: 5, Rates: [lds.MaxRows]float64{1, 0.5, 0.1, 0.01}, Tolerance: 0.1, SumBits: 48,
		DigestBits: 16}},
	{"spread 1, two rows sampled", lds.Config{Rows: 4, Spread: 1, Rates: [lds.MaxRows]float64{1, 1, 0.1, 0.01}, SumBits: 48, DigestBits: 16}},
}

// ldsAnswers is what two sketches say about all flows of a capture.
type ldsAnswers struct {
	bytes         int              // of a sketch
	paper, joint  []float64        // Estimate; Decode with packet counts from flow records
	withoutCounts func() []float64 // Decode without
}

// askLDS measures a capture with sketches with a number of cells per flow.
func (c *capture) askLDS(run *experiment.Run, seed uint64, config lds.Config, cells float64) *ldsAnswers {
	config.Identity = seed
	config.Columns = max(config.Spread, int(cells*float64(len(c.flows))/float64(config.Rows)))
	up, down := counters.Pair(lds.New, config)
	packets, known := c.seen(seed, true)
	for p := range packets {
		if up.Update(p.Flow, p.ID, p.In); !p.Lost {
			down.Update(p.Flow, p.ID, p.Out)
		}
	}
	a := &ldsAnswers{bytes: config.Rows * config.Columns * config.CellBytes(), paper: perflow.Unanswered(len(known))}
	unknown := make([]joint.FlowRecord, len(known))
	for i := range known {
		known[i].Packets, unknown[i].Flow = float64(c.flows[i].sent), known[i].Flow
		if r, ok := experiment.Answer(lds.Estimate(up, down, known[i].Flow)); ok {
			a.paper[i] = r.Mean
		}
	}
	a.joint = experiment.Try(lds.Decode(run.Context(), up, down, known, joint.Options{})).Mean
	a.withoutCounts = func() []float64 {
		return experiment.Try(lds.Decode(run.Context(), up, down, unknown, joint.Options{})).Mean
	}
	return a
}

func measureLDS(run *experiment.Run) {
	captures := loadAll(run, sources...)
	memories := experiment.Choose(run, []float64{perFlow, perFlowLossy, 10}, []float64{perFlow, 1, perFlowLossy, 5, 10})
	seed := run.SeedOf("lds")
	run.Note("Real delays are of two kinds: a microsecond where the queue was empty, and up to tens of milliseconds where it was not. "+
		"The mean of all, in the pictures for comparison, is wrong for most flows by a factor of hundreds. How much a neighbour in a cell "+
		"harms depends on how far apart delays are, so that relative errors do not carry over from the paper's network to these.",
		"A flow of a few packets often has one cell to itself, and the least loaded cell is then its exact mean; joint decoding, which shares "+
			"out among all flows what the cells leave open, comes near that and not to it. By square errors see the table.",
		"A lost packet makes its cells useless. With a spread of 1, a flow that lost one has no cell left and gets no answer from its cells, "+
			"which counts as an error of 100 %; joint decoding then gives it what little the cells of its neighbours leave of the mean of all, "+
			"which can be worse. Those are large flows that waited, and so they decide the root mean square. Sampling two of the rows, without "+
			"a spread, gives most of them a cell back and costs the others little; it is not in the paper.")
	run.Config("sketches", sketches, "cells per flow", memories, "large flows", large, "seed", seed)
	table := run.Table("", fmt.Sprintf("Flows of at least %d packets, %.1f cells for each flow", large, perFlowLossy), "capture", "sketch",
		"memory", "with an answer", "median error, least loaded", "joint", "joint without counts", "r.m.s. error, least loaded", "joint",
		"joint without counts")
	for _, c := range experiment.Each(run, captures) {
		s, truth := c.study(), c.truth()
		var size, memory []plot.Series
		for k, shape := range experiment.Each(run, sketches) {
			lines := [2]plot.Series{{Name: shape.name + ", least loaded", Paper: true, Pair: k + 1}, {Name: shape.name + ", joint", Pair: k + 1}}
			over := lines // memory
			for _, cells := range experiment.Each(run, memories) {
				a := c.askLDS(run, seed, shape.config, cells)
				for i, answers := range [][]float64{a.paper, a.joint} {
					if len(s.large) >= s.least {
						over[i].Add(float64(a.bytes)/1000, 100*max(floor, s.median(answers)))
					}
					if cells == perFlow && k == 0 {
						judgeMiddling(run, c, s, answers, i == 1)
					}
					if cells == perFlowLossy {
						size = append(size, s.series(lines[i], answers, nil))
					}
				}
				if cells == perFlowLossy {
					table.Row(c.title, shape.name, a.judge(run, c, s, shape.name))
				}
			}
			memory = append(memory, over[:]...)
		}
		size = append(size, s.series(plot.Series{Name: "mean of all (LDA)", Pair: len(sketches) + 1}, sameForAll(len(c.flows), truth.Mean()),
			nil))
		drawSizes(run, "size", c, "LDS: error and flow size", fmt.Sprintf("%.1f cells for each flow. Dashed: the paper's estimator. Solid: "+
			"joint decoding of the same cells with the flows' packet counts.", perFlowLossy), size)
		drawMemory(run, c, "LDS", fmt.Sprintf("Median over the flows of at least %d packets; the paper's sketches have %.2f and, against "+
			"losses, %.1f cells for each flow, here the leftmost points and those at %s.", large, perFlow, perFlowLossy,
			kilobytes(perFlowLossy*float64(len(c.flows)*sketches[0].config.CellBytes()))), memory)
	}
}

// judgeMiddling judges the flows of 500 to 999 packets, if there are enough,
// by what the paper reports about them.
func judgeMiddling(run *experiment.Run, c *capture, s *study, answers []float64, joint bool) {
	in := s.flows(500, 999)
	if len(in) < 10 {
		return
	}
	name := map[bool]string{false: "least loaded", true: "joint"}[joint]
	got := perflow.Quantile(s.relative(answers, in), 0.5)
	run.Claim(fmt.Sprintf("%s: median error of the %d flows of 500 to 999 packets, %s, %.2f cells for each flow as in the paper", c.title,
		len(in), name, perFlow),
		"1.2 %", percent(got), byThePaper(got, 0.012, joint))
}

// judge compares the answers of one sketch, and returns its cells of the table.
func (a *ldsAnswers) judge(run *experiment.Run, c *capture, s *study, name string) []string {
	where := fmt.Sprintf("%s, %s, %s: ", c.title, name, kilobytes(float64(a.bytes)))
	run.Beats(where+fmt.Sprintf("median error of flows of %d packets or more, least loaded cells and joint decoding", large),
		s.median(a.joint), s.median(a.paper), 0.1)
	run.Beats(where+"root mean square error of the same", s.rms(a.joint), s.rms(a.paper), 0.1)
	row := []string{kilobytes(float64(a.bytes)), percent(s.answered(a.paper))}
	all := [][]float64{a.paper, a.joint, a.withoutCounts()}
	for _, off := range []func([]float64) float64{s.median, s.rms} {
		for _, answers := range all {
			row = append(row, percent(off(answers)))
		}
	}
	return row
}
