package figcolate

import (
	"fmt"
	"math"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/perflow"
	"github.com/hoplag/hoplag/hashing"
)

var countMin = experiment.Experiment{
	Name: "colate-cm", Title: "COLATE and count-min sketches",
	Claim: "For β = 0.05 and α = 0.95 a count-min sketch needs 165 counters and three memory accesses, for every flow by itself: " +
		"3,135 bits a flow, as many as COLATE at 0.1 bit a packet for flows of 31,350 packets (section 6.5).",
	Weight: 25, Quick: 2, Measure: measureCountMin,
}

// sketchRows is the number of rows for a reliability, ⌈ln 1/(1−α)⌉, and
// sketchColumns that of columns for an error, ⌈e/β⌉ (Cormode and Muthukrishnan,
// 2005).
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

// sum is the estimate of a flow's sum: the least of its counters.
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
			f.Series = append(f.Series, s)
			row := append([]string{number(mb), e.Look.Name}, medians(e)...)
			table.Row(row, percent(e.Within(large, 0.05)))
		}
		least, theorem, joint := cm.Median(large), r.theorem.Median(large), r.joint.Median(large)
		run.Holds(fmt.Sprintf("median error of flows of ≥ 1,000 packets, %v MB, count-min for all flows and COLATE by Theorem 2", mb),
			"COLATE's is smaller", percentFrom(least)+"; "+percentFrom(theorem), theorem < least)
		run.Claim("the same, count-min and joint decoding", percentFrom(least), percentFrom(joint), experiment.Judge(joint, least, 0.1))
	}
}
