package figcolate

import (
	"context"
	"math"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/flowsim"
	"github.com/hoplag/hoplag/bench/perflow"
	"github.com/hoplag/hoplag/colate"
	"github.com/hoplag/hoplag/colate/paper"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/queue/trace"
)

// How numbers are written in claims and tables.
var percent, number = experiment.Percent, experiment.Number

// Each trace has this many packets.
const (
	quickPackets = 400_000
	fullPackets  = 4_000_000
)

// A kind of traffic stands for one of the paper's traces. We chose the load,
// because the paper does not give its own.
type kind struct {
	name  string
	trace trace.FlowsConfig
}

const linkRate = 10e9

func flowsOf(utilisation, shape float64, most int) trace.FlowsConfig {
	c := trace.DefaultFlows
	c.Load = trace.Load{Rate: linkRate, Utilisation: utilisation}
	c.Shape, c.Most = shape, most
	return c
}

var (
	backbone   = kind{"backbone", flowsOf(0.75, 1.1, 20_000)}
	enterprise = kind{"enterprise", flowsOf(0.7, 0.7, 30_000)}
	dataCentre = kind{"data centre", flowsOf(0.93, 0.85, 30_000)}
	kinds      = []kind{backbone, enterprise, dataCentre}
)

// A flow, with the truth about it.
type flow struct {
	key     hashing.Flow
	packets int
	delays  estimate.Moments
}

func (f *flow) mean() float64 { return f.delays.Mean() }

// A passage is one packet at the two points.
type passage struct {
	flow    uint32
	id      hashing.Packet
	in, out int64 // ns since the trace began
}

// traffic is what passed both points.
type traffic struct {
	name    string
	flows   []flow
	packets []passage
	delays  estimate.Moments
}

// newTraffic runs a kind's trace through its queue.
func newTraffic(run *experiment.Run, k kind) *traffic {
	return newTrafficOf(run, k, run.Pick(quickPackets, fullPackets))
}

// newTrafficOf passes the given number of packets of a kind through its queue.
func newTrafficOf(run *experiment.Run, k kind, packets int) *traffic {
	red := queue.RLIConfig
	k.trace.Seed, red.Seed = run.SeedOf("trace "+k.name), run.SeedOf("queue "+k.name)
	source := experiment.Try(trace.NewFlows(k.trace))
	link := experiment.Try(queue.NewLink(red))
	t := &traffic{name: k.name, packets: make([]passage, 0, packets)}
	number := map[hashing.Flow]uint32{}
	var p queue.Packet
	for len(t.packets) < packets {
		source.Next(&p)
		out, fate := link.Send(p.Time, int(p.Bytes))
		if fate != queue.Passed {
			continue
		}
		i, known := number[p.Flow]
		if !known {
			i = uint32(len(t.flows))
			number[p.Flow] = i
			t.flows = append(t.flows, flow{key: p.Flow})
		}
		t.add(passage{i, p.ID, p.Time, out})
	}
	return t
}

// ownDelays is traffic whose flows have their own delays, independent of their neighbours in time.
func ownDelays(run *experiment.Run) *traffic {
	c := flowsim.Config{Flows: 300_000, Packets: fullPackets, Shape: 1, Seconds: 60, Seed: run.SeedOf("own delays")}
	if run.Quick {
		c = c.Scaled(float64(quickPackets) / fullPackets)
	}
	simulated := flowsim.New(c)
	t := &traffic{name: "flows with delays of their own", flows: make([]flow, len(simulated.Flows))}
	for i := range simulated.Flows {
		f := &simulated.Flows[i]
		t.flows[i].key = f.Key
		for p := range f.Packets() {
			t.add(passage{uint32(i), p.ID, p.Sent, p.Sent + p.Delay})
		}
	}
	return t
}

func (t *traffic) add(p passage) {
	f := &t.flows[p.flow]
	f.packets++
	f.delays.Add(float64(p.out - p.in))
	t.delays.Add(float64(p.out - p.in))
	t.packets = append(t.packets, p)
}

// bins divides the flows.
var (
	bins  = perflow.Classes("1", 1, 1, "2–9", 2, 9, "10–99", 10, 99, "100–999", 100, 999, "≥ 1,000", 1000, perflow.Unlimited)
	large = bins[4]
	every = perflow.Class{Name: "all", Least: 1, Most: perflow.Unlimited}
)

// some returns the numbers of up to most of a class's flows, evenly chosen.
func (t *traffic) some(c perflow.Class, most int) []int {
	var all []int
	for i := range t.flows {
		if c.Has(t.flows[i].packets) {
			all = append(all, i)
		}
	}
	return perflow.Spread(all, most)
}

// Counters of the experiments: the bits of one, how many of them count packets
// if any do, and the paper's number per flow.
const (
	counterBits  = 60
	countBits    = 16
	digestBits   = 4
	stampBits    = 40
	countersEach = 20
	megabyte     = 1 << 23 // bits
)

// countersIn returns how many counters some memory holds, in a full run.
func countersIn(run *experiment.Run, megabytes float64) int {
	return scaled(run, megabytes*megabyte/counterBits)
}

// scaled returns a number of counters for this run.
func scaled(run *experiment.Run, n float64) int {
	if run.Quick {
		n *= float64(quickPackets) / fullPackets
	}
	return max(int(n), 2*countersEach)
}

// pair returns two of a kind, for the two points.
func pair[C, T any](create func(C) (T, error), c C) (up, down T) {
	return experiment.Try(create(c)), experiment.Try(create(c))
}

// pass passes all packets to two recorders of a kind.
func (t *traffic) pass(up, down interface {
	Update(f hashing.Flow, p hashing.Packet, t int64)
}) {
	for i := range t.packets {
		p := &t.packets[i]
		up.Update(t.flows[p.flow].key, p.id, p.in)
		down.Update(t.flows[p.flow].key, p.id, p.out)
	}
}

// A plain has the paper's recorders of both points, of sums of time stamps.
type plain struct{ up, down *paper.Recorder }

func (t *traffic) plain(n int, seed uint64) plain {
	up, down := pair(paper.New, paper.Config{Identity: seed, Counters: n, PerFlow: countersEach, TimeBits: stampBits})
	t.pass(up, down)
	return plain{up, down}
}

// decode decodes all flows from sums alone.
func (p plain) decode(records []joint.FlowRecord) joint.Result {
	problem := joint.Problem{Sum: make([]float64, len(p.up.Sums)), Rows: 1, CellsPerRow: countersEach}
	for i := range problem.Sum {
		problem.Sum[i] = float64(int64(p.down.Sums[i] - p.up.Sums[i]))
	}
	for _, r := range records {
		problem.Packets = append(problem.Packets, r.Packets)
		problem.Cells = p.up.Positions(problem.Cells, r.Flow)
	}
	return experiment.Try(problem.Solve(context.Background(), joint.Options{}))
}

// counted lets our recorders see all packets, with as many bits, some of which count packets, in one epoch. It
// returns their answers for some flows; without samples a mean is NaN.
func (t *traffic) counted(n int, seed uint64) func([]joint.FlowRecord) []colate.Result {
	up, down := pair(colate.New, colate.Config{
		Identity: seed, Counters: n, PerFlow: countersEach, Bits: counterBits,
		CountBits: countBits, DigestBits: digestBits, Period: 1 << 53,
	})
	t.pass(up, down)
	return func(records []joint.FlowRecord) []colate.Result {
		answers := make([]colate.Result, len(records))
		for i, record := range records {
			a, err := colate.Estimate(up, down, record)
			if a.Err = err; err != nil {
				a.Mean = math.NaN()
			}
			answers[i] = a
		}
		return answers
	}
}

// records returns what a collector knows about some flows.
func (t *traffic) records(asked []int) []joint.FlowRecord {
	records := make([]joint.FlowRecord, len(asked))
	for k, i := range asked {
		records[k] = joint.FlowRecord{Flow: t.flows[i].key, Packets: float64(t.flows[i].packets)}
	}
	return records
}

// everyRecord returns what it knows about all flows.
func (t *traffic) everyRecord() []joint.FlowRecord { return t.records(t.some(every, len(t.flows))) }

// errors returns the errors of a method's means of some flows. answer returns the k-th of these, which is about
// flow i. A flow without an answer is infinitely off.
func (t *traffic) errors(name string, asked []int, answer func(k, i int) float64) *perflow.Errors {
	e := perflow.New(name, perflow.Infinite)
	for k, i := range asked {
		e.Add(t.flows[i].packets, answer(k, i), t.flows[i].mean())
	}
	return e
}

// A race compares the paper's estimator with ours, at equal memory, for some flows.
type race struct {
	theorem, single, joint *perflow.Errors
}

func (t *traffic) race(n int, seed uint64, asked []int) race {
	p, answers := t.plain(n, seed), t.counted(n, seed)(t.records(asked))
	decoded := p.decode(t.everyRecord())
	return race{
		t.errors("Theorem 2", asked, func(_, i int) float64 {
			return paper.Theorem2(p.up, p.down, t.flows[i].key, uint64(t.flows[i].packets))
		}),
		t.errors("Estimate, counted", asked, func(k, _ int) float64 { return answers[k].Mean }),
		t.errors("joint", asked, func(_, i int) float64 { return decoded.Mean[i] }),
	}
}
