package figcolate

import (
	"fmt"
	"math"

	"github.com/hoplag/hoplag/bench/counters"
	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/perflow"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/rli"
)

var interpolation = experiment.Experiment{
	Name: "colate-11", Title: "COLATE and RLI (Fig. 11, Table 3)",
	Claim: "COLATE is always more accurate than RLI: with references at 1:300 to 1:10, one in 21.66 packets, 77 % of flows are within 5 " +
		"%, and at 1:10 to 1:2, one in 4.78, 81 %, against 99 % of flows within 1 % (section 6.4, Fig. 11, Table 3).",
	Weight: 60, Quick: 5, Measure: measureInterpolation,
}

// Rates of injection, lowest and highest.
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
			f.Add(e.CDF(asked))
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
	run.Note("References join the queue behind the packets, and the truth of RLI is of that run. The rate follows the link's utilisation by "+
		"RLI's Algorithm 1, so that where our traces' loads differ from the paper's so does the distance.",
		"The comparison leaves out what each costs: RLI's references take part of the link and its flow records memory at the receiver; "+
			"COLATE needs the flow records of someone else, and here 20 bits of memory a packet.")
}

// weighted returns the fraction of all flows within a limit, if small and
// large ones were queried in different numbers.
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

// interpolate runs a kind's trace with references. It returns the errors of
// some flows and the mean number of packets per reference.
func interpolate(run *experiment.Run, k kind, least, most float64, method rli.Method, seed uint64, chosen int) (*perflow.Errors, float64) {
	c := rli.DefaultConfig
	c.Identity, c.Rate, c.Method, c.Flows = seed, linkRate, method, 1<<20
	adaptive := rli.PaperInjector
	adaptive.Every, adaptive.Sparse = int(math.Round(1/most)), int(math.Round(1/least))
	injector := experiment.Try(rli.NewInjector(adaptive))
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

var countMin = experiment.Experiment{
	Name: "colate-cm", Title: "COLATE and count-min sketches",
	Claim: "For β = 0.05 and α = 0.95 a count-min sketch needs 165 counters and three memory accesses, for every flow by itself: " +
		"3,135 bits a flow, as many as COLATE at 0.1 bit a packet for flows of 31,350 packets (section 6.5).",
	Weight: 25, Quick: 2, Measure: measureCountMin,
}

// sketchRows returns the number of rows for a reliability, ⌈ln 1/(1−α)⌉, and
// sketchColumns the number of columns for an error, ⌈e/β⌉ (Cormode and
// Muthukrishnan, 2005).
func sketchRows(reliability float64) int { return int(math.Ceil(-math.Log(1 - reliability))) }
func sketchColumns(err float64) int      { return int(math.Ceil(math.E / err)) }

// A sketch is a count-min sketch of time stamps.
type sketch struct {
	rows    int
	columns uint64
	sums    []float64
}

func newSketch(rows, counters int) *sketch {
	return &sketch{rows, uint64(counters / rows), make([]float64, counters)}
}

func (s *sketch) at(row int, key hashing.Flow) int {
	return row*int(s.columns) + int(hashing.Row(hashing.Mix(uint64(key), uint64(row)), s.columns))
}

func (s *sketch) add(key hashing.Flow, stamp int64) {
	for r := range s.rows {
		s.sums[s.at(r, key)] += float64(stamp)
	}
}

// sum returns the estimate of a flow's sum: the smallest of its counters.
func (s *sketch) sum(key hashing.Flow) float64 {
	least := math.Inf(1)
	for r := range s.rows {
		least = min(least, s.sums[s.at(r, key)])
	}
	return least
}

func measureCountMin(run *experiment.Run) {
	most, seed := run.Pick(200, 1000), run.SeedOf("count-min")
	t := newTraffic(run, backbone)
	rows, columns := sketchRows(0.95), sketchColumns(0.05)
	bits := rows * columns * 19
	run.Holds("counters of a sketch for one flow, α = 0.95, β = 0.05", "165", fmt.Sprint(rows*columns), rows*columns == 165)
	run.Holds("packets of a flow at which 19-bit counters for it alone take 0.1 bit a packet", "31,350", fmt.Sprint(10*bits),
		10*bits == 31_350)
	configure(run, "traffic", backbone.trace, "memories, MB", memories[:2], "rows", rows, "seed", seed)
	run.Notef("The sketch, too, is shared by all flows, and holds whole time stamps; its least sum is mostly of the same row "+
		"at both points, and then the error is the delays of others in that one counter, as with COLATE. With fewer flows (%d) than a row "+
		"has counters, most flows have one of their three for themselves and are exact, where COLATE spreads a flow over %d and always "+
		"shares. It costs three memory updates a packet; and which flows are exact, nothing tells.", len(t.flows), countersEach)
	table := run.Table("", "Median error of means, and flows of 1,000 packets and more within 5 %", "memory (MB)", "method", "1", "2–9",
		"10–99", "100–999", "≥ 1,000", "within 5 %")
	chosen := t.someOfEach(most)
	for m, mb := range experiment.Each(run, memories[:2]) {
		n := countersIn(run, mb)
		up, down := newSketch(rows, n), newSketch(rows, n)
		for p := range t.all {
			up.add(p.Flow, p.In)
			down.add(p.Flow, p.Out)
		}
		r := t.race(run, n, seed, chosen)
		cm := t.errors("count-min", chosen, func(_, i int) float64 {
			f := &t.flows[i]
			return (down.sum(f.key) - up.sum(f.key)) / float64(f.packets)
		})
		f := run.Draw(string(rune('a'+m)), fmt.Sprintf("Median error of means by size, %v MB, %s", mb, t.name),
			fmt.Sprintf("A count-min sketch of %d rows and COLATE's counters, of the same memory. Errors below a thousandth of a per "+
				"cent are drawn there.", rows), binAxis, errorAxis(0, 0))
		for _, e := range []*perflow.Errors{cm, r.theorem, r.single, r.joint} {
			s := e.ByClass(bins, 0.5)
			for i := range s.Y {
				s.Y[i] = max(s.Y[i], 1e-3)
			}
			f.Add(s)
			row := append([]string{number(mb), e.Look.Name}, medians(e)...)
			table.Row(row, percent(e.Within(large, 0.05)))
		}
		least, theorem, joint := cm.Median(large), r.theorem.Median(large), r.joint.Median(large)
		run.Holds(fmt.Sprintf("median error of flows of ≥ 1,000 packets, %v MB, count-min for all flows and COLATE by Theorem 2", mb),
			"COLATE's is smaller", percentFrom(least)+"; "+percentFrom(theorem), theorem < least)
		run.Claim("the same, count-min and joint decoding", percentFrom(least), percentFrom(joint), experiment.Judge(joint, least, 0.1))
	}
}
