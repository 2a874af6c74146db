package figlds

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/perflow"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lds"
)

var accumulated = experiment.Experiment{
	Name: "ours-lds-accumulate", Title: "Comparing often: errors and answers under loss, where clocks cut the intervals",
	Claim: "Ours: packets that cross the cuts of clocks cost nothing, and a loss costs little if it is known when it was; so with a hundred " +
		"comparisons nearly all large flows have an answer, intervals hold, and a queue that drops its tail causes no bias.",
	Weight: 60, Quick: 4, Measure: measureAccumulated,
}

const (
	crossingSeconds = 10
	crossingRate    = 50_000 // packets a second
)

var comparisonsOf = []int{1, 10, 100}

// A passing is a packet of a flow.
type passing struct {
	flow        int
	id          hashing.Packet
	sent, delay int64
	lost        bool
}

// A crossing is traffic that crosses the cuts of clocks, with what is true of its flows.
type crossing struct {
	name        string
	keys        []hashing.Flow
	sent, means []float64 // packets, and the means of those that arrived
	packets     []passing
}

// newCrossing has flows of Pareto sizes, whose delays are a fifth of, once or four times
// 5 ms, and losses that are even; or if loss is below 0, they share a queue of 20 ms that
// drops its tail, in bursts of traffic.
func newCrossing(run *experiment.Run, name string, flows int, loss float64) *crossing {
	r := rand.New(rand.NewPCG(run.SeedOf("crossing "+name), 1))
	c := &crossing{name: name, sent: make([]float64, flows), means: make([]float64, flows)}
	shares, each, arrived, total := make([]float64, flows), make([]float64, flows), make([]float64, flows), 0.0
	for i := range flows {
		c.keys = append(c.keys, hashing.Flow(r.Uint64()))
		total += min(2*math.Pow(1-r.Float64(), -1/1.1), 20000)
		shares[i], each[i] = total, 5e6*[]float64{0.2, 1, 4}[r.IntN(3)]
	}
	rate := crossingRate * float64(run.Pick(1, 10))
	queue, now, busy, until := 0.0, 0.0, 1.0, 0.0
	for now < crossingSeconds*1e9 {
		if now > until {
			busy, until = 0.6+0.8*r.Float64(), now+2e8*r.ExpFloat64()
		}
		step := r.ExpFloat64() * 1e9 / rate
		if loss < 0 {
			step /= busy
		}
		now += step
		queue = max(0, queue-step)
		i, _ := slices.BinarySearch(shares, r.Float64()*total)
		p := passing{i, hashing.Packet(r.Uint64()), int64(now), int64(each[i] * (0.7 + 0.3*r.ExpFloat64())), r.Float64() < loss}
		if loss < 0 {
			if p.delay, p.lost = int64(queue)+1e5, queue > 20e6; !p.lost {
				queue += 1e9 / rate
			}
		}
		c.packets = append(c.packets, p)
		c.sent[i]++
		if !p.lost {
			c.means[i] += float64(p.delay)
			arrived[i]++
		}
	}
	for i := range c.means {
		c.means[i] /= arrived[i]
	}
	return c
}

// accumulate compares so many times, and once more for what comes last.
func (c *crossing) accumulate(config lds.Config, comparisons int) *lds.Accumulator {
	length := int64(crossingSeconds*1e9) / int64(comparisons)
	parts := make([][2][]*passing, comparisons+2+int(2e8/length))
	for i := range c.packets {
		p := &c.packets[i]
		k := p.sent / length
		parts[k][0] = append(parts[k][0], p)
		if !p.lost {
			k = min((p.sent+p.delay)/length, int64(len(parts)-1))
			parts[k][1] = append(parts[k][1], p)
		}
	}
	a := experiment.Try(lds.NewAccumulator(config))
	up, down := experiment.Try(lds.New(config)), experiment.Try(lds.New(config))
	for k, part := range parts {
		up.Reset()
		down.Reset()
		for _, p := range part[0] {
			up.Update(c.keys[p.flow], p.id, p.sent)
		}
		for _, p := range part[1] {
			down.Update(c.keys[p.flow], p.id, p.sent+p.delay)
		}
		experiment.Check(a.Add(int64(k)*length, int64(k+1)*length, up, down))
	}
	return a
}

// An accumulation is the result of a number of comparisons.
type accumulation struct {
	traffic       string
	comparisons   int
	read, decoded *method
	covered       [2]perflow.Coverage // of flows of 100 packets and more, read and decoded
	bias          float64             // median of the signed errors of these, decoded
}

func (a *accumulation) measure(c *crossing, acc *lds.Accumulator) {
	records := make([]joint.FlowRecord, len(c.keys))
	for i, f := range c.keys {
		records[i] = joint.FlowRecord{Flow: f, Packets: c.sent[i]}
	}
	decoded := experiment.Try(acc.Decode(context.Background(), records, joint.Options{}))
	var signed []float64
	for i, truth := range c.means {
		if math.IsNaN(truth) {
			continue
		}
		large := classes[fromHundred].Has(int(c.sent[i]))
		got := [2]float64{math.NaN(), math.NaN()}
		if r, err := acc.Estimate(c.keys[i]); err == nil {
			if got[0] = r.Mean; large {
				a.covered[0].Add(r.MeanInterval(confidence), truth)
			}
		}
		if decoded.Usable[i] > 0 {
			if got[1] = decoded.Mean[i]; large {
				a.covered[1].Add(decoded.MeanInterval(i, confidence), truth)
				signed = append(signed, got[1]/truth-1)
			}
		}
		a.read.Add(int(c.sent[i]), got[0], truth)
		a.decoded.Add(int(c.sent[i]), got[1], truth)
	}
	a.bias = perflow.Quantile(signed, 0.5)
}

func measureAccumulated(run *experiment.Run) {
	config := shape(run, 17500, 1, 1, 1, 0.1, 0.01)
	flows := run.Pick(3000, 30_000)
	table := run.Table("Comparing often, flows of 100 packets and more", "loss", "comparisons", "answered",
		"read: median / 95th percentile", "in 95 % intervals", "decoded", "in 95 % intervals", "bias", "≥ 1,000 packets: read", "decoded")
	var list []*accumulation
	for _, t := range []struct {
		name string
		loss float64
	}{{"none", 0}, {"0.1 %", 0.001}, {"1 %", 0.01}, {"5 %", 0.05}, {"a full queue", -1}} {
		c := newCrossing(run, t.name, flows, t.loss)
		for _, n := range comparisonsOf {
			a := &accumulation{traffic: t.name, comparisons: n, read: newMethod("read"), decoded: newMethod("decoded")}
			a.measure(c, c.accumulate(config, n))
			table.Row(t.name, n, percent(a.read.answers(fromHundred)), a.read.cell(fromHundred), percent(a.covered[0].Share()),
				a.decoded.cell(fromHundred), percent(a.covered[1].Share()), percent(a.bias),
				a.read.cell(fromThousand), a.decoded.cell(fromThousand))
			list = append(list, a)
		}
	}
	judgeAccumulated(run, list)
	run.Note("Both points cut by their clocks, and packets on their way then are counted in different intervals. Delays are 1 to 40 ms, or " +
		"up to 20 ms in the queue, which loses 6 % of its packets.")
}

func judgeAccumulated(run *experiment.Run, list []*accumulation) {
	lowest, worse, where := 1.0, 0.0, ""
	for i, a := range list {
		for _, c := range a.covered {
			if c.All > 50 {
				lowest = min(lowest, c.Share())
			}
		}
		if a.comparisons > 1 {
			if ratio := a.decoded.median(fromHundred) / list[i-1].decoded.median(fromHundred); ratio > worse {
				worse, where = ratio, a.traffic
			}
		}
	}
	once, often, queue := list[6], list[8], list[len(list)-1]
	run.Beats("1 % loss, flows of 100 packets and more, median by one comparison and by 100, decoded",
		often.decoded.median(fromHundred), once.decoded.median(fromHundred), 0.05)
	run.Claim("median with more comparisons beside that with fewer, where it is largest (loss: "+where+")", "ours: never worse",
		number(worse), experiment.Judge(worse, 1, 0.1))
	run.Keeps("a full queue, 100 comparisons: median of the signed errors", "ours: within 5 %", percent(queue.bias),
		math.Abs(queue.bias) < 0.05)
	run.Keeps("lowest coverage of 95 % intervals", "ours: ≥ 94 %", percent(lowest), lowest >= 0.94)
}
