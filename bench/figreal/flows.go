package figreal

import (
	"context"
	"fmt"
	"math"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/rli"
)

var realFlows = experiment.Experiment{
	Name:   "real-flows",
	Group:  Group,
	Title:  "All four side by side: the error of flows, with memory",
	Claim:  "No paper compares all four on the same delays. LDS claims to be right where neighbouring packets have nothing to do with each other, as behind two queues, and that RLI is not (sections 1 and 5.1 of the LDS paper).",
	Weight: 4, Quick: 4,
	Run: runFlows,
}

// A contender is one way to answer, on one capture.
type contender struct {
	name, memory, needs string
	answers             []float64
}

func runFlows(ctx context.Context, run *experiment.Run) (experiment.Result, error) {
	captures, notes, err := loadAll(sources...)
	if err != nil {
		return experiment.Result{}, err
	}
	seed := run.SeedOf("flows")
	median := plot.Figure{
		Name: "median", Title: "Median error of flows",
		Caption: fmt.Sprintf("Flows of at least %d packets; the bars' ends are the quartiles. LDS and COLATE have equal memory, %.1f cells of 12 bytes for each flow; without an answer the error is 100 %%. COLATE without counts was shown only the packets that arrived.", large, perFlowLossy),
		Y:       plot.Axis{Label: "relative error (%)", Scale: plot.Log},
	}
	squares := plot.Figure{
		Name: "rms", Title: "Root mean square error of flows",
		Caption: "The same, relative to the root mean square of the flows' delays: this is decided by the flows that waited.",
		Y:       plot.Axis{Label: "relative error (%)", Scale: plot.Log},
	}
	table := experiment.Table{
		Title:   fmt.Sprintf("Flows of at least %d packets", large),
		Columns: []string{"capture", "method", "memory at a point", "needs", "with an answer", "median error", "90th percentile", "r.m.s. error"},
	}
	result := experiment.Result{
		Notes: append(notes,
			"LDA answers with one delay for all. RLI has references on the captured delays as in real-rli; its memory is a record for each flow, at the receiver only, and grows with them. Where it is said that nothing was lost, the synopsis was shown only the packets that arrived, since it has no answer otherwise (see real-colate).",
			"Where packets leave in the order they came, a reference every fifty packets tells most of what there is to tell, and RLI has the smallest errors in time by far; it needs the references, and a record for each flow. Behind two queues it has no such thing to go by. LDS, joint, has the smallest relative errors, and LDS gives the few large flows that lost a packet, which are those that waited longest, next to nothing: they are its errors in time.",
		),
		Config: map[string]any{"cells per flow": perFlowLossy, "lds": sketches[0], "colate": recorders.plain, "colate with counts": recorders.counted, "references every": every, "large flows": large, "seed": seed},
	}
	for ci, c := range captures {
		s := c.study()
		s.thin(run.Pick(200, math.MaxInt))
		list, err := c.contenders(ctx, seed, s)
		if err != nil {
			return experiment.Result{}, err
		}
		if err := run.Progress(ctx, ci+1, len(captures)); err != nil {
			return experiment.Result{}, err
		}
		bars := plot.Series{Name: c.title, Kind: plot.Bars}
		rms := plot.Series{Name: c.title, Kind: plot.Bars}
		for k, m := range list {
			if ci == 0 {
				median.X.Categories = append(median.X.Categories, m.name)
				squares.X.Categories = append(squares.X.Categories, m.name)
			}
			e := s.relative(m.answers, s.large)
			bars.AddRange(float64(k), 100*max(floor, quantile(e, 0.5)), 100*max(floor, quantile(e, 0.25)), 100*max(floor, quantile(e, 0.75)))
			rms.Add(float64(k), 100*s.rms(m.answers))
			table.Add(c.title, m.name, m.memory, m.needs, experiment.Percent(s.answered(m.answers)), experiment.Percent(quantile(e, 0.5)), experiment.Percent(quantile(e, 0.9)), experiment.Percent(s.rms(m.answers)))
		}
		median.Series = append(median.Series, bars)
		squares.Series = append(squares.Series, rms)
		byRLI, least, joint := list[1].answers, list[2].answers, list[3].answers
		claim := func(what, of string, theirs, ours float64, v experiment.Verdict) {
			result.Claims = append(result.Claims, experiment.Claim{What: c.title + ": " + what, Paper: of + experiment.Percent(theirs), Ours: experiment.Percent(ours), Verdict: v})
		}
		if c.rate == 0 {
			v := experiment.AsGood
			if s.median(least) >= s.median(byRLI) {
				v = experiment.DoesNotHold
			}
			claim("median error of LDS, least loaded, against RLI behind two queues", "less than ", s.median(byRLI), s.median(least), v)
		}
		claim("median error of RLI and of LDS, joint", "", s.median(byRLI), s.median(joint), experiment.Judge(s.median(joint), s.median(byRLI), 0.1))
		claim("root mean square error of RLI and of LDS, joint", "", s.rms(byRLI), s.rms(joint), experiment.Judge(s.rms(joint), s.rms(byRLI), 0.1))
	}
	result.Figures = []plot.Figure{median, squares}
	result.Tables = []experiment.Table{table}
	return result, nil
}

// contenders asks all four synopses about a capture's flows.
func (c *capture) contenders(ctx context.Context, seed uint64, s *study) ([]contender, error) {
	config := lda.DefaultConfig
	config.Identity = seed
	up, down, err := pair(lda.New, config)
	if err != nil {
		return nil, err
	}
	for i := range c.packets {
		p := &c.packets[i]
		up.Update(packetKey(seed, p), p.in)
		if !p.lost {
			down.Update(packetKey(seed, p), p.out)
		}
	}
	all, err := lda.Estimate(up, down)
	if err != nil {
		return nil, err
	}
	list := []contender{{"LDA, mean of all", kilobytes(float64(config.EncodedSize())), "", sameForAll(len(c.flows), all.Mean)}}

	departures, err := c.follow()
	if err != nil {
		return nil, err
	}
	receiver := c.receiverConfig(seed, rli.Linear, 0)
	answers, _, err := c.receive(receiver, departures)
	if err != nil {
		return nil, err
	}
	list = append(list, contender{"RLI", kilobytes(float64(receiver.MemorySize())), fmt.Sprintf("a reference every %d packets", every), answers})

	sketch, err := c.askLDS(ctx, seed, sketches[0].config, perFlowLossy)
	if err != nil {
		return nil, err
	}
	lossy, err := c.askLDS(ctx, seed, sketches[1].config, perFlowLossy)
	if err != nil {
		return nil, err
	}
	memory := kilobytes(float64(sketch.bytes))
	list = append(list,
		contender{"LDS, least loaded", memory, "", sketch.paper},
		contender{"LDS, joint", memory, "all flow records", sketch.joint},
		contender{"LDS, spread 5", memory, "", lossy.paper})

	counters := perFlowLossy * float64(8*sketches[0].config.CellBytes()) / float64(recorders.plain.Bits)
	plain, err := c.askCOLATE(ctx, seed, recorders.plain, counters, false, s.large)
	if err != nil {
		return nil, err
	}
	joint, err := plain.joint()
	if err != nil {
		return nil, err
	}
	counted, err := c.askCOLATE(ctx, seed, recorders.counted, counters, true, s.large)
	if err != nil {
		return nil, err
	}
	memory = kilobytes(float64(plain.bytes))
	return append(list,
		contender{"COLATE, Theorem 2", memory, "the flow's record; nothing lost", plain.theorem},
		contender{"COLATE, trimmed", memory, "the flow's record; nothing lost", plain.single},
		contender{"COLATE, counting", memory, "the flow's record", counted.single},
		contender{"COLATE, joint", memory, "all flow records; nothing lost", joint}), nil
}
