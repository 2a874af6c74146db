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

// paperBits is what the paper claims to store for a packet.
const paperBits = 0.1

func measureStorage(run *experiment.Run) {
	most, seed := run.Pick(200, 1000), run.SeedOf("storage")
	stored := []float64{0.1, 0.3, 1, 3, 10, 30, 100}
	if run.Quick {
		stored = []float64{0.1, 1, 10, 100}
	}
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
		paper, ours := plot.Series{Name: k.name + ", Theorem 2", Paper: true, Pair: i + 1}, plot.Series{Name: k.name + ", joint", Pair: i + 1}
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
		accuracy.Series = append(accuracy.Series, paper, ours)
		line := plot.Series{Name: k.name, Paper: true, Pair: i + 1}
		for _, shift := range experiment.Each(run, shifts) {
			bits, epochs, off := t.literal(run, shift, seed, run.Pick(40, 100))
			line.Add(math.Exp2(float64(shift))/1e6, 100*off)
			narrow.Row(k.name, fmt.Sprintf("%.3g ms", math.Exp2(float64(shift))/1e6), epochs, number(bits), percent(off))
		}
		literal.Series = append(literal.Series, line)
	}
	run.Note(
		"At a given number of bits for a packet the length of the epoch does not matter to how many packets share a counter. "+
			"What matters is how many counters there are for a flow: with fewer than flows have each, every estimator tends to the mean of all.",
		"The paper does not name its time unit. In its example a mean time stamp is below 10³ units at 0.1 bit a packet: "+
			"a unit of a millisecond for an epoch of a second. Then a delay of microseconds shows only where the clock ticks meanwhile.",
	)
}

// drawMemory is what a packet takes by memory, and what the paper claims.
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

// literal records by counters of 19 bits in units of 2^shift ns, epoch by
// epoch, and returns what that stores and the median error of Theorem 2. Time
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
