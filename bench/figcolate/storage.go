package figcolate

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/colate/paper"
)

var storage = experiment.Experiment{
	Name:   "colate-10",
	Group:  group,
	Title:  "Storage of a packet, and the accuracy it buys",
	Claim:  "Less than 0.1 bit is stored for a packet, with any of the three traces and memories, at α = 0.99 and β = 0.01 (section 6.3, Fig. 10).",
	Weight: 200, Quick: 7,
	Run: runStorage,
}

// paperBits is what the paper claims to store for a packet.
const paperBits = 0.1

func runStorage(ctx context.Context, run *experiment.Run) (experiment.Result, error) {
	most := run.Pick(200, 1000)
	seed := run.SeedOf("storage")
	stored := []float64{0.1, 0.3, 1, 3, 10, 30, 100}
	if run.Quick {
		stored = []float64{0.1, 1, 10, 100}
	}
	shifts := []uint8{15, 18, 21, 24}
	accuracy := plot.Figure{
		Name: "10b", Title: "Median error of means and storage, flows of 1,000 packets and more",
		Caption: fmt.Sprintf("Dashed: Theorem 2. Solid: joint decoding. Counters of %d bits, %d to a flow.", counterBits, countersEach),
		X:       plot.Axis{Label: "stored for a packet (bits)", Scale: plot.Log}, Y: errorAxis(0, 0),
	}
	literal := plot.Figure{
		Name: "10c", Title: "Counters of 19 bits: error of means, flows of 100 packets and more",
		Caption: "Theorem 2, 1 MB, by the unit of time: the coarser, the fewer epochs are stored (see the table), and the less of a delay shows.",
		X:       plot.Axis{Label: "unit of time (ms)", Scale: plot.Log}, Y: errorAxis(0, 0),
	}
	bars := plot.Figure{
		Name: "10", Title: "Bits a packet by memory",
		Caption: "What one epoch of a trace's packets takes, 4 million in a full run. An epoch of more packets takes less for each, and is less accurate: see the next figure.",
		X:       plot.Axis{Label: "memory at a point", Categories: []string{"1 MB", "10 MB", "100 MB"}}, Y: plot.Axis{Label: "bits a packet", Scale: plot.Log, Min: 0.01, Max: 1000},
	}
	table := experiment.Table{Title: "Median error of means, flows of 1,000 packets and more", Columns: []string{"trace", "bits a packet", "counters", "Theorem 2", "Estimate, counted", "joint", "within 1 %, Theorem 2", "within 1 %, joint"}}
	narrow := experiment.Table{Name: "literal", Title: "Counters of 19 bits, as many as 1 MB holds, Theorem 2", Columns: []string{"trace", "unit", "epochs", "bits a packet", "median error, flows ≥ 100"}}
	result := experiment.Result{Config: setting(run, map[string]any{"bits a packet": stored, "units, 2^n ns": shifts, "seed": seed})}
	step := run.Steps(ctx, len(kinds)*(len(stored)+len(shifts)))
	for i, k := range kinds {
		t, err := newTraffic(ctx, run, k)
		if err != nil {
			return experiment.Result{}, err
		}
		paper, ours := plot.Series{Name: k.name + ", Theorem 2", Paper: true, Pair: i + 1}, plot.Series{Name: k.name + ", joint", Pair: i + 1}
		chosen := t.some(large, most)
		for b, bits := range stored {
			n := max(int(bits*float64(len(t.packets))/counterBits), 2*countersEach)
			all, err := t.race(ctx, n, seed, chosen)
			if err != nil {
				return experiment.Result{}, err
			}
			theorem, single, joint := all[0], all[1], all[2]
			paper.Add(bits, 100*theorem.median(large))
			ours.Add(bits, 100*joint.median(large))
			table.Add(k.name, experiment.Number(bits), fmt.Sprint(n), experiment.Percent(theorem.median(large)), experiment.Percent(single.median(large)), experiment.Percent(joint.median(large)),
				experiment.Percent(theorem.within(large, 0.01)), experiment.Percent(joint.within(large, 0.01)))
			if b == 0 {
				result.Claims = append(result.Claims, experiment.Claim{
					What:  fmt.Sprintf("%s, %v bit a packet: flows of ≥ 1,000 packets within 1 %%, Theorem 2 (joint: %s)", k.name, bits, experiment.Percent(joint.within(large, 0.01))),
					Paper: "≥ 99 %", Ours: experiment.Percent(theorem.within(large, 0.01)), Verdict: experiment.Holds(theorem.within(large, 0.01) >= 0.99),
				})
			}
			if err := step(); err != nil {
				return experiment.Result{}, err
			}
		}
		accuracy.Series = append(accuracy.Series, paper, ours)
		line := plot.Series{Name: k.name, Paper: true, Pair: i + 1}
		for _, shift := range shifts {
			bits, epochs, off, err := t.literal(run, shift, seed, run.Pick(40, 100))
			if err != nil {
				return experiment.Result{}, err
			}
			line.Add(math.Exp2(float64(shift))/1e6, 100*off)
			narrow.Add(k.name, fmt.Sprintf("%.3g ms", math.Exp2(float64(shift))/1e6), fmt.Sprint(epochs), experiment.Number(bits), experiment.Percent(off))
			if err := step(); err != nil {
				return experiment.Result{}, err
			}
		}
		literal.Series = append(literal.Series, line)
	}
	bar := plot.Series{Name: fmt.Sprintf("%d bits a counter, any trace", counterBits), Kind: plot.Bars}
	for m, mb := range memories {
		bar.Add(float64(m), bitsPerPacket(countersIn(run, mb), counterBits, run.Pick(quickPackets, fullPackets)))
	}
	claimed := plot.Level("the paper's claim, whatever the memory", paperBits, -0.5, 2.5)
	claimed.Paper = true
	bars.Series = []plot.Series{bar, claimed}
	result.Figures = []plot.Figure{bars, accuracy, literal}
	result.Tables = []experiment.Table{table, narrow}
	result.Notes = []string{
		"At a given number of bits for a packet the length of the epoch does not matter to how many packets share a counter. What matters is how many counters there are for a flow: with fewer than flows have each, every estimator tends to the mean of all.",
		"The paper does not name its time unit. In its example a mean time stamp is below 10³ units at 0.1 bit a packet: a unit of a millisecond for an epoch of a second. Then a delay of microseconds shows only where the clock ticks meanwhile.",
	}
	return result, nil
}

// literal records by counters of 19 bits in units of 2^shift ns, epoch by
// epoch, and returns what that stores and the median error of Theorem 2. Time
// begins with each trace.
func (t *traffic) literal(run *experiment.Run, shift uint8, seed uint64, most int) (bits float64, epochs int, off float64, err error) {
	c := paper.Config{
		Identity: seed, Counters: scaled(run, megabyte/19), PerFlow: countersEach, Bits: 19, Vectors: 1,
		Shift: shift, TimeBits: min(32-shift, 17), Threshold: uint64(float64(scaled(run, 1e6)) * 8e4),
	}
	up, down, err := newRecorders(c)
	if err != nil {
		return 0, 0, 0, err
	}
	asked := class{"≥ 100", 100, unlimited}
	chosen := t.some(asked, most)
	type pair struct{ sender, receiver *paper.Subvector }
	gathered := make([]pair, len(chosen))
	for i, j := range chosen {
		s, err := paper.NewSubvector(c)
		if err != nil {
			return 0, 0, 0, err
		}
		r, err := paper.NewSubvector(c)
		if err != nil {
			return 0, 0, 0, err
		}
		s.Reset(t.flows[j].key)
		r.Reset(t.flows[j].key)
		gathered[i] = pair{s, r}
	}
	add := func(e *paper.Epoch, point func(pair) *paper.Subvector) {
		if e == nil {
			return
		}
		epochs++
		for _, p := range gathered {
			err = errors.Join(err, point(p).Add(e))
		}
	}
	ofSender, ofReceiver := func(p pair) *paper.Subvector { return p.sender }, func(p pair) *paper.Subvector { return p.receiver }
	for i := range t.packets {
		p := &t.packets[i]
		key := t.flows[p.flow].key
		add(up.Update(key, p.id, p.in), ofSender)
		add(down.Update(key, p.id, p.out), ofReceiver)
	}
	add(up.Current(), ofSender)
	add(down.Current(), ofReceiver)
	if err != nil {
		return 0, 0, 0, err
	}
	found := &errorsOf{}
	for i, j := range chosen {
		f := &t.flows[j]
		x, err := orNone(paper.Theorem2(gathered[i].sender, gathered[i].receiver, uint64(f.packets)))
		if err != nil {
			return 0, 0, 0, err
		}
		found.add(f, x)
	}
	epochs /= 2 // of one point, or one more
	return float64(epochs) * bitsPerPacket(c.Counters, int(c.Bits), len(t.packets)), epochs, found.median(asked), nil
}
