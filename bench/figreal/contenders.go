package figreal

import (
	"math"
	"math/bits"

	"github.com/hoplag/hoplag/bench/counters"
	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/perflow"
	"github.com/hoplag/hoplag/colate"
	"github.com/hoplag/hoplag/colate/paper"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/lds"
	"github.com/hoplag/hoplag/rli"
)

// cellsPerFlow is what the LDS paper has against losses: 350,000 cells for
// some 146,000 flows.
const cellsPerFlow = 350_000.0 / 146_000

// sketch is the shape that the paper recommends, and lossy the one that it has
// against losses; without their columns.
var (
	sketch = lds.Config{Rows: 4, Spread: 1, Rates: [lds.MaxRows]float64{1, 1, 1, 1}, SumBits: 48, DigestBits: 16}
	lossy  = lds.Config{Rows: 4, Spread: 5, Rates: [lds.MaxRows]float64{1, 0.5, 0.1, 0.01}, Tolerance: 0.1, SumBits: 48, DigestBits: 16}
)

// plain and counted are the ways to use a counter, without the number of
// counters: the paper's sums, and counters that also count. No flow here has
// enough packets to overflow 16 bits.
var (
	plain   = paper.Config{PerFlow: 20, Bits: 60, TimeBits: 42}
	counted = colate.Config{PerFlow: 20, Bits: 60, CountBits: 16, DigestBits: 4, Period: 1 << 53}
)

// askLDS returns what two sketches say about all flows of a capture: the
// least loaded cells, and all cells decoded together with the packet counts of
// flow records; and the size of a sketch in bytes.
func (c *capture) askLDS(run *experiment.Run, seed uint64, config lds.Config) (least, joined []float64, bytes int) {
	config.Identity = seed
	config.Columns = max(config.Spread, int(cellsPerFlow*float64(len(c.flows))/float64(config.Rows)))
	up, down := counters.Pair(lds.New, config)
	packets, known := c.seen(seed, true)
	for p := range packets {
		if up.Update(p.Flow, p.ID, p.In); !p.Lost {
			down.Update(p.Flow, p.ID, p.Out)
		}
	}
	least = perflow.Unanswered(len(known))
	for i := range known {
		known[i].Packets = float64(c.flows[i].sent)
		if r, ok := experiment.Answer(lds.Estimate(up, down, known[i].Flow)); ok {
			least[i] = r.Mean
		}
	}
	joined = experiment.Try(lds.Decode(run.Context(), up, down, known, joint.Options{})).Mean
	return least, joined, config.Rows * config.Columns * config.CellBytes()
}

// countersPerFlow is how many counters have the bytes of the sketches' cells.
func countersPerFlow() float64 {
	return cellsPerFlow * float64(8*sketch.CellBytes()) / float64(plain.Bits)
}

// counters returns how many counters a capture gets.
func (c *capture) counters(perFlow int) int {
	return max(2*perFlow, int(countersPerFlow()*float64(len(c.flows))))
}

// askPaper returns what the paper's counters say that were shown the packets
// that arrived: Theorem 2 of each flow asked, and all flows decoded together.
func (c *capture) askPaper(run *experiment.Run, seed uint64, asked []int) (means, joined []float64) {
	config := plain
	config.Identity, config.Counters = seed, c.counters(config.PerFlow)
	packets, records := c.seen(seed, false)
	recorded := counters.Record(config, packets)
	means = perflow.Unanswered(len(records))
	for _, i := range asked {
		means[i] = recorded.Theorem2(records[i].Flow, c.flows[i].delays.N())
		run.Alive()
	}
	return means, recorded.Joint(run, records).Mean
}

// askCOLATE returns what counters that count say about the flows asked.
func (c *capture) askCOLATE(seed uint64, asked []int) []float64 {
	config := counted
	config.Identity, config.Counters = seed, c.counters(config.PerFlow)
	packets, records := c.seen(seed, true)
	some := make([]joint.FlowRecord, len(asked))
	for k, i := range asked {
		some[k] = records[i]
	}
	means := perflow.Unanswered(len(records))
	for k, answer := range counters.Count(config, packets).Estimate(some) {
		means[asked[k]] = answer.Mean
	}
	return means
}

// every is the distance between references, in packets: in the middle of the
// paper's 10 to 300, and the same on all links, which differ in load.
const every = 50

// A departure is what is reported to a receiver: a packet or a reference.
type departure struct {
	flow      int32
	bytes     int32
	at        int64
	reference bool
	stamp     rli.ReferencePacket
}

// follow lets a reference without length follow every n captured packets: it
// leaves when its packet left.
func (c *capture) follow() []departure {
	injector := experiment.Try(rli.NewInjector(rli.InjectorConfig{Every: every}))
	stamps := map[int32]rli.ReferencePacket{}
	now := int64(math.MinInt64)
	for i := range c.packets {
		now = max(now, c.packets[i].in)
		if stamp, due := injector.Packet(int(c.packets[i].bytes), now); due {
			stamps[int32(i)] = stamp
		}
	}
	var list []departure
	now = math.MinInt64
	for _, number := range c.leaving {
		p := &c.packets[number]
		now = max(now, p.out)
		list = append(list, departure{flow: p.flow, bytes: p.bytes, at: now})
		if stamp, ok := stamps[number]; ok {
			list = append(list, departure{reference: true, at: now, stamp: stamp})
		}
	}
	return list
}

// askRLI returns what a receiver with room for the flows of a capture says
// about them, and its size in bytes. Without a rate, sizes are not corrected
// for.
func (c *capture) askRLI(seed uint64) ([]float64, int) {
	config := rli.DefaultConfig
	config.Identity, config.Method, config.Rate = seed, rli.Linear, 0
	config.Flows = max(64, 1<<bits.Len(uint(len(c.flows))))
	list := c.follow()
	r := experiment.Try(rli.NewReceiver(config))
	keys := c.flowKeys(config.Identity)
	for i := range list {
		d := &list[i]
		if d.reference {
			r.Reference(d.stamp, d.at)
		} else {
			r.Update(keys[d.flow], int(d.bytes), d.at)
		}
	}
	r.Flush()
	answers := perflow.Unanswered(len(keys))
	for i, key := range keys {
		if got, err := r.Estimate(key); err == nil {
			answers[i] = got.Mean
		}
	}
	return answers, config.MemorySize()
}
