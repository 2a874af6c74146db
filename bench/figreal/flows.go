package figreal

import (
	"fmt"
	"math"
	"slices"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/perflow"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/lda"
)

var realFlows = experiment.Experiment{
	Name: "real-flows", Title: "All four side by side: the error of flows, with memory",
	Claim: "No paper compares all four on the same delays. LDS claims to be right where neighbouring packets have nothing to do with " +
		"each other, as behind two queues, and that RLI is not (sections 1 and 5.1 of the LDS paper).",
	Weight: 4, Quick: 4, Measure: measureFlows,
}

// A contender is one way to answer, on one capture.
type contender struct {
	name, memory, needs string
	answers             []float64
}

func measureFlows(run *experiment.Run) {
	captures := loadAll(run, sources...)
	seed := run.SeedOf("flows")
	axis := plot.LogAxis("relative error (%)")
	median := run.Draw("median", "Median error of flows",
		fmt.Sprintf("Flows of at least %d packets; the bars' ends are the quartiles. LDS and COLATE have equal memory, %.1f cells "+
			"of 12 bytes for each flow; without an answer the error is 100 %%. COLATE without counts was shown only the packets that arrived.",
			large, cellsPerFlow), plot.Axis{}, axis)
	squares := run.Draw("rms", "Root mean square error of flows",
		"The same, relative to the root mean square of the flows' delays: this is decided by the flows that waited.", plot.Axis{}, axis)
	table := run.Table("", fmt.Sprintf("Flows of at least %d packets", large), "capture", "method", "memory at a point", "needs",
		"with an answer", "median error", "90th percentile", "r.m.s. error")
	run.Note("LDA answers with one delay for all. RLI has references on the captured delays; its memory is a record for each "+
		"flow, at the receiver only, and grows with them. Where it is said that nothing was lost, the synopsis was shown only the packets that "+
		"arrived, since it has no answer otherwise.",
		"Where packets leave in the order they came, a reference every fifty packets tells most of what there is to tell, and RLI has the "+
			"smallest errors in time by far; it needs the references, and a record for each flow. Behind two queues it has no such thing to go "+
			"by. LDS, joint, has the smallest relative errors, and LDS gives the few large flows that lost a packet, which are those that "+
			"waited longest, next to nothing: they are its errors in time.")
	run.Config("cells per flow", cellsPerFlow, "lds", sketch, "colate", plain, "colate with counts", counted,
		"references every", every, "large flows", large, "seed", seed)
	for _, c := range experiment.Each(run, captures) {
		s := c.study()
		s.thin(run.Pick(200, math.MaxInt))
		list := c.contenders(run, seed, s)
		bars := median.Line(plot.Series{Name: c.title, Kind: plot.Bars})
		rms := squares.Line(plot.Series{Name: c.title, Kind: plot.Bars})
		median.X.Categories = nil
		for k, m := range list {
			median.X.Categories = append(median.X.Categories, m.name)
			e := s.relative(m.answers, s.large)
			at := func(p float64) float64 { return 100 * max(floor, perflow.Quantile(e, p)) }
			bars.AddRange(float64(k), at(0.5), at(0.25), at(0.75))
			rms.Add(float64(k), 100*s.rms(m.answers))
			table.Row(c.title, m.name, m.memory, m.needs, percent(s.answered(m.answers)), percent(perflow.Quantile(e, 0.5)),
				percent(perflow.Quantile(e, 0.9)), percent(s.rms(m.answers)))
		}
		squares.X = median.X
		byRLI, least, joint := list[1].answers, list[2].answers, list[3].answers
		if c.rate == 0 {
			run.Holds(c.title+": median error of LDS, least loaded, against RLI behind two queues", "less than "+percent(s.median(byRLI)),
				percent(s.median(least)), s.median(least) < s.median(byRLI))
		}
		run.Beats(c.title+": median error of RLI and of LDS, joint", s.median(joint), s.median(byRLI), 0.1)
		run.Beats(c.title+": root mean square error of RLI and of LDS, joint", s.rms(joint), s.rms(byRLI), 0.1)
	}
}

// contenders asks all four synopses about a capture's flows.
func (c *capture) contenders(run *experiment.Run, seed uint64, s *study) []contender {
	config := lda.DefaultConfig
	config.Identity = seed
	all := experiment.Try(lda.Estimate(c.aggregate(config)))
	byRLI, receiver := c.askRLI(seed)
	least, joined, size := c.askLDS(run, seed, sketch)
	spread, _, _ := c.askLDS(run, seed, lossy)
	theorem2, together := c.askPaper(run, seed, s.large)
	memory := kilobytes(float64(size))
	return []contender{
		{"LDA, mean of all", kilobytes(float64(config.EncodedSize())), "", slices.Repeat([]float64{all.Mean}, len(c.flows))},
		{"RLI", kilobytes(float64(receiver)), fmt.Sprintf("a reference every %d packets", every), byRLI},
		{"LDS, least loaded", memory, "", least},
		{"LDS, joint", memory, "all flow records", joined},
		{"LDS, spread 5", memory, "", spread},
		{"COLATE, Theorem 2", memory, "the flow's record; nothing lost", theorem2},
		{"COLATE, counting", memory, "the flow's record", c.askCOLATE(seed, s.large)},
		{"COLATE, joint", memory, "all flow records; nothing lost", together},
	}
}
