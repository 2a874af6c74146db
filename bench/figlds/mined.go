package figlds

import (
	"fmt"
	"math"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/perflow"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lds"
)

var mined = experiment.Experiment{
	Name: "lds-mined", Title: "What else the cells tell: deviation, packets, loss, heavy hitters",
	Claim: "From the same cells follow a rough deviation of a flow's delay, its packets (never fewer than they were), its losses and the " +
		"heavy hitters (section 4.3; without measurements).",
	Weight: 14, Quick: 2, Measure: measureMined,
}

// spreads are the numbers of cells of a row over which flows are scattered,
// for the deviation.
var spreads = []int{5, 16, 64}

const (
	minedColumns = spread * 17500
	minedLoss    = 0.005 // for the losses
)

// A mine is what else was found in the cells.
type mine struct {
	deviations, decodedOf   []*method        // of deviations, by spread: from a flow's cells, and decoded together
	covered                 perflow.Coverage // of the latter, flows of 100 packets and more, all spreads
	countMin, decoded, lost *method
	hits                    []hit // by threshold
	tooFew                  int   // flows whose reported packets were too few
}

// A hit counts heavy hitters: listed, real, and found.
type hit struct {
	threshold            uint64
	listed, there, found float64
}

func measureMined(run *experiment.Run) {
	intervals := run.Pick(3, 4)
	m := &mine{
		countMin: newMethod("least row (section 4.3)"), decoded: newMethod("decoded together (DecodePackets)"), lost: newMethod("losses"),
		hits: []hit{{threshold: 1000}, {threshold: 10_000}},
	}
	m.countMin.Look.Paper = true
	var configs []lds.Config
	for _, k := range spreads {
		m.deviations = append(m.deviations, newMethod(fmt.Sprintf("k = %d", k)))
		m.deviations[len(m.deviations)-1].Look.Paper = true
		m.decodedOf = append(m.decodedOf, newMethod(fmt.Sprintf("k = %d, decoded", k)))
		configs = append(configs, shape(run, minedColumns, k, everything(4)...))
	}
	banks := shape(run, minedColumns, spread, multiBank...)
	configs = append(configs, shape(run, 17500, 1, everything(4)...))
	for n := range run.Times(intervals) {
		iv := newInterval(run, n)
		observed := iv.observe(0, nil, configs...)
		run.Alive()
		afterLoss := iv.observe(minedLoss, nil, banks)
		m.digDelays(iv, observed[:len(spreads)], afterLoss[0])
		m.digDeviations(run, iv, observed[:len(spreads)])
		m.digPackets(run, iv, observed[len(spreads)].up)
	}
	m.draw(run, intervals)
	m.judge(run, intervals)
	run.Config("intervals", intervals, "sketches", append(configs, banks), "loss", minedLoss)
	run.Note("The deviation needs several usable cells in one row; flows for which there are none count as an error of 100 %. " +
		"The neighbours in the cells add the distance of their means from the flow's own, which here is as large as what is looked for.")
}

// digDelays takes deviations, and the losses of the flows that lost packets.
func (m *mine) digDelays(iv *interval, observed []points, afterLoss points) {
	for i, s := range observed {
		m.deviations[i].addOf(iv, func(i int) float64 {
			if r, err := lds.Estimate(s.up, s.down, iv.keys[i]); err == nil && r.DegreesOfFreedom > 0 {
				return r.StdDev
			}
			return math.NaN()
		}, func(i int) float64 { return iv.Flows[i].StdDev }, nil)
	}
	losses := make([]float64, len(iv.Flows))
	for i := range iv.Flows {
		for p := range iv.Flows[i].Packets() {
			if iv.loses(p, minedLoss) {
				losses[i]++
			}
		}
	}
	m.lost.addOf(iv, func(i int) float64 {
		r, _ := lds.Estimate(afterLoss.up, afterLoss.down, iv.keys[i]) // Lost is valid without a delay, too
		return float64(r.Lost)
	}, func(i int) float64 { return losses[i] }, func(i int) bool { return losses[i] > 0 })
}

// digDeviations takes deviations that are decoded for all flows together.
func (m *mine) digDeviations(run *experiment.Run, iv *interval, observed []points) {
	for k, s := range experiment.Each(run, observed) {
		r := experiment.Try(lds.Decode(run.Context(), s.up, s.down, iv.records(iv.packets), joint.Options{Deviations: true}))
		m.decodedOf[k].addOf(iv, func(i int) float64 {
			f := &iv.Flows[i]
			if classes[fromHundred].Has(f.Size) {
				m.covered.Count(r.DeviationInterval(i, confidence).Contains(f.StdDev))
			}
			return r.Deviation[i]
		}, func(i int) float64 { return iv.Flows[i].StdDev }, nil)
	}
}

// digPackets takes the flows' packets, and heavy hitters.
func (m *mine) digPackets(run *experiment.Run, iv *interval, s *lds.Sketch) {
	truth := func(i int) float64 { return iv.packets[i] }
	packets := experiment.Try(s.DecodePackets(run.Context(), iv.keys, nil))
	m.decoded.addOf(iv, func(i int) float64 { return packets[i].Packets }, truth, nil)
	m.countMin.addOf(iv, func(i int) float64 {
		got := float64(s.Packets(iv.keys[i]))
		if got < iv.packets[i] {
			m.tooFew++
		}
		return got
	}, truth, nil)
	sizes := make(map[hashing.Flow]uint64, len(iv.keys))
	for i, f := range iv.keys {
		sizes[f] = uint64(iv.Flows[i].Size)
	}
	for t := range m.hits {
		h := &m.hits[t]
		for i := range iv.packets {
			if iv.packets[i] >= float64(h.threshold) {
				h.there++
			}
		}
		for _, listed := range experiment.Try(s.HeavyHitters(run.Context(), iv.keys, float64(h.threshold))) {
			h.listed++
			if sizes[listed.Flow] >= h.threshold {
				h.found++
			}
		}
	}
}

func (m *mine) draw(run *experiment.Run, intervals int) {
	deviation := run.Draw("a", "Relative error of the deviation of a flow's delay, flows of 1,000 packets and more",
		fmt.Sprintf("Over the flows of %d intervals; 4 rows of %s cells, no loss. Dashed: from the flow's cells, "+
			"count-conditioned. Solid: for all flows together, from the squares that their means leave of all cells.", intervals,
			number(minedColumns)), errorAxis(0.1), shareAxis)
	for i, d := range m.deviations {
		for _, d := range []*method{d, m.decodedOf[i]} {
			s := d.cdf(fromThousand)
			s.Pair = i + 1
			deviation.Add(s)
		}
	}
	run.Draw("b", "Median relative error of a flow's packets, 17,500 × 4 cells",
		"The same intervals; bars from the lowest to the highest median of an interval.", binAxis, offAxis, m.countMin.byBin(), m.decoded.byBin())
}

func (m *mine) judge(run *experiment.Run, intervals int) {
	run.Holds("flows whose packets are told too few, 17,500 × 4 cells", "none", number(float64(m.tooFew)), m.tooFew == 0)
	largest := len(classes) - 1
	table := run.Table("deviation", "Relative error of the deviation: median / 95th percentile", "cells a row (k)", "≥ 100 packets",
		"≥ 1,000 packets", "≥ 10,000 packets", "≥ 100 packets, decoded", "≥ 1,000 packets", "≥ 10,000 packets")
	for i, k := range spreads {
		read, decoded := m.deviations[i].cells(fromHundred, fromThousand, largest), m.decodedOf[i].cells(fromHundred, fromThousand, largest)
		table.Row(k, read, decoded)
	}
	run.Beats(fmt.Sprintf("median error of the deviation, %s, k = %d: from a flow's cells, and decoded",
		classes[fromHundred].Name, spreads[0]),
		m.decodedOf[0].median(fromHundred), m.deviations[0].median(fromHundred), 0.05)
	run.Keeps("95 % intervals of deviations that are decoded: coverage, "+classes[fromHundred].Name, "ours: ≥ 95 %",
		percent(m.covered.Share()), m.covered.Share() >= confidence)
	heavy := run.Table("heavy", "Heavy hitters with 17,500 × 4 cells, all flows being candidates", "packets at least", "there are",
		"listed", "found", "of the listed, true")
	for _, h := range m.hits {
		per := float64(intervals)
		heavy.Row(number(float64(h.threshold)), number(math.Round(h.there/per)), number(math.Round(h.listed/per)), percent(h.found/h.there),
			percent(h.found/h.listed))
		run.Holds(fmt.Sprintf("heavy hitters of %s packets and more: found, and true of the listed", number(float64(h.threshold))), "all found",
			percent(h.found/h.there)+", "+percent(h.found/h.listed), h.found == h.there)
	}
	run.Beats("median error of a flow's packets, "+classes[fromHundred].Name+": least row, and decoded together",
		m.decoded.median(fromHundred), m.countMin.median(fromHundred), 0.05)
	losses := run.Table("loss", fmt.Sprintf("Relative error of a flow's losses, at %s loss, of flows that lost packets: "+
		"median / 95th percentile", percent(minedLoss)),
		"sketch", "≥ 100 packets", "≥ 1,000 packets", "≥ 10,000 packets")
	losses.Row("87,500 × 4, k = 5, multi-bank", m.lost.cells(fromHundred, fromThousand, largest))
	last := len(spreads) - 1
	run.Claim(fmt.Sprintf("median error of the deviation, %s, k = %d and k = %d", classes[fromThousand].Name, spreads[0], spreads[last]),
		"rough", percent(m.deviations[0].median(fromThousand))+" and "+percent(m.deviations[last].median(fromThousand)), experiment.AsGood)
}
