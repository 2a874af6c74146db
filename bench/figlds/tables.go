package figlds

import (
	"fmt"
	"math"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/flowsim"
	"github.com/hoplag/hoplag/bench/perflow"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lds"
)

// Tables compares sketches with tables of some flows.
var Tables = experiment.Experiment{
	Name: "ours-lds-table", Title: "A sketch, a table of some flows, both, and sampled packets, in the same bytes",
	Claim: "Ours: a table holds nearly all flows of 1,000 packets and more, and is far ahead of a sketch for those that it holds; a sketch " +
		"answers for all flows; half of each does both.",
	Weight: 300, Quick: 4, Measure: measureTables,
}

const (
	tableBytes  = 910_000 // at each point, what 70,000 cells take
	recordBytes = 12      // of a sampled packet: digest and time
	largest     = 1000    // packets of flows that have to be held
	earlier     = 4       // intervals, after each of which a table holds on to flows of half as many
)

// A law says how long packets take: one of flowsim's, or exponential delays,
// with means of flows that are log-normal and a hundred times apart.
type law struct {
	name  string
	delay func(f *flowsim.Flow, p *flowsim.Packet) int64
}

var tableLaws = []law{
	{"two modes", func(_ *flowsim.Flow, p *flowsim.Packet) int64 { return p.Delay }},
	{"exponential", func(f *flowsim.Flow, p *flowsim.Packet) int64 {
		// By hashes, so that the delay of a packet is the same whenever it is drawn.
		mean := 1e5 * math.Exp(1.15*normal(uint64(f.Key)))
		return int64(-mean * math.Log(even(uint64(p.ID), 2)))
	}},
}

// even returns a number that is uniform in (0, 1], and normal one that is normal.
func even(x, salt uint64) float64 { return (float64(hashing.Mix(x, salt)>>11) + 1) / (1 << 53) }

func normal(x uint64) float64 {
	return math.Sqrt(-2*math.Log(even(x, 3))) * math.Cos(2*math.Pi*even(x, 4))
}

var tableLoss = []float64{0, 0.001, 0.01}

// A contest has the observers of one law and loss, all of the same size in bytes, and the truth about each
// flow.
type contest struct {
	law                *law
	loss               float64
	sketch, part       points // all bytes, and half of them
	table, half, held  [2]*lds.Table
	update             [2][]func(hashing.Flow, hashing.Packet, int64) // of all, at each point
	rate               uint64                                         // threshold of sampled packets
	sampled, n         []float64
	sums, sampledTimes []float64
	methods            []*method
}

var contestants = []string{"Estimate", "Decode", "table", "both", "sampled packets", "table, held"}

func newContest(run *experiment.Run, l *law, loss float64, flows, packets int) *contest {
	c := &contest{law: l, loss: loss}
	bytes := run.Pick(tableBytes/10, tableBytes)
	sketch := lds.DefaultConfig
	sketch.Columns = bytes / 13 / sketch.Rows // 13 bytes a cell
	table := lds.DefaultTableConfig
	table.Flows = bytes / 51 / 8 * 8 // 51 bytes a flow
	half, part := table, sketch
	half.Flows, part.Columns = table.Flows/16*8, sketch.Columns/2
	for i := range 2 {
		c.table[i], c.half[i] = experiment.Try(lds.NewTable(table)), experiment.Try(lds.NewTable(half))
		c.held[i] = experiment.Try(lds.NewTable(table))
	}
	c.sketch = points{experiment.Try(lds.New(sketch)), experiment.Try(lds.New(sketch))}
	c.part = points{experiment.Try(lds.New(part)), experiment.Try(lds.New(part))}
	c.rate = hashing.Threshold(min(1, float64(bytes)/recordBytes/float64(packets)))
	for i, s := range [2][2]*lds.Sketch{{c.sketch.up, c.part.up}, {c.sketch.down, c.part.down}} {
		c.update[i] = append(c.update[i], s[0].Update, s[1].Update, c.table[i].Update, c.half[i].Update, c.held[i].Update)
	}
	for _, list := range []*[]float64{&c.sampled, &c.n, &c.sums, &c.sampledTimes} {
		*list = make([]float64, flows)
	}
	for _, name := range contestants {
		c.methods = append(c.methods, newMethod(name))
	}
	return c
}

// pass passes a packet of flow i to all observers.
func (c *contest) pass(i int, f *flowsim.Flow, p *flowsim.Packet, arrives bool) {
	for _, update := range c.update[0] {
		update(f.Key, p.ID, p.Sent)
	}
	if !arrives {
		return
	}
	delay := c.law.delay(f, p)
	c.sums[i] += float64(delay)
	c.n[i]++
	if hashing.Sampled(hashing.Mix(uint64(p.ID), 9), c.rate) == 1 {
		c.sampledTimes[i] += float64(delay)
		c.sampled[i]++
	}
	for _, update := range c.update[1] {
		update(f.Key, p.ID, p.Sent+delay)
	}
}

// judge fills in the errors.
func (c *contest) judge(iv *interval) {
	all := iv.decode(c.sketch, iv.packets)
	part := iv.decode(c.part, iv.packets)
	held := func(t [2]*lds.Table, i int) float64 {
		if r, err := lds.EstimateTable(t[0], t[1], iv.keys[i]); err == nil {
			return r.Mean
		}
		return math.NaN()
	}
	answers := []answer{
		iv.estimated(c.sketch), usable(all), func(i int) float64 { return held(c.table, i) },
		func(i int) float64 {
			if mean := held(c.half, i); !math.IsNaN(mean) {
				return mean
			}
			return usable(part)(i)
		},
		func(i int) float64 { return c.sampledTimes[i] / c.sampled[i] }, // not a number if there is none
		func(i int) float64 { return held(c.held, i) },
	}
	for k, a := range answers {
		c.methods[k].addOf(iv, a, func(i int) float64 { return c.sums[i] / c.n[i] }, func(i int) bool { return c.n[i] > 0 })
	}
}

func measureTables(run *experiment.Run) {
	sizes := experiment.Choose(run, []int{1000, 10_000, 30_000}, []int{10_000, 100_000, 1_000_000})
	table := run.Table("Flows with an answer, and the median error of those", "flows", "delays", "loss", "method",
		"10–99 packets", "100–999", "≥ 1,000")
	for _, flows := range sizes {
		for _, c := range contend(run, flows) {
			for _, m := range c.methods {
				table.Row(flows, c.law.name, percent(c.loss), m.Name, m.answered(10, 99), m.answered(100, 999), m.answered(1000, math.MaxInt32))
			}
			judgeTables(run, c, flows)
		}
	}
	run.Note("Sizes are Pareto with the shape 0.8, 53 packets a flow on average, in one interval of 287 s that is compared once. The table's "+
		"answers leave out the packets that came before a flow was admitted. One that is held saw the same flows send as much in "+
		"four intervals before, and held those of 500 packets and more from one to the next. Sampled packets are those of a hash "+
		"below a threshold at both points, 12 bytes each; a flow's mean is that of its samples.",
		"A histogram a flow (DDSketch) needs packets that carry the time they were sent, and a map: "+
			"`(cd bench/peers && go test -run '^$' -bench FlowsHeld .)` says how many flows fit into the same bytes.")
}

// contend passes traffic of a number of flows, under all laws and losses; of a million flows only under the
// first law, with no loss and the most.
func contend(run *experiment.Run, flows int) (all []*contest) {
	config := flowsim.Paper
	config.Packets = int(float64(flows) / float64(config.Flows) * float64(config.Packets))
	config.Flows, config.Seed = flows, run.SeedOf(fmt.Sprintf("traffic of %d", flows))
	t := flowsim.New(config)
	iv := &interval{Traffic: t, seed: run.SeedOf("losses")}
	at := make(map[hashing.Flow]int, flows)
	for i := range t.Flows {
		iv.keys, iv.packets = append(iv.keys, t.Flows[i].Key), append(iv.packets, float64(t.Flows[i].Size))
		at[t.Flows[i].Key] = i
	}
	for l := range tableLaws {
		for _, loss := range tableLoss {
			if few := flows >= 1_000_000; !few || l == 0 && loss != 0.001 {
				all = append(all, newContest(run, &tableLaws[l], loss, flows, t.Packets))
			}
		}
	}
	before := experiment.Try(lds.NewTable(all[0].table[0].Config()))
	for k := range uint64(earlier) {
		for f, p := range t.InOrder() {
			before.Update(f.Key, hashing.Packet(hashing.Mix(uint64(p.ID), k)), p.Sent)
		}
		before.Hold(before.Flows(largest / 2))
	}
	for _, c := range all {
		c.held[0].Hold(before.Flows(0))
		c.held[1].Hold(before.Flows(0))
	}
	for f, p := range t.InOrder() {
		i := at[f.Key]
		for _, c := range all {
			c.pass(i, f, &p, c.loss == 0 || !iv.loses(p, c.loss))
		}
	}
	for _, c := range all {
		c.judge(iv)
	}
	return all
}

// answered returns the share of a class's flows that have an answer, and the median error of these.
func (m *method) answered(least, most int) string {
	class := classes[all]
	class.Least, class.Most = least, most
	known := m.Answered(class)
	n := len(m.Of(class))
	if len(known) == 0 || n == 0 {
		return "none"
	}
	return fmt.Sprintf("%s, %s", percent(float64(len(known))/float64(n)), percent(perflow.Quantile(known, 0.5)))
}

func judgeTables(run *experiment.Run, c *contest, flows int) {
	if c.loss > 0 || c.law != &tableLaws[0] {
		return
	}
	where := fmt.Sprintf("%s flows, no loss: ", number(float64(flows)))
	decode, table, both := c.methods[1], c.methods[2], c.methods[3]
	run.Beats(where+"median of flows of 1,000 packets and more, by Decode and by the table", table.median(fromThousand),
		decode.median(fromThousand))
	for which, m := range []*method{table, c.methods[5]} {
		run.Meets(where+"flows of 1,000 packets and more that the table holds"+[]string{"", ", in its fifth interval"}[which], "ours: ≥ 99 %",
			percent(m.answers(fromThousand)), m.answers(fromThousand) >= 0.99)
	}
	run.Meets(where+"flows that both together answer", "ours: all", percent(both.answers(all)), percent(both.answers(all)) == percent(1))
}
