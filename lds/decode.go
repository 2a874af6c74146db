package lds

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
)

// Decode estimates the mean delays of all flows of the interval together, from all usable cells at once ([joint.Problem]). It explains a
// flow's neighbours in a cell by their other cells, where [Estimate] puts up with them. Decode needs the list of flows that were present,
// each once, as from flow records of either point. Flows that are not listed disturb their neighbours' estimates like noise.
//
// If a record has 0 packets, Decode finds their number from the counts ([joint.Counts]), and the result has it.
// With one flow a cell the estimates are no worse for that; with dozens, [Estimate] is as close to the truth.
// Intervals then hold less often if large flows are faster than small ones, or if sizes are far from a Pareto
// law that begins at one packet: where no flow had fewer than 20, three to a cell, 0.3 % missed intervals of 99.9 %.
//
// The result is in the order of flows. A flow without a usable cell has a Usable of 0, and so has one of which many packets arrived
// twice, or most were on their way at the ends of an [Accumulator]'s report: the error that Estimate returns for it says why or,
// for copies, Received is more than Sent. With a single row and no Spread nothing shows how far off means are, and there are no
// intervals. Decode holds at most some 8·Rows·Spread + 140 bytes a flow and 100 bytes a cell.
//
// It returns [estimate.ErrMismatch] if the Configs or the intervals differ, [estimate.ErrConfig] if packets or doubts are out of
// range or a flow is listed twice, [estimate.ErrNoSamples] if no cell is usable, and the context's error once the context is done.
func Decode(ctx context.Context, up, down *Sketch, flows []joint.FlowRecord, opts joint.Options) (joint.Result, error) {
	if err := match(up, down, true); err != nil {
		return joint.Result{}, err
	}
	cells := newPairs(up, down, nil)
	d := decoding{Config: &up.config, at: cells.at, around: float64(cells.around.delay), single: cells.single}
	d.late = func(f hashing.Flow, _ float64) float64 { return cells.late(f) }
	return d.solve(ctx, flows, opts)
}

// A decoding is what joint decoding takes: what is known of each cell, beyond a delay that is common to all, and how a flow is read.
type decoding struct {
	*Config
	at     func(cell int) content
	around float64
	single float64 // variance of the time of one packet
	// late returns how far what comes late and what ends owe may move a flow's mean, +Inf if copies hide it.
	late func(f hashing.Flow, packets float64) float64
}

func (d *decoding) solve(ctx context.Context, flows []joint.FlowRecord, opts joint.Options) (joint.Result, error) {
	list, err := d.cellsOf(flows)
	if err != nil {
		return joint.Result{}, err
	}
	cells, n := d.Rows*d.Columns, len(flows)
	p := joint.Problem{
		Sum: make([]float64, cells), Count: make([]float64, cells), Variance: make([]float64, cells), Unusable: make([]bool, cells),
		Rows: d.Rows, CellsPerRow: d.Spread, Rates: d.Rates[:d.Rows], Cells: list, Packets: make([]float64, n), Doubt: make([]float64, n),
	}
	held := make([]uint64, cells)
	for i := range held {
		x := d.at(i)
		held[i], p.Sum[i], p.Count[i], p.Variance[i] = x.sent, x.beyond, x.packets, x.variance
		p.Unusable[i] = !x.usable && (x.packets > 0 || x.sent > 0)
	}
	if slices.ContainsFunc(flows, func(f joint.FlowRecord) bool { return f.Packets == 0 }) {
		counts := joint.Counts{Held: held, Rows: d.Rows, CellsPerRow: d.Spread, Rates: d.Rates[:d.Rows], Cells: list}
		if flows, err = counts.Decode(ctx, flows); err != nil {
			return joint.Result{}, fmt.Errorf("lds: %w", err)
		}
	}
	for i, f := range flows {
		p.Packets[i], p.Doubt[i] = f.Packets, f.Doubt
	}
	opts.MeansOnly = opts.MeansOnly || len(list) == n // the one cell of a flow does not show how far it is off
	r, err := p.Solve(ctx, opts)
	if err != nil {
		return joint.Result{}, fmt.Errorf("lds: %w", err)
	}
	for i, f := range flows {
		packets := max(r.Packets[i], 1)
		r.Mean[i] += d.around
		if late := d.late(f.Flow, packets); math.IsInf(late, 1) {
			r.Usable[i] = 0
		} else if r.Usable[i] > 0 && r.StdDev != nil {
			r.Widen(i, math.Hypot(d.shared(f.Flow, packets, &p), late/2))
		}
	}
	return r, nil
}

// shared returns the error of a flow's mean that the cells themselves do not show: which of its packets are in rows
// that sample, or in cells that can be read. It is +Inf if it is not known how far packets are apart.
func (d *decoding) shared(f hashing.Flow, packets float64, p *joint.Problem) float64 {
	precision := 0.0
	for row, rate := range d.Rates[:d.Rows] {
		part := 0.0
		for offset := range d.Spread {
			if at := d.Config.at(row, f, offset); !p.Unusable[at] && (p.Count[at] > 0 || rate == 1) {
				part += rate / float64(d.Spread)
			}
		}
		if part > 1-1e-9 { // all are there
			return 0
		} else if part > 0 {
			precision += part * packets / (d.single * (1 - part))
		}
	}
	return 1 / math.Sqrt(precision)
}

// cellsOf returns the flows' cells, Rows × Spread for each, or an error if a flow is listed twice.
func (c *Config) cellsOf(flows []joint.FlowRecord) ([]uint32, error) {
	cells, keys := make([]uint32, 0, len(flows)*c.Rows*c.Spread), make([]hashing.Flow, len(flows))
	for i, f := range flows {
		keys[i] = f.Flow
		for r := range c.Rows {
			for offset := range c.Spread {
				cells = append(cells, uint32(c.at(r, f.Flow, offset)))
			}
		}
	}
	slices.Sort(keys)
	for i := 1; i < len(keys); i++ {
		if keys[i] == keys[i-1] {
			return nil, fmt.Errorf("lds: %w: flow %#x is listed twice", estimate.ErrConfig, uint64(keys[i]))
		}
	}
	return cells, nil
}
