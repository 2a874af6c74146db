package figlds

import (
	"math"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/flowsim"
	"github.com/hoplag/hoplag/bench/perflow"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/lds"
)

var accumulated = experiment.Experiment{
	Name: "ours-lds-accumulate", Title: "Comparing often: errors and answers under loss, where clocks cut the intervals",
	Claim: "Ours: a loss spoils a cell until the next comparison only, and packets that cross the cuts of clocks spoil nothing; " +
		"so with a hundred comparisons most large flows have an answer at 1 % loss, where one comparison leaves few, and intervals hold.",
	Weight: 110, Quick: 4, Measure: measureAccumulated,
}

var (
	comparisonsOf = []int{1, 10, 40, 100, 300}
	crossingLoss  = []float64{0, 0.001, 0.01, 0.05}
)

// An accumulation is the result of a number of comparisons at a loss.
type accumulation struct {
	loss           float64
	comparisons    int
	read, decoded  *method
	covered        [2]perflow.Coverage // of flows of 100 packets and more, read and decoded
	answered       perflow.Coverage    // likewise, by reading
	sparse, packed int                 // bytes of all records of a point
}

func measureAccumulated(run *experiment.Run) {
	iv := newInterval(run, 0)
	config := shape(run, 17500, 1, 1, 1, 0.1, 0.01)
	var packets []passing
	for i := range iv.Flows {
		for p := range iv.Flows[i].Packets() {
			packets = append(packets, passing{i, p})
		}
	}
	run.Alive()
	var list []*accumulation
	for _, loss := range experiment.Each(run, crossingLoss) {
		for _, n := range experiment.Each(run, comparisonsOf) {
			a := &accumulation{loss: loss, comparisons: n, read: newMethod("read"), decoded: newMethod("decoded")}
			a.measure(run, iv, iv.crossed(run, config, packets, a))
			list = append(list, a)
		}
	}
	drawAccumulated(run, list)
	judgeAccumulated(run, list)
	run.Config("sketch", config, "losses", crossingLoss, "comparisons", comparisonsOf)
	run.Note("Both points cut by their clocks, and packets that are on their way then are counted in different intervals. Delays are about a "+
		"millisecond, an interval is 287 s: a packet seldom crosses a cut, but there are always some that do.",
		"Bytes are what a point sends in all, by AppendSparse and by AppendBinary.",
		"Packets are lost one by one. Flows of 1,000 packets and more lose ten at 1 %, so that one comparison leaves none of the cells that "+
			"see every packet.")
}

// A passing is a packet of a flow, by the flow's number.
type passing struct {
	flow int
	flowsim.Packet
}

// crossed accumulates the interval's packets, compared by the clock.
func (iv *interval) crossed(run *experiment.Run, config lds.Config, packets []passing, a *accumulation) *lds.Accumulator {
	acc := experiment.Try(lds.NewAccumulator(config))
	up, down := experiment.Try(lds.New(config)), experiment.Try(lds.New(config))
	for k, part := range iv.cut(packets, a) {
		run.Alive()
		up.Reset()
		down.Reset()
		for _, p := range part[0] {
			up.Update(iv.keys[p.flow], p.ID, p.Sent)
		}
		for _, p := range part[1] {
			down.Update(iv.keys[p.flow], p.ID, p.Sent+p.Delay)
		}
		a.sparse += len(experiment.Try(up.AppendSparse(nil)))
		a.packed += config.EncodedSize()
		experiment.Check(acc.Add(uint64(k), up, down))
	}
	return acc
}

// cut distributes the packets over intervals by each point's clock.
func (iv *interval) cut(packets []passing, a *accumulation) [][2][]*passing {
	length := int64(iv.Config.Seconds*1e9)/int64(a.comparisons) + 1
	parts := make([][2][]*passing, a.comparisons+1)
	for i := range packets {
		p := &packets[i]
		k := p.Sent / length
		parts[k][0] = append(parts[k][0], p)
		if !iv.loses(p.Packet, a.loss) {
			k = (p.Sent + p.Delay) / length
			parts[k][1] = append(parts[k][1], p)
		}
	}
	return parts
}

func (a *accumulation) measure(run *experiment.Run, iv *interval, acc *lds.Accumulator) {
	decoded := experiment.Try(acc.Decode(run.Context(), iv.records(iv.packets), joint.Options{}))
	truths := iv.received(a.loss)
	a.read.addOf(iv, func(i int) float64 {
		r, err := acc.Estimate(iv.keys[i])
		if classes[fromHundred].Has(iv.Flows[i].Size) {
			if a.answered.Count(err == nil); err == nil {
				a.covered[0].Count(r.MeanInterval(confidence).Contains(truths(i)))
			}
		}
		if err != nil {
			return math.NaN()
		}
		return r.Mean
	}, truths, nil)
	a.decoded.addOf(iv, usable(&decoded), truths, nil)
	for i := range iv.Flows {
		if decoded.Usable[i] != 0 && classes[fromHundred].Has(iv.Flows[i].Size) {
			a.covered[1].Count(decoded.MeanInterval(i, confidence).Contains(truths(i)))
		}
	}
}

// received returns the means of the packets that arrived.
func (iv *interval) received(loss float64) answer {
	means := make([]float64, len(iv.Flows))
	for i := range iv.Flows {
		f := &iv.Flows[i]
		var sum, n float64
		for p := range f.Packets() {
			if !iv.loses(p, loss) {
				sum += float64(p.Delay)
				n++
			}
		}
		means[i] = f.Mean
		if n > 0 {
			means[i] = sum / n
		}
	}
	return func(i int) float64 { return means[i] }
}

func drawAccumulated(run *experiment.Run, list []*accumulation) {
	f := run.Draw("a", "Median error of flows of 100 packets and more, by comparisons",
		"Dashed: read from cells. Solid: joint decoding, packets known. A flow without an answer counts as 100 %.", plot.LogAxis("comparisons"),
		plot.LogAxis("relative error (%)"))
	table := run.Table("comparisons", "Comparing often, flows of 100 packets and more", "loss", "comparisons", "MB sparse", "MB in full",
		"answered", "read: median / 95th percentile", "in 95 % intervals", "decoded", "in 95 % intervals", "≥ 1,000 packets: read", "decoded")
	for k, loss := range crossingLoss {
		read := f.Line(plot.Series{Name: percent(loss) + " lost, read", Paper: true, Pair: k + 1})
		decoded := f.Line(plot.Series{Name: percent(loss) + " lost, decoded", Pair: k + 1})
		for _, a := range list {
			if a.loss != loss {
				continue
			}
			read.Add(float64(a.comparisons), 100*a.read.median(fromHundred))
			decoded.Add(float64(a.comparisons), 100*a.decoded.median(fromHundred))
			table.Row(percent(loss), a.comparisons, number(float64(a.sparse)/1e6), number(float64(a.packed)/1e6), percent(a.answered.Share()),
				a.read.cell(fromHundred), percent(a.covered[0].Share()), a.decoded.cell(fromHundred), percent(a.covered[1].Share()),
				a.read.cell(fromThousand), a.decoded.cell(fromThousand))
		}
	}
}

func judgeAccumulated(run *experiment.Run, list []*accumulation) {
	at := func(loss float64, n int) *accumulation {
		for _, a := range list {
			if a.loss == loss && a.comparisons == n {
				return a
			}
		}
		return nil
	}
	once, often := at(0.01, 1), at(0.01, 100)
	run.Beats("1 % loss, flows of 100 packets and more, median by one comparison and by 100, read from cells",
		often.read.median(fromHundred), once.read.median(fromHundred), 0.05)
	run.Beats("the same, joint decoding", often.decoded.median(fromHundred), once.decoded.median(fromHundred), 0.05).Headline = true
	lowest := 1.0
	for _, a := range list {
		for _, c := range a.covered {
			if c.All > 0 {
				lowest = min(lowest, c.Share())
			}
		}
	}
	for _, class := range []int{fromHundred, fromThousand} {
		worst, where := 0.0, ""
		for _, a := range list {
			if a.comparisons == 1 {
				continue // nothing is read beside what is decoded
			}
			if ratio := a.decoded.median(class) / a.read.median(class); ratio > worst {
				worst, where = ratio, percent(a.loss)+" loss, "+number(float64(a.comparisons))+" comparisons"
			}
		}
		run.Claim("median of joint decoding beside that of reading, "+classes[class].Name+", where it is the largest ("+where+")",
			"ours: never worse", number(worst), experiment.Judge(worst, 1, 0.05))
	}
	run.Keeps("lowest coverage of 95 % intervals, any loss and number of comparisons", "ours: ≥ 95 %", percent(lowest), lowest >= confidence)
}
