package figcolate

import (
	"errors"
	"fmt"
	"math"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/perflow"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/colate"
	"github.com/hoplag/hoplag/colate/paper"
	"github.com/hoplag/hoplag/estimate/joint"
)

// Counters of the experiments: bits of one, of which count packets where any do,
// and the paper's number to a flow.
const (
	counterBits  = 60
	countBits    = 16
	digestBits   = 4
	stampBits    = 40
	countersEach = 20
	megabyte     = 1 << 23 // bits
)

// sums is a recorder of plain sums of time stamps, as the paper has it.
func sums(counters int, seed uint64) paper.Config {
	return paper.Config{Identity: seed, Counters: counters, PerFlow: countersEach, Bits: counterBits, TimeBits: stampBits, Vectors: 1}
}

// counted is one of as many bits, some of which count packets, in one epoch.
func counted(counters int, seed uint64) colate.Config {
	return colate.Config{
		Identity: seed, Counters: counters, PerFlow: countersEach, Bits: counterBits,
		CountBits: countBits, DigestBits: digestBits, Period: colate.MaxPeriod,
	}
}

// countersIn is how many counters some memory has, in a full run.
func countersIn(run *experiment.Run, megabytes float64) int {
	return scaled(run, megabytes*megabyte/counterBits)
}

// scaled is a number of counters in this run.
func scaled(run *experiment.Run, counters float64) int {
	if run.Quick {
		counters *= float64(quickPackets) / fullPackets
	}
	return max(int(counters), 2*countersEach)
}

// points are the paper's epochs of the two ends, and what a query needs.
type points struct {
	up, down         *paper.Epoch
	sender, receiver *paper.Subvector
}

var errEpochs = errors.New("the traffic did not fit one epoch")

// pair makes two of a kind, for the two ends.
func pair[C, T any](make func(C) (T, error), c C) (up, down T) {
	return experiment.Try(make(c)), experiment.Try(make(c))
}

// read makes the recorders' current epochs ready to be asked.
func read(up, down *paper.Recorder) *points {
	p := &points{up: up.Current(), down: down.Current()}
	p.sender, p.receiver = pair(paper.NewSubvector, up.Config())
	return p
}

// record lets two of the paper's recorders see all packets.
func (t *traffic) record(c paper.Config) *points {
	up, down := pair(paper.New, c)
	for i := range t.packets {
		p := &t.packets[i]
		key := t.flows[p.flow].key
		if up.Update(key, p.id, p.in) != nil || down.Update(key, p.id, p.out) != nil {
			experiment.Check(errEpochs)
		}
	}
	return read(up, down)
}

// gather reads a flow's counters at both ends.
func (p *points) gather(f *flow) {
	p.sender.Reset(f.key)
	p.receiver.Reset(f.key)
	experiment.Check(errors.Join(p.sender.Add(p.up), p.receiver.Add(p.down)))
}

// theorem2 is the paper's answer, NaN if there is none.
func (p *points) theorem2(f *flow) float64 {
	p.gather(f)
	return orNone(paper.Theorem2(p.sender, p.receiver, uint64(f.packets)))
}

// joint decodes all flows from sums alone.
func (p *points) joint(run *experiment.Run, t *traffic) joint.Result {
	c := p.sender.Config()
	problem := joint.Problem{
		Sum: make([]float64, c.Counters), Rows: 1, CellsPerRow: c.PerFlow,
		Packets: make([]float64, len(t.flows)), Cells: make([]uint32, 0, len(t.flows)*c.PerFlow),
	}
	for i := range problem.Sum {
		problem.Sum[i] = float64(int64(p.down.Counter(0, i)-p.up.Counter(0, i))) * c.Unit()
	}
	for i := range t.flows {
		problem.Packets[i] = float64(t.flows[i].packets)
		p.sender.Reset(t.flows[i].key)
		problem.Cells = append(problem.Cells, p.sender.Positions()...)
	}
	return experiment.Try(problem.Solve(run.Context(), joint.Options{}))
}

// orNone makes no samples an answer that is not a number.
func orNone(x float64, err error) float64 {
	if x, ok := experiment.Answer(x, err); ok {
		return x
	}
	return math.NaN()
}

// countedPoints are our recorders of the two ends.
type countedPoints struct{ up, down *colate.Recorder }

// count lets two of our recorders see all packets.
func (t *traffic) count(c colate.Config) *countedPoints {
	p := new(countedPoints)
	p.up, p.down = pair(colate.New, c)
	for i := range t.packets {
		packet := &t.packets[i]
		key := t.flows[packet.flow].key
		p.up.Update(key, packet.id, packet.in)
		p.down.Update(key, packet.id, packet.out)
	}
	return p
}

// estimate is ours, of these flows; no samples is a mean that is not a number.
func (p *countedPoints) estimate(t *traffic, asked []int) []colate.Answer {
	records := make([]joint.FlowRecord, len(asked))
	for i, f := range asked {
		records[i] = t.flowRecord(f)
	}
	answers := experiment.Try(colate.EstimateAll(p.up, p.down, records))
	for i := range answers {
		if answers[i].Err != nil {
			answers[i].Mean = math.NaN()
		}
	}
	return answers
}

// joint decodes all flows.
func (p *countedPoints) joint(run *experiment.Run, t *traffic) joint.Result {
	records := make([]joint.FlowRecord, len(t.flows))
	for i := range t.flows {
		records[i] = t.flowRecord(i)
	}
	return experiment.Try(colate.Decode(run.Context(), p.up, p.down, records, joint.Options{}))
}

// flowRecord is what a collector knows of flow i.
func (t *traffic) flowRecord(i int) joint.FlowRecord {
	return joint.FlowRecord{Flow: t.flows[i].key, Packets: float64(t.flows[i].packets)}
}

// errors are those of what a method says of some flows' means: answer is about
// the k-th of them, flow i. A flow without an answer is infinitely off.
func (t *traffic) errors(name string, asked []int, answer func(k, i int) float64) *perflow.Errors {
	e := perflow.New(name, perflow.Infinite)
	for k, i := range asked {
		e.Add(t.flows[i].packets, answer(k, i), t.flows[i].mean())
	}
	return e
}

// A race is the paper's estimator and ours, at equal memory, about some flows.
type race struct {
	theorem, single, joint *perflow.Errors
	counting               *countedPoints
}

func (t *traffic) race(run *experiment.Run, counters int, seed uint64, asked []int) race {
	plain, counting := t.record(sums(counters, seed)), t.count(counted(counters, seed))
	decoded, answers := plain.joint(run, t), counting.estimate(t, asked)
	return race{
		t.errors("Theorem 2", asked, func(_, i int) float64 { return plain.theorem2(&t.flows[i]) }).ByPaper(),
		t.errors("Estimate, counted", asked, func(k, _ int) float64 { return answers[k].Mean }),
		t.errors("joint", asked, func(_, i int) float64 { return decoded.Mean[i] }),
		counting,
	}
}

// medians are the cells of a table for a method's errors, by size.
func medians(e *perflow.Errors) (cells []string) {
	for _, b := range bins {
		cells = append(cells, percentFrom(e.Median(b)))
	}
	return cells
}

// percentFrom is a percentage, or that there is nothing but rounding.
func percentFrom(x float64) string {
	if x < 1e-9 {
		return "exact"
	}
	return experiment.Percent(x)
}

var binAxis = perflow.Axis(bins)

func errorAxis(least, most float64) plot.Axis {
	return plot.Axis{Label: "relative error (%)", Scale: plot.Log, Min: least, Max: most}
}

var (
	shareAxis = plot.Axis{Label: "share of flows", Min: 0, Max: 1}
	flowsAxis = plot.Axis{Label: "flows (%)", Min: 0, Max: 100}
)

// bitsPerPacket is what an epoch takes in a store.
func bitsPerPacket(counters, bits, packets int) float64 {
	return float64(counters) * float64(bits) / float64(packets)
}

// configure says how a recorder was made, and more.
func configure(run *experiment.Run, more ...any) {
	run.Config(more...)
	run.Config("packets", run.Pick(quickPackets, fullPackets),
		"counters", fmt.Sprintf("%d of %d bits to a flow; time stamps of %d bits in ns, or sums that wrap beside counts of %d bits and "+
			"digests of %d",
			countersEach, counterBits, stampBits, countBits, digestBits))
}
