package figreal

import (
	"context"
	"errors"
	"fmt"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/lds"
)

var realLDS = experiment.Experiment{
	Name:   "real-lds",
	Group:  Group,
	Title:  "LDS: the error of flows by their size and by memory",
	Claim:  "Half a cell for each flow gives flows of 500 to 999 packets a median error of 1.2 %, and larger ones less, whatever delays do, on a link with next to no loss (section 5.1, two monitors in a real network). Where packets are lost, rows five times as long, a spread over five cells, and sampling by 1, 0.5, 0.1 and 0.01 keep an answer for every flow (section 5.2).",
	Weight: 12, Quick: 5,
	Run: runLDS,
}

// perFlow is how many cells the paper has for a flow, in its reference sketch
// and in that against losses: 70,000 and 350,000 for some 146,000 flows.
const (
	perFlow      = 70_000.0 / 146_000
	perFlowLossy = 5 * perFlow
)

// sketches are the paper's two shapes, and one between them that keeps large
// flows an answer at less cost to the rest; without their columns.
var sketches = []struct {
	name   string
	config lds.Config
}{
	{"spread 1", lds.Config{Rows: 4, Spread: 1, Rates: [lds.MaxRows]float64{1, 1, 1, 1}, SumBits: 48, DigestBits: 16}},
	{"spread 5, sampled", lds.Config{Rows: 4, Spread: 5, Rates: [lds.MaxRows]float64{1, 0.5, 0.1, 0.01}, Tolerance: 0.1, SumBits: 48, DigestBits: 16}},
	{"spread 1, two rows sampled", lds.Config{Rows: 4, Spread: 1, Rates: [lds.MaxRows]float64{1, 1, 0.1, 0.01}, SumBits: 48, DigestBits: 16}},
}

// ldsAnswers is what two sketches say of all flows of a capture.
type ldsAnswers struct {
	bytes         int                       // of a sketch
	paper, joint  []float64                 // Estimate; Decode with packet counts from flow records
	withoutCounts func() ([]float64, error) // Decode without
}

// askLDS measures a capture by sketches of so many cells a flow.
func (c *capture) askLDS(ctx context.Context, seed uint64, config lds.Config, cells float64) (*ldsAnswers, error) {
	config.Identity = seed
	config.Columns = max(config.Spread, int(cells*float64(len(c.flows))/float64(config.Rows)))
	up, down, err := pair(lds.New, config)
	if err != nil {
		return nil, err
	}
	c.observe(seed, up.Update, down.Update)
	keys := c.flowKeys(seed)
	a := &ldsAnswers{bytes: config.Rows * config.Columns * config.CellBytes(), paper: nothing(len(keys))}
	known, unknown := make([]joint.FlowRecord, len(keys)), make([]joint.FlowRecord, len(keys))
	for i, key := range keys {
		known[i] = joint.FlowRecord{Flow: key, Packets: float64(c.flows[i].sent)}
		unknown[i] = joint.FlowRecord{Flow: key}
		switch r, err := lds.Estimate(up, down, key); {
		case err == nil:
			a.paper[i] = r.Mean
		case !errors.Is(err, estimate.ErrNoSamples):
			return nil, err
		}
	}
	decoded, err := lds.Decode(ctx, up, down, known, joint.Options{})
	if err != nil {
		return nil, err
	}
	a.joint = decoded.Mean
	a.withoutCounts = func() ([]float64, error) {
		r, err := lds.Decode(ctx, up, down, unknown, joint.Options{})
		return r.Mean, err
	}
	return a, nil
}

func runLDS(ctx context.Context, run *experiment.Run) (experiment.Result, error) {
	captures, notes, err := loadAll(sources...)
	if err != nil {
		return experiment.Result{}, err
	}
	memories := []float64{perFlow, 1, perFlowLossy, 5, 10}
	if run.Quick {
		memories = []float64{perFlow, perFlowLossy, 10}
	}
	seed := run.SeedOf("lds")
	result := experiment.Result{
		Notes: append(notes,
			"Real delays are of two kinds: a microsecond where the queue was empty, and up to tens of milliseconds where it was not. The mean of all, in the pictures for comparison, is wrong for most flows by a factor of hundreds. How much a neighbour in a cell harms depends on how far apart delays are, so that relative errors do not carry over from the paper's network to these.",
			"A flow of a few packets often has one cell to itself, and the least loaded cell is then its exact mean; joint decoding, which shares out among all flows what the cells leave open, comes near that and not to it. By square errors see the table.",
			"A lost packet makes its cells useless. With a spread of 1, a flow that lost one has no cell left and gets no answer from its cells, which counts as an error of 100 %; joint decoding then gives it what little the cells of its neighbours leave of the mean of all, which can be worse. Those are large flows that waited, and so they decide the root mean square. Sampling two of the rows, without a spread, gives most of them a cell back and costs the others little; it is not in the paper.",
		),
		Config: map[string]any{"sketches": sketches, "cells per flow": memories, "large flows": large, "seed": seed},
	}
	table := experiment.Table{
		Title:   fmt.Sprintf("Flows of at least %d packets, %.1f cells for each flow", large, perFlowLossy),
		Columns: []string{"capture", "sketch", "memory", "with an answer", "median error, least loaded", "joint", "joint without counts", "r.m.s. error, least loaded", "joint", "joint without counts"},
	}
	for ci, c := range captures {
		s := c.study()
		truth := c.truth()
		var size []plot.Series
		memory := plot.Figure{
			Name: "memory-" + c.name, Title: "LDS: error and memory, " + c.title,
			Caption: fmt.Sprintf("Median over the flows of at least %d packets; the paper's sketches have %.2f and, against losses, %.1f cells for each flow, here the leftmost points and those at %s.", large, perFlow, perFlowLossy,
				kilobytes(perFlowLossy*float64(len(c.flows)*sketches[0].config.CellBytes()))),
			X: plot.Axis{Label: "memory at each point (kB)", Scale: plot.Log}, Y: errorAxis,
		}
		for k, shape := range sketches {
			paper := plot.Series{Name: shape.name + ", least loaded", Paper: true, Pair: k + 1}
			joint := plot.Series{Name: shape.name + ", joint", Pair: k + 1}
			for mi, cells := range memories {
				a, err := c.askLDS(ctx, seed, shape.config, cells)
				if err != nil {
					return experiment.Result{}, err
				}
				if err := run.Progress(ctx, (ci*len(sketches)+k)*len(memories)+mi+1, len(captures)*len(sketches)*len(memories)); err != nil {
					return experiment.Result{}, err
				}
				x := float64(a.bytes) / 1000
				old, ours := s.median(a.paper), s.median(a.joint)
				if len(s.large) >= s.least {
					paper.Add(x, 100*max(floor, old))
					joint.Add(x, 100*max(floor, ours))
				}
				if in := s.flows(500, 999); cells == perFlow && k == 0 && len(in) >= 10 {
					for _, by := range []struct {
						name    string
						answers []float64
					}{{"least loaded", a.paper}, {"joint", a.joint}} {
						got := quantile(s.relative(by.answers, in), 0.5)
						result.Claims = append(result.Claims, experiment.Claim{
							What:  fmt.Sprintf("%s: median error of the %d flows of 500 to 999 packets, %s, %.2f cells for each flow as in the paper", c.title, len(in), by.name, perFlow),
							Paper: "1.2 %", Ours: experiment.Percent(got), Verdict: byThePaper(got, 0.012, by.name == "joint"),
						})
					}
				}
				if cells != perFlowLossy {
					continue
				}
				uncounted, err := a.withoutCounts()
				if err != nil {
					return experiment.Result{}, err
				}
				size = append(size, s.series(plot.Series{Name: paper.Name, Paper: true, Pair: paper.Pair}, a.paper, nil), s.series(plot.Series{Name: joint.Name, Pair: joint.Pair}, a.joint, nil))
				table.Add(c.title, shape.name, kilobytes(float64(a.bytes)), experiment.Percent(s.answered(a.paper)),
					experiment.Percent(old), experiment.Percent(ours), experiment.Percent(s.median(uncounted)),
					experiment.Percent(s.rms(a.paper)), experiment.Percent(s.rms(a.joint)), experiment.Percent(s.rms(uncounted)))
				where := fmt.Sprintf("%s, %s, %s: ", c.title, shape.name, kilobytes(float64(a.bytes)))
				result.Claims = append(result.Claims,
					experiment.Claim{What: where + fmt.Sprintf("median error of flows of %d packets or more, least loaded cells and joint decoding", large), Paper: experiment.Percent(old), Ours: experiment.Percent(ours), Verdict: experiment.Judge(ours, old, 0.1)},
					experiment.Claim{What: where + "root mean square error of the same", Paper: experiment.Percent(s.rms(a.paper)), Ours: experiment.Percent(s.rms(a.joint)), Verdict: experiment.Judge(s.rms(a.joint), s.rms(a.paper), 0.1)})
			}
			memory.Series = append(memory.Series, paper, joint)
		}
		size = append(size, s.series(plot.Series{Name: "mean of all (LDA)", Pair: len(sketches) + 1}, sameForAll(len(c.flows), truth.Mean()), nil))
		result.Figures = append(result.Figures,
			sizeFigure(c, "LDS: error and flow size", fmt.Sprintf("%.1f cells for each flow. Dashed: the paper's estimator. Solid: joint decoding of the same cells with the flows' packet counts.", perFlowLossy), size...), memory)
	}
	result.Tables = []experiment.Table{table}
	return result, nil
}
