package figreal

import (
	"fmt"
	"math"
	"slices"

	"github.com/hoplag/hoplag/bench/counters"
	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/perflow"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/colate"
	"github.com/hoplag/hoplag/colate/paper"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
)

var realCOLATE = experiment.Experiment{
	Name: "real-colate", Title: "COLATE: the error of flows by their size and by memory",
	Claim: "By Theorem 2, with 20 of 455,334 shared counters to a flow, the mean delays of 95 % of the flows are within 5 % (section " +
		"6.2.1, recorded packets through simulated queues without loss). Losses are met by several counter vectors, of which one that lost " +
		"nothing is used (section 1.4).",
	Weight: 15, Quick: 5, Measure: measureCOLATE,
}

// countersPerFlow is as many as colate.DefaultConfig has for 10,000 flows.
const countersPerFlow = 45

// counting is how many bits of a counter count its packets, if any do: no flow
// here has enough packets to overflow it.
const counting = 16

// recorders are the ways to use a counter, without the number of counters: the
// paper's plain sums, and counters that also count.
var recorders = struct {
	plain, vectors paper.Config
	counted        colate.Config
}{
	plain:   paper.Config{PerFlow: 20, Bits: 60, TimeBits: 42, Vectors: 1},
	vectors: paper.Config{PerFlow: 20, Bits: 60, TimeBits: 42, Vectors: paper.MaxVectors},
	counted: colate.Config{PerFlow: 20, Bits: 60, CountBits: counting, DigestBits: 4, Period: colate.MaxPeriod},
}

// colateAnswers is what two recorders say about flows.
type colateAnswers struct {
	bytes int64
	means []float64        // of each queried flow by itself
	joint func() []float64 // of all flows, decoded together
}

// size returns how many counters a vector has with a given number for each
// flow.
func (c *capture) size(perFlow, vectors int, each float64) int {
	return max(2*perFlow, int(each*float64(len(c.flows))/float64(vectors)))
}

// askPaper measures a capture with a number of the paper's counters for each
// flow.
func (c *capture) askPaper(run *experiment.Run, seed uint64, config paper.Config, each float64, withLost bool, asked []int) *colateAnswers {
	config.Identity, config.Counters = seed, c.size(config.PerFlow, config.Vectors, each)
	packets, records := c.seen(seed, withLost)
	plain := counters.Record(config, packets)
	a := &colateAnswers{bytes: config.MemoryBits() / 8, means: perflow.Unanswered(len(records))}
	for _, i := range asked {
		a.means[i] = plain.Theorem2(records[i].Flow, c.flows[i].delays.N())
		run.Alive()
	}
	a.joint = func() []float64 { return plain.Joint(run, records).Mean }
	return a
}

// askCOLATE measures a capture with a number of counters for each flow, as
// askPaper does.
func (c *capture) askCOLATE(run *experiment.Run, seed uint64, each float64, withLost bool, asked []int) *colateAnswers {
	config := recorders.counted
	config.Identity, config.Counters = seed, c.size(config.PerFlow, 1, each)
	packets, records := c.seen(seed, withLost)
	counted := counters.Count(config, packets)
	some := make([]joint.FlowRecord, len(asked))
	for k, i := range asked {
		some[k] = records[i]
	}
	a := &colateAnswers{bytes: int64(config.Counters) * int64(config.Bits) / 8, means: perflow.Unanswered(len(records))}
	for k, answer := range counted.Estimate(some) {
		a.means[asked[k]] = answer.Mean
	}
	a.joint = func() []float64 { return counted.Joint(run, records).Mean }
	return a
}

func measureCOLATE(run *experiment.Run) {
	captures := loadAll(run, sources...)
	memories := experiment.Choose(run, []float64{5, countersPerFlow}, []float64{5, 15, countersPerFlow, 135})
	most := run.Pick(15, 300) // small flows queried, of each bin
	seed := run.SeedOf("colate")
	run.Note("With lost packets Theorem 2 has no answer here: every vector, and with eight the least of them still sees one packet in 128, "+
		"lost packets and disagrees. So Theorem 2 and joint decoding without counts are shown the packets that arrived, as if none had been "+
		"lost; the counters that count are shown all, as they were.",
		"Noise in a counter is the delays of other flows' packets. Where most packets do not wait and some wait ten thousand times as long, "+
			"that noise exceeds the delay of a flow that did not wait: Theorem 2, which asks of each flow alone, cannot find it. Joint decoding "+
			"can, as it knows what most of the noise is; and counts tell one flow which of its counters hold no other flow's packets.")
	run.Config("plain", recorders.plain, "counted", recorders.counted, "vectors", recorders.vectors, "counters per flow", memories,
		"small flows", most, "large flows", large, "seed", seed)
	table := run.Table("",
		fmt.Sprintf("Flows of at least %d packets, %d counters of %d bits for each flow", large, countersPerFlow, recorders.plain.Bits),
		"capture", "memory", "counters", "packets", "with an answer", "median error, of one flow", "joint", "r.m.s. error, of one flow", "joint")
	for _, c := range experiment.Each(run, captures) {
		w := &countedCapture{capture: c, study: c.study(), seed: seed}
		w.thin(run.Pick(200, math.MaxInt))
		lines := []plot.Series{
			{Name: "Theorem 2, nothing lost", Paper: true, Pair: 1},
			{Name: "joint, nothing lost", Pair: 2},
			{Name: "counters that count", Pair: 3},
			{Name: "joint, counters that count", Pair: 4},
		}
		memory := slices.Clone(lines)
		var size []plot.Series
		for _, each := range experiment.Each(run, memories) {
			flows := w.large
			if each == countersPerFlow {
				flows = w.thinned(most)
			}
			w.plain, w.counted = c.askPaper(run, seed, recorders.plain, each, false, flows), c.askCOLATE(run, seed, each, true, flows)
			w.plainJoint, w.countedJoint = w.plain.joint(), w.counted.joint()
			for k, answers := range w.answers() {
				memory[k].Add(float64(w.plain.bytes)/1000, 100*max(floor, w.median(answers)))
				if each == countersPerFlow {
					size = append(size, w.series(lines[k], answers, flows))
				}
			}
			if each == countersPerFlow {
				truth := c.truth()
				size = append(size, w.series(plot.Series{Name: "mean of all (LDA)", Pair: 5}, sameForAll(len(c.flows), truth.Mean()), flows))
				w.judge(run, table)
			}
		}
		w.judgeVectors(run)
		drawSizes(run, "size", c, "COLATE: error and flow size", fmt.Sprintf("%d counters of %d bits for each flow. Dashed: "+
			"the paper's Theorem 2. Counters that count see the lost packets too.", countersPerFlow, recorders.plain.Bits), size)
		drawMemory(run, c, "COLATE", fmt.Sprintf("Median over the flows of at least %d packets.", large), memory)
	}
}

// A countedCapture is what recorders of one memory say about a capture.
type countedCapture struct {
	*capture
	*study
	seed uint64

	plain, counted           *colateAnswers // shown what arrived; shown all
	plainJoint, countedJoint []float64
}

// answers returns those of the drawn lines.
func (w *countedCapture) answers() [][]float64 {
	return [][]float64{w.plain.means, w.plainJoint, w.counted.means, w.countedJoint}
}

// judge adds the rows and claims at the paper's memory.
func (w *countedCapture) judge(run *experiment.Run, table *experiment.Table) {
	arrived := w.askCOLATE(run, w.seed, countersPerFlow, false, w.study.large)
	arrivedJoint := arrived.joint()
	row := func(kind, packets string, a *colateAnswers, joint []float64) {
		cells := []string{w.title, kilobytes(float64(a.bytes)), kind, packets, percent(w.answered(a.means))}
		for _, off := range []func([]float64) float64{w.median, w.rms} {
			for _, list := range [][]float64{a.means, joint} {
				cells = append(cells, percent(off(list)))
			}
		}
		table.Row(cells)
	}
	row("sums (Theorem 2)", "that arrived", w.plain, w.plainJoint)
	row("sums and counts", "that arrived", arrived, arrivedJoint)
	row("sums and counts", "all", w.counted, w.countedJoint)

	where := fmt.Sprintf("%s, %s: ", w.title, kilobytes(float64(w.plain.bytes)))
	within := func(what string, answers []float64, failed experiment.Verdict) {
		share := estimate.NewEmpirical(w.relative(answers, w.study.large)).CDF(0.05)
		if share >= 0.95 {
			failed = experiment.AsGood
		}
		run.Claim(where+fmt.Sprintf("flows of %d packets or more whose mean is within 5 %%, %s", large, what), "95 %", percent(share), failed)
	}
	within("Theorem 2, as if nothing were lost", w.plain.means, experiment.DoesNotHold)
	within("counters that count, with all losses", w.counted.means, experiment.Loss)
	theorem := w.median(w.plain.means)
	run.Beats(where+fmt.Sprintf("median error of flows of %d packets or more as if nothing were lost, Theorem 2 and joint decoding", large),
		w.median(w.plainJoint), theorem, 0.1)
	run.Beats(where+"the same, Theorem 2 as if nothing were lost and counters that count with all losses", w.median(w.counted.means),
		theorem, 0.1)
	run.Beats(where+"the same by joint decoding, without counts and with, nothing lost", w.median(arrivedJoint), w.median(w.plainJoint), 0.1)
	run.Beats(where+"root mean square error, Theorem 2 and joint decoding", w.rms(w.plainJoint), w.rms(w.plain.means), 0.1)
}

// judgeVectors counts the answers of several vectors under the capture's loss.
func (w *countedCapture) judgeVectors(run *experiment.Run) {
	some := w.study.large[:min(len(w.study.large), 50)]
	vectors := w.askPaper(run, w.seed, recorders.vectors, countersPerFlow, true, some)
	answers := 0
	for _, i := range some {
		if !math.IsNaN(vectors.means[i]) {
			answers++
		}
	}
	run.Holds(fmt.Sprintf("%s: large flows, of %d, with an answer by %d vectors without counts, %s of the packets lost", w.title, len(some),
		paper.MaxVectors, percent(w.loss())),
		"all", fmt.Sprint(answers), answers == len(some))
}
