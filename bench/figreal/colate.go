package figreal

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/perflow"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/colate"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
)

var realCOLATE = experiment.Experiment{
	Name:  "real-colate",
	Group: Group,
	Title: "COLATE: the error of flows by their size and by memory",
	Claim: "By Theorem 2, with 20 of 455,334 shared counters to a flow, the mean delays of 95 % of the flows are within 5 % (section " +
		"6.2.1, recorded packets through simulated queues without loss). Losses are met by several counter vectors, of which one that lost " +
		"nothing is used (section 1.4).",
	Weight: 15, Quick: 5,
	Measure: measureCOLATE,
}

// countersPerFlow are as many as colate.DefaultConfig has for 10,000 flows.
const countersPerFlow = 45

// counting is how many bits of a counter count its packets where any do: no
// flow here has packets enough to overflow it.
const counting = 16

// recorders are the ways to use a counter, without the number of counters.
var recorders = struct{ plain, counted, vectors colate.Config }{
	plain:   colate.Config{PerFlow: 20, Bits: 52, Vectors: 1},
	counted: colate.Config{PerFlow: 20, Bits: 52, CountBits: counting, Vectors: 1},
	vectors: colate.Config{PerFlow: 20, Bits: 52, Vectors: colate.MaxVectors},
}

// colateAnswers is what two recorders say of flows.
type colateAnswers struct {
	bytes           int64
	theorem, single []float64        // Theorem 2; Estimate
	joint           func() []float64 // Joint, of all flows
}

// askCOLATE measures a capture by so many counters for each flow. Flow records
// have the packets that arrived. Answers are to the flows asked about; joint
// decoding, if asked for, is of all.
func (c *capture) askCOLATE(run *experiment.Run, seed uint64, config colate.Config, counters float64, withLost bool,
	asked []int) *colateAnswers {
	config.Identity = seed
	config.Counters = max(2*config.PerFlow, int(counters*float64(len(c.flows))/float64(config.Vectors)))
	up, down := pair(colate.New, config)
	keys := c.flowKeys(seed)
	for i := range c.packets {
		if p := &c.packets[i]; withLost || !p.lost {
			up.Update(keys[p.flow], packetKey(seed, p), p.in)
		}
	}
	for _, number := range c.leaving {
		p := &c.packets[number]
		down.Update(keys[p.flow], packetKey(seed, p), p.out)
	}
	if up.Pending() || down.Pending() {
		run.Try(errors.New("a capture did not fit an epoch"))
	}
	a := &colateAnswers{bytes: config.MemoryBits() / 8, theorem: perflow.Unanswered(len(keys)), single: perflow.Unanswered(len(keys))}
	sender, receiver := pair(colate.NewSubvector, config)
	for _, i := range asked {
		sender.Reset(keys[i])
		receiver.Reset(keys[i])
		run.Try(errors.Join(sender.Add(up.Current()), receiver.Add(down.Current())))
		if r, ok := experiment.Answer(colate.Estimate(sender, receiver, c.flows[i].delays.N())); ok {
			a.theorem[i], a.single[i] = r.Linear, r.Mean
		}
		run.Alive()
	}
	a.joint = func() []float64 {
		records := make([]joint.FlowRecord, len(keys))
		for i, key := range keys {
			records[i] = joint.FlowRecord{Flow: key, Packets: float64(c.flows[i].delays.N())}
		}
		epochs := func(r *colate.Recorder) []*colate.Epoch { return []*colate.Epoch{r.Current()} }
		return experiment.Try(colate.Joint(run.Context(), epochs(up), epochs(down), records, joint.Options{})).Mean
	}
	return a
}

func measureCOLATE(run *experiment.Run) {
	captures := loadAll(run, sources...)
	memories := []float64{5, 15, countersPerFlow, 135}
	if run.Quick {
		memories = []float64{5, countersPerFlow}
	}
	most := run.Pick(15, 300) // small flows asked about, of each bin
	seed := run.SeedOf("colate")
	run.Note(
		"Theorem 2 is read from sums that wrap, as differences of counters; that it is the same but for rounding, package colate's tests "+
			"show. With lost packets it has no answer here: every vector, and with eight the least of them still sees one packet in 128, lost "+
			"packets and disagrees. So Theorem 2, the trimmed mean and joint decoding without counts are shown the packets that arrived, as if "+
			"none had been lost; the counters that count are shown all, as they were.",
		"Noise in a counter is the delays of other flows' packets. Where most packets do not wait and some wait ten thousand times as long, "+
			"that noise exceeds the delay of a flow that did not wait: Theorem 2 and the trimmed mean, which ask of each flow alone, cannot "+
			"find it. Joint decoding can, as it knows what most of the noise is; and counts tell one flow which of its counters hold no other "+
			"flow's packets.",
	)
	run.Config("plain", recorders.plain, "counted", recorders.counted, "vectors", recorders.vectors, "counters per flow", memories,
		"small flows", most, "large flows", large, "seed", seed)
	table := run.Table("", fmt.Sprintf("Flows of at least %d packets, %d counters of %d bits for each flow", large, countersPerFlow,
		recorders.plain.Bits),
		"capture", "memory", "counters", "packets", "with an answer", "median error, Theorem 2", "of one flow, ours", "joint",
		"r.m.s. error, Theorem 2", "of one flow, ours", "joint")
	for _, c := range experiment.Each(run, captures) {
		w := &countedCapture{capture: c, study: c.study(), seed: seed}
		w.thin(run.Pick(200, math.MaxInt))
		lines := []plot.Series{
			{Name: "Theorem 2, nothing lost", Paper: true, Pair: 1},
			{Name: "trimmed, nothing lost", Pair: 1},
			{Name: "joint, nothing lost", Pair: 2},
			{Name: "counters that count", Pair: 3},
			{Name: "joint, counters that count", Pair: 4},
		}
		memory := slices.Clone(lines)
		var size []plot.Series
		for _, counters := range experiment.Each(run, memories) {
			flows := w.large
			if counters == countersPerFlow {
				flows = w.thinned(most)
			}
			w.ask(run, counters, flows)
			for k, answers := range w.answers() {
				memory[k].Add(float64(w.plain.bytes)/1000, 100*max(floor, w.median(answers)))
				if counters == countersPerFlow {
					size = append(size, w.series(lines[k], answers, flows))
				}
			}
			if counters == countersPerFlow {
				truth := c.truth()
				size = append(size, w.series(plot.Series{Name: "mean of all (LDA)", Pair: 5}, sameForAll(len(c.flows), truth.Mean()), flows))
				w.judge(run, table)
			}
		}
		w.judgeVectors(run)
		run.Figures(sizeFigure(c, "COLATE: error and flow size", fmt.Sprintf("%d counters of %d bits for each flow. Dashed: "+
			"the paper's Theorem 2. Counters that count see the lost packets too.", countersPerFlow, recorders.plain.Bits), size),
			memoryFigure(c, "COLATE", fmt.Sprintf("Median over the flows of at least %d packets.", large), memory))
	}
}

// A countedCapture is what recorders of one memory say of a capture.
type countedCapture struct {
	*capture
	*study
	seed uint64

	plain, counted           *colateAnswers // shown what arrived; shown all
	plainJoint, countedJoint []float64
}

func (w *countedCapture) ask(run *experiment.Run, counters float64, flows []int) {
	w.plain = w.askCOLATE(run, w.seed, recorders.plain, counters, false, flows)
	w.counted = w.askCOLATE(run, w.seed, recorders.counted, counters, true, flows)
	w.plainJoint, w.countedJoint = w.plain.joint(), w.counted.joint()
}

// answers are those of the lines drawn.
func (w *countedCapture) answers() [][]float64 {
	return [][]float64{w.plain.theorem, w.plain.single, w.plainJoint, w.counted.single, w.countedJoint}
}

// judge adds the rows and claims at the paper's memory.
func (w *countedCapture) judge(run *experiment.Run, table *experiment.Table) {
	arrived := w.askCOLATE(run, w.seed, recorders.counted, countersPerFlow, false, w.study.large)
	arrivedJoint := arrived.joint()
	row := func(kind, packets string, a *colateAnswers, joint []float64) {
		cells := []string{w.title, kilobytes(float64(a.bytes)), kind, packets, experiment.Percent(w.answered(a.single))}
		for _, off := range []func([]float64) float64{w.median, w.rms} {
			for _, list := range [][]float64{a.theorem, a.single, joint} {
				cells = append(cells, experiment.Percent(off(list)))
			}
		}
		table.Add(cells...)
	}
	row("sums", "that arrived", w.plain, w.plainJoint)
	row("sums and counts", "that arrived", arrived, arrivedJoint)
	row("sums and counts", "all", w.counted, w.countedJoint)

	where := fmt.Sprintf("%s, %s: ", w.title, kilobytes(float64(w.plain.bytes)))
	within := func(what string, answers []float64, failed experiment.Verdict) {
		share := estimate.NewEmpirical(w.relative(answers, w.study.large)).CDF(0.05)
		if share >= 0.95 {
			failed = experiment.AsGood
		}
		run.Claim(where+fmt.Sprintf("flows of %d packets or more whose mean is within 5 %%, %s", large, what), "95 %",
			experiment.Percent(share), failed)
	}
	within("Theorem 2, as if nothing were lost", w.plain.theorem, experiment.DoesNotHold)
	within("counters that count, with all losses", w.counted.single, experiment.Loss)
	theorem := w.median(w.plain.theorem)
	run.Beats(where+fmt.Sprintf("median error of flows of %d packets or more as if nothing were lost, Theorem 2 and trimmed mean", large),
		w.median(w.plain.single), theorem, 0.1)
	run.Beats(where+"the same, Theorem 2 and joint decoding", w.median(w.plainJoint), theorem, 0.1)
	run.Beats(where+"the same, Theorem 2 as if nothing were lost and counters that count with all losses", w.median(w.counted.single),
		theorem, 0.1)
	run.Beats(where+"the same by joint decoding, without counts and with, nothing lost", w.median(arrivedJoint), w.median(w.plainJoint), 0.1)
	run.Beats(where+"root mean square error, Theorem 2 and joint decoding", w.rms(w.plainJoint), w.rms(w.plain.theorem), 0.1)
}

// judgeVectors counts the answers of several vectors under the capture's loss.
func (w *countedCapture) judgeVectors(run *experiment.Run) {
	some := w.study.large[:min(len(w.study.large), 50)]
	vectors := w.askCOLATE(run, w.seed, recorders.vectors, countersPerFlow, true, some)
	answers := 0
	for _, i := range some {
		if !math.IsNaN(vectors.theorem[i]) {
			answers++
		}
	}
	run.Holds(fmt.Sprintf("%s: large flows, of %d, with an answer by %d vectors without counts, %s of the packets lost", w.title, len(some),
		colate.MaxVectors, experiment.Percent(w.loss())),
		"all", fmt.Sprint(answers), answers == len(some))
}
