package figcolate

import (
	"fmt"

	"github.com/hoplag/hoplag/bench/counters"
	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/perflow"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/rli"
)

var interpolation = experiment.Experiment{
	Name: "colate-11", Title: "COLATE and RLI (Fig. 11, Table 3)",
	Claim: "COLATE is always more accurate than RLI: with references at 1:300 to 1:10, one in 21.66 packets, 77 % of flows are within 5 " +
		"%, and at 1:10 to 1:2, one in 4.78, 81 %, against 99 % of flows within 1 % (section 6.4, Fig. 11, Table 3).",
	Weight: 60, Quick: 5, Measure: measureInterpolation,
}

// Rates of injection, least and most.
var rates = []struct {
	name        string
	least, most float64
}{{"1:300 to 1:10", 1.0 / 300, 1.0 / 10}, {"1:10 to 1:2", 1.0 / 10, 1.0 / 2}}

func measureInterpolation(run *experiment.Run) {
	most, seed := run.Pick(200, 1000), run.SeedOf("rli")
	table := run.Table("", "Packets to a reference (Table 3), and flows of 100 packets and more", "trace", "method",
		"packets to a reference", "the paper's", "median error", "within 5 %", "flows of all sizes within 5 %")
	configure(run, "rates", rates, "memory of COLATE, MB", 10, "seed", seed)
	for i, k := range experiment.Each(run, kinds) {
		f := run.Draw("11"+string(rune('a'+i)), "Error of means, "+k.name,
			"Flows of 100 packets and more. RLI by linear interpolation, as the paper has it, and by the link's busy periods; "+
				"COLATE with 10 MB.", errorAxis(0.01, 1000), shareAxis)
		t := newTraffic(run, k)
		r := t.race(run, countersIn(run, 10), seed, append(t.some(few, most), t.some(asked, most)...))
		show := func(e *perflow.Errors, references, paper string) {
			f.Series = append(f.Series, e.CDF(asked))
			table.Row(k.name, e.Look.Name, references, paper, percent(e.Median(asked)), percent(e.Within(asked, 0.05)), percent(t.weighted(e, 0.05)))
		}
		for _, e := range []*perflow.Errors{r.theorem, r.joint} {
			e.Look.Name = "COLATE, " + e.Look.Name
			show(e, "none", "none")
		}
		for at, rate := range experiment.Each(run, rates) {
			line, distance := interpolate(run, k, rate.least, rate.most, rli.Linear, seed, most)
			busy, _ := interpolate(run, k, rate.least, rate.most, rli.BusyAware, seed, most)
			line.Look = plot.Series{Name: "RLI " + rate.name, Paper: true, Pair: 5 + at}
			busy.Look = plot.Series{Name: line.Look.Name + ", busy periods", Pair: 5 + at}
			for _, e := range []*perflow.Errors{line, busy} {
				show(e, number(distance), number(k.references[at]))
			}
			theirs, theorem := line.Median(asked), r.theorem.Median(asked)
			run.Holds(fmt.Sprintf("%s: median error of flows of ≥ 100 packets, RLI at %s and COLATE by Theorem 2", k.name, rate.name),
				"COLATE's is smaller", percent(theirs)+"; "+percent(theorem), theorem < theirs)
			run.Beats(k.name+": the same, COLATE by joint decoding", r.joint.Median(asked), theirs, 0.1)
		}
	}
	run.Note(
		"References join the queue behind the packets, and the truth of RLI is of that run. The rate follows the link's utilisation by RLI's "+
			"Algorithm 1, so that where our traces' loads differ from the paper's so does the distance.",
		"The comparison leaves out what each costs: RLI's references take part of the link and its flow records memory at the receiver; "+
			"COLATE needs the flow records of someone else, and here 20 bits of memory a packet.",
	)
}

// weighted is the part of all flows within a limit, of which small and large
// ones were asked in different numbers.
func (t *traffic) weighted(e *perflow.Errors, limit float64) float64 {
	n := 0
	for i := range t.flows {
		if asked.Has(t.flows[i].packets) {
			n++
		}
	}
	part := float64(n) / float64(len(t.flows))
	return part*e.Within(asked, limit) + (1-part)*e.Within(few, limit)
}

// interpolate runs a kind's trace with references and returns the errors of
// some flows and the mean number of packets to a reference.
func interpolate(run *experiment.Run, k kind, least, most float64, method rli.Method, seed uint64, chosen int) (*perflow.Errors, float64) {
	c := rli.DefaultConfig
	c.Identity, c.Rate, c.Method, c.Flows = seed, linkRate, method, 1<<20
	adaptive := rli.PaperAdaptation
	adaptive.MinRate, adaptive.MaxRate = least, most
	injector := experiment.Try(rli.NewInjector(rli.InjectorConfig{Adaptive: adaptive, ReferenceBytes: c.ReferenceBytes}))
	receiver := experiment.Try(rli.NewReceiver(c))
	references := 0
	t := newTrafficOf(run, k, run.Pick(quickPackets, fullPackets), func(p *queue.Packet, out int64, link *queue.Link) {
		receiver.Update(p.Flow, int(p.Bytes), out)
		if reference, ok := injector.Packet(int(p.Bytes), p.Time); ok {
			if out, fate := link.Send(p.Time, c.ReferenceBytes); fate == queue.Passed {
				receiver.Reference(reference, out)
			}
			references++
		}
	})
	receiver.Flush()
	e := t.errors("", append(t.some(few, chosen), t.some(asked, chosen)...), func(_, i int) float64 {
		r, err := receiver.Estimate(t.flows[i].key)
		return counters.OrNone(r.Mean, err)
	})
	return e, float64(len(t.packets)) / float64(max(references, 1))
}
