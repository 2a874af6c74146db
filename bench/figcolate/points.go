package figcolate

import (
	"fmt"

	"github.com/hoplag/hoplag/bench/counters"
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
func sums(n int, seed uint64) paper.Config {
	return paper.Config{Identity: seed, Counters: n, PerFlow: countersEach, Bits: counterBits, TimeBits: stampBits, Vectors: 1}
}

// counted is one of as many bits, some of which count packets, in one epoch.
func counted(n int, seed uint64) colate.Config {
	return colate.Config{
		Identity: seed, Counters: n, PerFlow: countersEach, Bits: counterBits,
		CountBits: countBits, DigestBits: digestBits, Period: colate.MaxPeriod,
	}
}

// countersIn is how many counters some memory has, in a full run.
func countersIn(run *experiment.Run, megabytes float64) int {
	return scaled(run, megabytes*megabyte/counterBits)
}

// scaled is a number of counters in this run.
func scaled(run *experiment.Run, n float64) int {
	if run.Quick {
		n *= float64(quickPackets) / fullPackets
	}
	return max(int(n), 2*countersEach)
}

// all are the packets, as recorders see them.
func (t *traffic) all(yield func(counters.Packet) bool) {
	for i := range t.packets {
		p := &t.packets[i]
		if !yield(counters.Packet{Flow: t.flows[p.flow].key, ID: p.id, In: p.in, Out: p.out}) {
			return
		}
	}
}

// records are what a collector knows of some flows.
func (t *traffic) records(asked []int) []joint.FlowRecord {
	records := make([]joint.FlowRecord, len(asked))
	for k, i := range asked {
		records[k] = joint.FlowRecord{Flow: t.flows[i].key, Packets: float64(t.flows[i].packets)}
	}
	return records
}

// everyRecord is what it knows of all.
func (t *traffic) everyRecord() []joint.FlowRecord { return t.records(t.some(every, len(t.flows))) }

// theorem2 is the errors of the paper's estimator.
func (t *traffic) theorem2(name string, p *counters.Plain, asked []int) *perflow.Errors {
	return t.errors(name, asked, func(_, i int) float64 {
		return p.Theorem2(t.flows[i].key, uint64(t.flows[i].packets))
	}).ByPaper()
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
	counting               *counters.Counted
}

func (t *traffic) race(run *experiment.Run, n int, seed uint64, asked []int) race {
	plain, counting := counters.Record(sums(n, seed), t.all), counters.Count(counted(n, seed), t.all)
	decoded, answers := plain.Joint(run, t.everyRecord()), counting.Estimate(t.records(asked))
	return race{
		t.theorem2("Theorem 2", plain, asked),
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
	return percent(x)
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
func bitsPerPacket(n, bits, packets int) float64 {
	return float64(n) * float64(bits) / float64(packets)
}

// configure says how a recorder was made, and more.
func configure(run *experiment.Run, more ...any) {
	run.Config(more...)
	run.Config("packets", run.Pick(quickPackets, fullPackets),
		"counters", fmt.Sprintf("%d of %d bits to a flow; time stamps of %d bits in ns, or sums that wrap beside counts of %d bits and "+
			"digests of %d",
			countersEach, counterBits, stampBits, countBits, digestBits))
}
