package figcolate

import (
	"fmt"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/queue/trace"
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
	most := run.Pick(200, 1000)
	seed := run.SeedOf("rli")
	table := run.Table("", "Packets to a reference (Table 3), and flows of 100 packets and more", "trace", "method",
		"packets to a reference", "the paper's", "median error", "within 5 %", "flows of all sizes within 5 %")
	configure(run, "rates", rates, "memory of COLATE, MB", 10, "seed", seed)
	for i, k := range experiment.Each(run, kinds) {
		f := plot.Figure{
			Name: "11" + string(rune('a'+i)), Title: "Error of means, " + k.name,
			Caption: "Flows of 100 packets and more. RLI by linear interpolation, as the paper has it, and by the link's busy periods; " +
				"COLATE with 10 MB.",
			X: errorAxis(0.01, 1000), Y: shareAxis,
		}
		t := newTraffic(run, k)
		chosen := append(t.some(few, most), t.some(asked, most)...)
		race := t.race(run, countersIn(run, 10), seed, chosen)
		row := func(e *errorsOf, references, paper string) {
			table.Add(k.name, e.name, references, paper, experiment.Percent(e.median(asked)), experiment.Percent(e.within(asked, 0.05)),
				experiment.Percent(t.weighted(e, 0.05)))
		}
		for _, e := range []*errorsOf{race[0], race[2]} {
			e.name = "COLATE, " + e.name
			f.Series = append(f.Series, e.cdf(asked, e.name))
			row(e, "none", "none")
		}
		for r, rate := range experiment.Each(run, rates) {
			for _, method := range []rli.Method{rli.Linear, rli.BusyAware} {
				e, distance := interpolate(run, k, rate.least, rate.most, method, seed, most)
				e.name = "RLI " + rate.name
				if e.paper = method == rli.Linear; !e.paper {
					e.name += ", busy periods"
				}
				s := e.cdf(asked, e.name)
				s.Pair = 5 + r
				f.Series = append(f.Series, s)
				row(e, experiment.Number(distance), experiment.Number(k.references[r]))
				if method == rli.Linear {
					run.Holds(fmt.Sprintf("%s: median error of flows of ≥ 100 packets, RLI at %s and COLATE by Theorem 2", k.name, rate.name),
						"COLATE's is smaller", experiment.Percent(e.median(asked))+"; "+experiment.Percent(race[0].median(asked)),
						race[0].median(asked) < e.median(asked))
					run.Beats(fmt.Sprintf("%s: the same, COLATE by joint decoding", k.name), race[2].median(asked), e.median(asked), 0.1)
				}
			}
		}
		run.Figures(f)
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
func (t *traffic) weighted(e *errorsOf, limit float64) float64 {
	n := 0
	for i := range t.flows {
		if asked.Has(t.flows[i].packets) {
			n++
		}
	}
	part := float64(n) / float64(len(t.flows))
	return part*e.within(asked, limit) + (1-part)*e.within(few, limit)
}

// interpolate runs a kind's trace with references and returns the errors of
// some flows and the mean number of packets to a reference.
func interpolate(run *experiment.Run, k kind, least, most float64, method rli.Method, seed uint64, chosen int) (*errorsOf, float64) {
	packets := run.Pick(quickPackets, fullPackets)
	k.trace.Seed, k.red.Seed = run.SeedOf("trace "+k.name), run.SeedOf("queue "+k.name)
	source := experiment.Try(trace.NewFlows(k.trace))
	link := experiment.Try(queue.NewLink(k.red))
	c := rli.DefaultConfig
	c.Identity, c.Rate, c.Method, c.Flows = seed, linkRate, method, 1<<20
	adaptive := rli.PaperAdaptation
	adaptive.MinRate, adaptive.MaxRate = least, most
	injector := experiment.Try(rli.NewInjector(rli.InjectorConfig{Adaptive: adaptive, ReferenceBytes: c.ReferenceBytes}))
	receiver := experiment.Try(rli.NewReceiver(c))
	t := &traffic{name: k.name}
	number := map[uint64]uint32{}
	var p queue.Packet
	references := 0
	for n := 0; n < packets; {
		source.Next(&p)
		out, fate := link.Send(p.Time, int(p.Bytes))
		if fate != queue.Passed {
			continue
		}
		n++
		receiver.Update(p.Flow, int(p.Bytes), out)
		i, known := number[uint64(p.Flow)]
		if !known {
			i = uint32(len(t.flows))
			number[uint64(p.Flow)] = i
			t.flows = append(t.flows, flow{key: p.Flow})
		}
		t.flows[i].packets++
		t.flows[i].delays.Add(float64(out - p.Time))
		if reference, ok := injector.Packet(int(p.Bytes), p.Time); ok {
			if out, fate := link.Send(p.Time, c.ReferenceBytes); fate == queue.Passed {
				receiver.Reference(reference, out)
			}
			references++
		}
	}
	receiver.Flush()
	e := &errorsOf{}
	for _, i := range append(t.some(few, chosen), t.some(asked, chosen)...) {
		r, err := receiver.Estimate(t.flows[i].key)
		e.add(&t.flows[i], orNone(r.Mean, err))
	}
	return e, float64(packets) / float64(max(references, 1))
}
