package lds

import (
	"context"
	"fmt"
	"slices"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
)

// Decode estimates the mean delays of all the interval's flows together, from
// all usable cells at once ([joint.Problem]): what a flow's neighbours
// add to its cells is explained by their other cells instead of being put up
// with. It needs the flows that were there, each once, as from flow
// records of either point; flows that are left out draw the estimates of their
// neighbours like noise.
//
// A record has how many packets its flow sent, times its weight if it has one.
// Those that are 0 are decoded from the counts, by [Sketch.DecodePackets].
// With a flow to a cell the estimates are none the worse for it; with 8, they
// have a quarter of [Estimate]'s median error for flows of 100 packets and more,
// where known counts leave a sixth, and StdDev says so. With dozens of flows to a
// cell, counts no longer tell a flow of some hundred packets from the many of a
// few; it is taken to be as small as most, and [Estimate], which takes every flow
// for all there is in its cell, is as near to the truth.
//
// The result has a mean and the deviation to be expected of it for each flow, in
// the order of flows. A flow without a usable cell is marked:
// its Usable is 0. Where flows have weights and a Spread above 1 or Rates below,
// the deviations of heavy flows' neighbours are too small: to the solver a
// weight is so many packets, each in a cell of its own choice.
//
// With opts.Deviations it also tells how far the packets of each flow are from
// its mean, which [Estimate] can say of few flows and roughly. It needs rows that
// sample, or a Spread above 1: with one of 5, half of the flows of 100 packets
// and more are within a fifth of theirs.
//
// With a prior for all flows in opts, Decode is the better only by the square of
// errors in time; in captured traffic, where most flows wait a microsecond and
// some tens of milliseconds, its median relative error is then larger than
// [Estimate]'s. Without one, the usual way, it was below [Estimate]'s at every
// memory tried for flows of 30 packets and more, but not for those of a few
// packets: of these most are alone in some cell with others that did not wait
// either, which is all that [Estimate] needs.
//
// These figures are those of the experiments ours-lds-joint and real-lds of the
// project's bench.
//
// Decode holds about 8·Rows·Spread + 150 bytes a flow and 80 a cell.
//
// It returns [estimate.ErrMismatch] if the Configs or the intervals differ, [estimate.ErrConfig]
// for packets or doubts out of range and for a flow that is listed twice,
// [estimate.ErrNoSamples] if no cell is usable, and the context's error once it
// is done.
func Decode(ctx context.Context, up, down *Sketch, flows []joint.FlowRecord, opts joint.Options) (joint.Result, error) {
	if err := match(up, down); err != nil {
		return joint.Result{}, err
	}
	c := &up.config
	problem := joint.Problem{
		Sum:      make([]float64, len(up.cells)),
		Count:    make([]float64, len(up.cells)),
		Unusable: make([]bool, len(up.cells)),
	}
	for i := range up.cells {
		a, b := &up.cells[i], &down.cells[i]
		problem.Sum[i] = float64(estimate.Difference(a.sum, b.sum, int(c.SumBits)))
		problem.Count[i] = float64(a.count())
		condition := compare(a, b, c.DigestBits)
		problem.Unusable[i] = condition == lossy || condition == reordered
	}
	return up.counts().solve(ctx, &problem, flows, opts)
}

// solve adds the flows to a problem of cells that there is a Config of, decodes
// the packets that are not known, and solves it.
func (c counts) solve(ctx context.Context, p *joint.Problem, flows []joint.FlowRecord, opts joint.Options) (joint.Result, error) {
	keys, err := keysOf(flows)
	if err != nil {
		return joint.Result{}, err
	}
	if slices.ContainsFunc(flows, func(f joint.FlowRecord) bool { return f.Packets == 0 }) {
		report := opts.Progress
		if flows, err = c.decode(ctx, flows, half(report, 0)); err != nil {
			return joint.Result{}, err
		}
		opts.Progress = half(report, 0.5)
	}
	p.Rows, p.CellsPerRow, p.Rates, p.Cells = c.Rows, c.Spread, c.Rates[:c.Rows], c.cellsOf(keys)
	p.Packets, p.Doubt = make([]float64, len(flows)), make([]float64, len(flows))
	for i, f := range flows {
		p.Packets[i], p.Doubt[i] = f.Packets, f.Doubt
	}
	r, err := p.Solve(ctx, opts)
	if err != nil {
		return joint.Result{}, fmt.Errorf("lds: %w", err)
	}
	return r, nil
}

// half makes of a report of the whole one of half of the work, after the part
// that is done.
func half(report func(float64), done float64) func(float64) {
	if report == nil {
		return nil
	}
	return func(part float64) { report(done + part/2) }
}

// keysOf returns the flows' keys, or an error if one is there twice.
func keysOf(flows []joint.FlowRecord) ([]hashing.Flow, error) {
	keys := make([]hashing.Flow, len(flows))
	for i, f := range flows {
		keys[i] = f.Flow
	}
	sorted := slices.Clone(keys)
	slices.Sort(sorted)
	for i := 1; i < len(sorted); i++ {
		if sorted[i] == sorted[i-1] {
			return nil, fmt.Errorf("lds: %w: flow %#x is listed twice", estimate.ErrConfig, uint64(sorted[i]))
		}
	}
	return keys, nil
}
