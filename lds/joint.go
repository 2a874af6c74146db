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

// Decode estimates the mean delays of all flows of the interval together, from
// all usable cells at once ([joint.Problem]). A flow's neighbours in a cell
// are explained by their other cells, where [Estimate] puts up with them.
// Decode needs the list of flows that were present, each once, as from flow
// records of either point. Flows missing from the list disturb their
// neighbours' estimates like noise.
//
// A record has the number of packets that its flow sent, times its weight if
// it has one. If the number is 0, Decode finds it from the counts, as
// [Sketch.DecodePackets] does. With one flow a cell the estimates are no worse
// for that. With 8 a cell, they have a quarter of [Estimate]'s median error
// for flows of 100 packets and more, where known counts leave a sixth, and
// StdDev says so. With dozens of flows a cell, counts no longer tell a flow of
// some hundred packets from many flows of a few. Decode then takes it to be as
// small as most are, and [Estimate], which takes every flow for everything in
// its cell, is as close to the truth.
//
// The result has, for each flow in the order of flows, its mean and the mean's
// expected deviation. A flow without a usable cell is marked with a Usable of
// 0. If flows have weights, and the Spread is above 1 or Rates are below 1,
// the deviations of heavy flows' neighbours are too small, because the solver
// takes a weight for that many packets, each in a cell of its own choice.
//
// With opts.Deviations it also estimates how far the packets of each flow are
// from the flow's mean, which [Estimate] knows only of few flows and roughly.
// That needs rows that sample, or a Spread above 1: with a Spread of 5, half
// of the flows of 100 packets and more are within a fifth of their deviation.
//
// If opts gives one prior for all flows, Decode is better only by squared
// error in time. In captured traffic, where most flows wait a microsecond and
// some wait tens of milliseconds, its median relative error is then larger
// than [Estimate]'s. Without such a prior, the usual way, its median relative
// error was below [Estimate]'s at every memory tried for flows of 30 packets
// and more, but not for flows of a few packets: most of these are alone in
// some cell with others that did not wait either, which is all that [Estimate]
// needs.
//
// These figures come from the experiments ours-lds-joint and real-flows of the
// project's bench.
//
// Decode holds about 8·Rows·Spread + 140 bytes a flow and 100 bytes a cell. It
// leaves out cells of so many packets that their sums may have wrapped
// (Config.SumBits).
//
// It returns [estimate.ErrMismatch] if the Configs or the intervals differ,
// [estimate.ErrConfig] if packets or doubts are out of range or a flow is
// listed twice, [estimate.ErrNoSamples] if no cell is usable, and the
// context's error once the context is done.
func Decode(ctx context.Context, up, down *Sketch, flows []joint.FlowRecord, opts joint.Options) (joint.Result, error) {
	if err := match(up, down); err != nil {
		return joint.Result{}, err
	}
	problem := joint.Problem{
		Sum:      make([]float64, len(up.cells)),
		Count:    make([]float64, len(up.cells)),
		Variance: make([]float64, len(up.cells)),
		Unusable: make([]bool, len(up.cells)),
	}
	every := make([]uint32, len(up.cells))
	for i := range every {
		every[i] = uint32(i)
	}
	cells := newPairs(up, down, every)
	for i := range up.cells {
		x := cells.at(i)
		problem.Sum[i], problem.Count[i], problem.Variance[i] = x.beyond, x.packets, x.variance
		problem.Unusable[i] = !x.usable && up.cells[i].tally|down.cells[i].tally != 0
	}
	r, err := up.counts().solve(ctx, &problem, flows, opts)
	if err != nil {
		return r, err
	}
	for i, f := range flows {
		r.Mean[i] += float64(cells.around.delay)
		cells.amend(&r, i, f.Flow, &problem)
	}
	return r, nil
}

// amend allows for the losses of flow number i: those of its own packets are in
// all of its cells alike. A flow without a cell has the answer of Estimate, if
// there is one.
func (p *pairs) amend(r *joint.Result, i int, f hashing.Flow, problem *joint.Problem) {
	if r.Usable[i] == 0 {
		one, err := Estimate(p.up, p.down, f)
		if err == nil && !math.IsInf(one.MeanError, 1) {
			r.Mean[i], r.Usable[i] = one.Mean, 1
			if r.StdDev != nil {
				r.StdDev[i] = one.MeanError
			}
		}
		return
	}
	least, c := math.Inf(1), &p.up.config
	for k := range c.Rows * c.Spread {
		at := c.at(k/c.Spread, f, k%c.Spread)
		if c.Rates[k/c.Spread] == 1 && !problem.Unusable[at] {
			least = min(least, problem.Variance[at])
		}
	}
	if r.StdDev != nil && least > 0 && !math.IsInf(least, 1) {
		r.StdDev[i] = math.Hypot(r.StdDev[i], math.Sqrt(least*float64(c.Spread))/max(r.Packets[i], 1))
	}
}

// solve adds the flows to a problem that already has cells and a Config,
// decodes the packets that are not known, and solves the problem.
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
	p.Packets = make([]float64, len(flows))
	if slices.ContainsFunc(flows, func(f joint.FlowRecord) bool { return f.Doubt != 0 }) {
		p.Doubt = make([]float64, len(flows))
	}
	for i, f := range flows {
		if p.Packets[i] = f.Packets; p.Doubt != nil {
			p.Doubt[i] = f.Doubt
		}
	}
	r, err := p.Solve(ctx, opts)
	if err != nil {
		return joint.Result{}, fmt.Errorf("lds: %w", err)
	}
	return r, nil
}

// half returns a progress function for one half of the work that reports to a
// function for the whole, after the part already done.
func half(report func(float64), done float64) func(float64) {
	if report == nil {
		return nil
	}
	return func(part float64) { report(done + part/2) }
}

// keysOf returns the flows' keys, or an error if a flow is listed twice.
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
