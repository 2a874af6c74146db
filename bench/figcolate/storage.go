package figcolate

import (
	"fmt"
	"math"

	"github.com/hoplag/hoplag/bench/counters"
	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/perflow"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/colate/paper"
)

var storage = experiment.Experiment{
	Name: "colate-10", Title: "Storage of a packet, and the accuracy it buys",
	Claim: "Less than 0.1 bit is stored for a packet, with any of the three traces and memories, at α = 0.99 and β = 0.01 (section " +
		"6.3, Fig. 10).",
	Weight: 200, Quick: 7, Measure: measureStorage,
}

// paperBits is the paper's claim of the bits stored per packet.
const paperBits = 0.1

func measureStorage(run *experiment.Run) {
	most, seed := run.Pick(200, 1000), run.SeedOf("storage")
	stored := experiment.Choose(run, []float64{0.1, 1, 10, 100}, []float64{0.1, 0.3, 1, 3, 10, 30, 100})
	shifts := []uint8{15, 18, 21, 24}
	drawMemory(run)
	accuracy := run.Draw("10b", "Median error of means and storage, flows of 1,000 packets and more",
		fmt.Sprintf("Dashed: Theorem 2. Solid: joint decoding. Counters of %d bits, %d to a flow.", counterBits, countersEach),
		plot.LogAxis("stored for a packet (bits)"), errorAxis(0, 0))
	literal := run.Draw("10c", "Counters of 19 bits: error of means, flows of 100 packets and more",
		"Theorem 2, 1 MB, by the unit of time: the coarser, the fewer epochs are stored (see the table), and the less of a delay shows.",
		plot.LogAxis("unit of time (ms)"), errorAxis(0, 0))
	table := run.Table("", "Median error of means, flows of 1,000 packets and more", "trace", "bits a packet", "counters", "Theorem 2",
		"Estimate, counted", "joint", "within 1 %, Theorem 2", "within 1 %, joint")
	narrow := run.Table("literal", "Counters of 19 bits, as many as 1 MB holds, Theorem 2", "trace", "unit", "epochs", "bits a packet",
		"median error, flows ≥ 100")
	configure(run, "bits a packet", stored, "units, 2^n ns", shifts, "seed", seed)
	for i, k := range experiment.Each(run, kinds) {
		t := newTraffic(run, k)
		paper := accuracy.Line(plot.Series{Name: k.name + ", Theorem 2", Paper: true, Pair: i + 1})
		ours := accuracy.Line(plot.Series{Name: k.name + ", joint", Pair: i + 1})
		chosen := t.some(large, most)
		for b, bits := range experiment.Each(run, stored) {
			n := max(int(bits*float64(len(t.packets))/counterBits), 2*countersEach)
			r := t.race(run, n, seed, chosen)
			paper.Add(bits, 100*r.theorem.Median(large))
			ours.Add(bits, 100*r.joint.Median(large))
			row := []string{k.name, number(bits), fmt.Sprint(n)}
			for _, e := range []*perflow.Errors{r.theorem, r.single, r.joint} {
				row = append(row, percent(e.Median(large)))
			}
			theorem, joint := r.theorem.Within(large, 0.01), r.joint.Within(large, 0.01)
			table.Row(row, percent(theorem), percent(joint))
			if b == 0 {
				run.Holds(fmt.Sprintf("%s, %v bit a packet: flows of ≥ 1,000 packets within 1 %%, Theorem 2 (joint: %s)", k.name, bits,
					percent(joint)), "≥ 99 %", percent(theorem), theorem >= 0.99)
			}
		}
		line := literal.Line(plot.Series{Name: k.name, Paper: true, Pair: i + 1})
		for _, shift := range experiment.Each(run, shifts) {
			bits, epochs, off := t.literal(run, shift, seed, run.Pick(40, 100))
			line.Add(math.Exp2(float64(shift))/1e6, 100*off)
			narrow.Row(k.name, fmt.Sprintf("%.3g ms", math.Exp2(float64(shift))/1e6), epochs, number(bits), percent(off))
		}
	}
	run.Note("At a given number of bits for a packet the length of the epoch does not matter to how many packets share a counter. "+
		"What matters is how many counters there are for a flow: with fewer than flows have each, every estimator tends to the mean of all.",
		"The paper does not name its time unit. In its example a mean time stamp is below 10³ units at 0.1 bit a packet: "+
			"a unit of a millisecond for an epoch of a second. Then a delay of microseconds shows only where the clock ticks meanwhile.")
}

// drawMemory draws the storage per packet by memory, and the paper's claim.
func drawMemory(run *experiment.Run) {
	bar := plot.Series{Name: fmt.Sprintf("%d bits a counter, any trace", counterBits), Kind: plot.Bars}
	for m, mb := range memories {
		bar.Add(float64(m), bitsPerPacket(countersIn(run, mb), counterBits, run.Pick(quickPackets, fullPackets)))
	}
	claimed := plot.Level("the paper's claim, whatever the memory", paperBits, -0.5, 2.5)
	claimed.Paper = true
	run.Draw("10", "Bits a packet by memory", "What one epoch of a trace's packets takes, 4 million in a full run. An epoch of more packets "+
		"takes less for each, and is less accurate: see the next figure.",
		plot.Axis{Label: "memory at a point", Categories: []string{"1 MB", "10 MB", "100 MB"}},
		plot.Axis{Label: "bits a packet", Scale: plot.Log, Min: 0.01, Max: 1000}, bar, claimed)
}

// literal records with counters of 19 bits in units of 2^shift ns, epoch by
// epoch. It returns the bits stored and the median error of Theorem 2. Time
// begins with each trace.
func (t *traffic) literal(run *experiment.Run, shift uint8, seed uint64, most int) (bits float64, epochs int, off float64) {
	c := paper.Config{
		Identity: seed, Counters: scaled(run, megabyte/19), PerFlow: countersEach, Bits: 19, Vectors: 1,
		Shift: shift, TimeBits: min(32-shift, 17), Threshold: uint64(float64(scaled(run, 1e6)) * 8e4),
	}
	up, down := counters.Pair(paper.New, c)
	chosen := t.some(asked, most)
	senders, receivers := make([]*paper.Subvector, len(chosen)), make([]*paper.Subvector, len(chosen))
	for i, j := range chosen {
		senders[i], receivers[i] = counters.Pair(paper.NewSubvector, c)
		senders[i].Reset(t.flows[j].key)
		receivers[i].Reset(t.flows[j].key)
	}
	add := func(e *paper.Epoch, points []*paper.Subvector) {
		if e == nil {
			return
		}
		epochs++
		for _, p := range points {
			run.Try(p.Add(e))
		}
	}
	for p := range t.all {
		add(up.Update(p.Flow, p.ID, p.In), senders)
		add(down.Update(p.Flow, p.ID, p.Out), receivers)
	}
	add(up.Current(), senders)
	add(down.Current(), receivers)
	found := t.errors("", chosen, func(k, i int) float64 {
		return counters.OrNone(paper.Theorem2(senders[k], receivers[k], uint64(t.flows[i].packets)))
	})
	epochs /= 2 // of one point, or one more
	return float64(epochs) * bitsPerPacket(c.Counters, int(c.Bits), len(t.packets)), epochs, found.Median(asked)
}

var parameters = experiment.Experiment{
	Name: "colate-3", Title: "Storage and threshold against memory (Figs. 3 and 4)",
	Claim: "Solving eqs. (13), (14), (15) and (22) for the parameters, more memory at a point needs less storage, as the threshold T " +
		"grows faster than the memory (section 5.2, Figs. 3 and 4); 1 MB, α = 0.95, β = 0.05 give n = 455,334, b = 19, m = 20, T = " +
		"8×10¹⁰ (section 6.2.1).",
	Weight: 0.2, Quick: 0.1, Measure: measureParameters,
}

// example holds requirements whose solution is the paper's example. The paper
// does not give its own t_min and t_max; these have that solution.
var example = paper.Requirements{
	MemoryBits: megabyte, Reliability: 0.95, Error: 0.05, DelayPart: 1,
	Most: 3_514_677, Least: 85_003.2604580,
}

// exampleStamp is the largest mean time stamp, in units, with which the
// example stores 0.1 bit a packet.
const exampleStamp = 0.1 * 8e10 / megabyte

func measureParameters(run *experiment.Run) {
	p := experiment.Try(example.Solve())
	judge := func(what string, paper, ours, slack float64) {
		run.Holds("the paper's example, "+what, number(paper), number(ours), math.Abs(ours/paper-1) <= slack)
	}
	judge("n", 455_334, p.Counters, 0.01)
	judge("b, rounded up", 19, math.Ceil(p.Bits), 0)
	judge("m", 20, p.PerFlow, 0.05)
	judge("T", 8e10, p.Threshold, 0.05)
	run.Config(example)
	axis := plot.LogAxis("memory at a point (MB)")
	storage := run.Draw("3", "Permanent storage and memory",
		fmt.Sprintf("Solutions of the paper's four equations, for a mean time stamp of %.0f units, the largest with which its "+
			"example takes 0.1 bit, and for t_min as it must be in that example or off by so much.", exampleStamp),
		axis, plot.Axis{Label: "bits a packet", Scale: plot.Log, Min: 0.01, Max: 1})
	threshold := run.Draw("4", "Threshold and memory", "The same solutions.", axis, plot.LogAxis("T (time units)"))
	table := run.Table("", "Solutions by memory", "t_min, of the example's", "memory (MB)", "n", "b", "m", "T", "bits a packet")
	for i, t := range []struct {
		name  string
		least float64
	}{{"t_min 0.2 % less", 0.998}, {"t_min of the example", 1}, {"t_min 0.05 % more", 1.0005}} {
		bits, most := storage.Line(plot.Series{Name: t.name}), threshold.Line(plot.Series{Name: t.name})
		for mb := 0.25; mb <= 128; mb *= 2 {
			r := example
			r.MemoryBits, r.Least = mb*megabyte, r.Least*t.least
			p := experiment.Try(r.Solve())
			bits.Add(mb, p.BitsPerPacket(exampleStamp))
			most.Add(mb, p.Threshold)
			table.Row(t.least, number(mb), number(p.Counters), number(p.Bits), number(p.PerFlow), number(p.Threshold),
				number(p.BitsPerPacket(exampleStamp)))
		}
		if i == 1 {
			first, last := bits.Y[0], bits.Y[len(bits.Y)-1]
			grown := most.Y[len(most.Y)-1] / most.Y[0]
			memory := most.X[len(most.X)-1] / most.X[0]
			run.Holds("storage of a packet with 0.25 MB and with 128 MB", "less with more memory", fmt.Sprintf("%.3f and %.3f bits", first, last),
				last < 0.9*first)
			run.Holds("growth of T, of that of the memory", "more than 1", number(grown/memory), grown > 1.1*memory)
		}
	}
	run.Note("By eqs. (13) and (14) a packet takes b·2^(1−b) times its mean time stamp: the width of a counter decides, and the memory "+
		"does not occur. By the other two the width hardly depends on the memory either. What moves it is t_min, of which a thousandth changes "+
		"everything: by eqs. (14) and (15) m·T/n is nearly t_max whatever the memory, which leaves eq. (22) to fix t_min rather than the "+
		"parameters. The paper's Figs. 3 and 4 must be of something else that grows with the memory.",
		"Eq. (22) is taken with (n−m)² where the paper prints n−m. The example holds only with a part of the delays in the time stamps "+
			"(eq. 12) of 1, that is, for delays as large as the time stamps themselves: see colate-6 for what the equations say about real ones.")
}
