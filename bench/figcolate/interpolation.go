package figcolate

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/queue/trace"
	"github.com/hoplag/hoplag/rli"
)

var interpolation = experiment.Experiment{
	Name:   "colate-11",
	Group:  group,
	Title:  "COLATE and RLI (Fig. 11, Table 3)",
	Claim:  "COLATE is always more accurate than RLI: with references at 1:300 to 1:10, one in 21.66 packets, 77 % of flows are within 5 %, and at 1:10 to 1:2, one in 4.78, 81 %, against 99 % of flows within 1 % (section 6.4, Fig. 11, Table 3).",
	Weight: 60, Quick: 5,
	Run: runInterpolation,
}

// Rates of injection, least and most.
var rates = []struct {
	name        string
	least, most float64
}{{"1:300 to 1:10", 1.0 / 300, 1.0 / 10}, {"1:10 to 1:2", 1.0 / 10, 1.0 / 2}}

func runInterpolation(ctx context.Context, run *experiment.Run) (experiment.Result, error) {
	most := run.Pick(200, 1000)
	seed := run.SeedOf("rli")
	asked := class{"≥ 100", 100, unlimited}
	table := experiment.Table{Title: "Packets to a reference (Table 3), and flows of 100 packets and more", Columns: []string{"trace", "method", "packets to a reference", "the paper's", "median error", "within 5 %", "flows of all sizes within 5 %"}}
	result := experiment.Result{Config: setting(run, map[string]any{"rates": rates, "memory of COLATE, MB": 10, "seed": seed})}
	step := run.Steps(ctx, len(kinds)*3)
	for i, k := range kinds {
		f := plot.Figure{
			Name: "11" + string(rune('a'+i)), Title: "Error of means, " + k.name,
			Caption: "Flows of 100 packets and more. RLI by linear interpolation, as the paper has it, and by the link's busy periods; COLATE with 10 MB.",
			X:       errorAxis(0.01, 1000), Y: shareAxis,
		}
		t, err := newTraffic(ctx, run, k)
		if err != nil {
			return experiment.Result{}, err
		}
		chosen := append(t.some(class{"small", 1, 99}, most), t.some(asked, most)...)
		race, err := t.race(ctx, countersIn(run, 10), seed, chosen)
		if err != nil {
			return experiment.Result{}, err
		}
		everything := class{"all", 1, unlimited}
		row := func(e *errorsOf, references, paper string) {
			table.Add(k.name, e.name, references, paper, experiment.Percent(e.median(asked)), experiment.Percent(e.within(asked, 0.05)), experiment.Percent(weighted(t, e, 0.05, asked, everything)))
		}
		for _, e := range []*errorsOf{race[0], race[2]} {
			e.name = "COLATE, " + e.name
			f.Series = append(f.Series, e.cdf(asked, e.name))
			row(e, "none", "none")
		}
		if err := step(); err != nil {
			return experiment.Result{}, err
		}
		for r, rate := range rates {
			for _, method := range []rli.Method{rli.Linear, rli.BusyAware} {
				e, distance, err := interpolate(run, k, rate.least, rate.most, method, seed, most)
				if err != nil {
					return experiment.Result{}, err
				}
				e.name = "RLI " + rate.name
				if e.paper = method == rli.Linear; !e.paper {
					e.name += ", busy periods"
				}
				s := e.cdf(asked, e.name)
				s.Pair = 5 + r
				f.Series = append(f.Series, s)
				row(e, experiment.Number(distance), experiment.Number(k.references[r]))
				if method == rli.Linear {
					result.Claims = append(result.Claims,
						experiment.Claim{What: fmt.Sprintf("%s: median error of flows of ≥ 100 packets, RLI at %s and COLATE by Theorem 2", k.name, rate.name), Paper: "COLATE's is smaller",
							Ours: experiment.Percent(e.median(asked)) + "; " + experiment.Percent(race[0].median(asked)), Verdict: experiment.Holds(race[0].median(asked) < e.median(asked))},
						experiment.Claim{What: fmt.Sprintf("%s: the same, COLATE by joint decoding", k.name), Paper: experiment.Percent(e.median(asked)), Ours: experiment.Percent(race[2].median(asked)), Verdict: experiment.Judge(race[2].median(asked), e.median(asked), 0.1)})
				}
			}
			if err := step(); err != nil {
				return experiment.Result{}, err
			}
		}
		result.Figures = append(result.Figures, f)
	}
	result.Tables = []experiment.Table{table}
	result.Notes = []string{
		"References join the queue behind the packets, and the truth of RLI is of that run. The rate follows the link's utilisation by RLI's Algorithm 1, so that where our traces' loads differ from the paper's so does the distance.",
		"The comparison leaves out what each costs: RLI's references take part of the link and its flow records memory at the receiver; COLATE needs the flow records of someone else, and here 20 bits of memory a packet.",
	}
	return result, nil
}

// weighted is the part of all flows within a limit, of which the two classes
// were asked in different numbers.
func weighted(t *traffic, e *errorsOf, limit float64, big, everything class) float64 {
	small := class{"", everything.least, big.least - 1}
	n := 0
	for i := range t.flows {
		if big.has(&t.flows[i]) {
			n++
		}
	}
	part := float64(n) / float64(len(t.flows))
	return part*e.within(big, limit) + (1-part)*e.within(small, limit)
}

// interpolate runs a kind's trace with references and returns the errors of
// some flows and the mean number of packets to a reference.
func interpolate(run *experiment.Run, k kind, least, most float64, method rli.Method, seed uint64, chosen int) (*errorsOf, float64, error) {
	packets := run.Pick(quickPackets, fullPackets)
	k.trace.Seed, k.red.Seed = run.SeedOf("trace "+k.name), run.SeedOf("queue "+k.name)
	source, err := trace.NewFlows(k.trace)
	if err != nil {
		return nil, 0, err
	}
	link, err := queue.NewLink(k.red)
	if err != nil {
		return nil, 0, err
	}
	c := rli.DefaultConfig
	c.Identity, c.Rate, c.Method, c.Flows = seed, linkRate, method, 1<<20
	adaptive := rli.PaperAdaptation
	adaptive.MinRate, adaptive.MaxRate = least, most
	injector, err := rli.NewInjector(rli.InjectorConfig{Adaptive: adaptive, ReferenceBytes: c.ReferenceBytes})
	if err != nil {
		return nil, 0, err
	}
	receiver, err := rli.NewReceiver(c)
	if err != nil {
		return nil, 0, err
	}
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
	for _, i := range append(t.some(class{"small", 1, 99}, chosen), t.some(class{"big", 100, unlimited}, chosen)...) {
		r, err := receiver.Estimate(t.flows[i].key)
		x := r.Mean
		if errors.Is(err, estimate.ErrNoSamples) {
			x = math.NaN()
		} else if err != nil {
			return nil, 0, err
		}
		e.add(&t.flows[i], x)
	}
	return e, float64(packets) / float64(max(references, 1)), nil
}
