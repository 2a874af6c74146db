package lds

import (
	"context"
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
// have a fifth of [Estimate]'s median error for flows of 100 packets and more,
// where known counts leave a tenth, and StdDev says so. With dozens of flows to a
// cell, counts no longer tell a flow of some hundred packets from the many of a
// few; it is taken to be as small as most, and [Estimate], which takes every flow
// for all there is in its cell, is as near to the truth.
//
// The result has a mean and the deviation to be expected of it for each flow, in
// the order of flows. A flow without a usable cell gets the mean of all, and a
// deviation that says so: where most flows did not wait, that is far off for
// most of them. Where flows have weights and a Spread above 1 or Rates below,
// the deviations of heavy flows' neighbours are too small: to the solver a
// weight is so many packets, each in a cell of its own choice.
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
// It returns [estimate.ErrMismatch] if the Configs differ,
// [estimate.ErrConfig] for packets or doubts out of range, [estimate.ErrNoSamples]
// if no cell is usable, and the context's error once it is done.
func Decode(ctx context.Context, up, down *Sketch, flows []joint.FlowRecord, opts joint.Options) (joint.Result, error) {
	if err := match(up, down); err != nil {
		return joint.Result{}, err
	}
	keys, packets, doubt := columns(flows)
	if slices.Contains(packets, 0) {
		decoded, doubts, err := up.DecodePackets(ctx, keys)
		if err != nil {
			return joint.Result{}, err
		}
		for i, n := range packets {
			if n == 0 {
				packets[i], doubt[i] = decoded[i], doubts[i]
			}
		}
	}
	c := &up.config
	problem := joint.Problem{
		Sum:         make([]float64, len(up.cells)),
		Count:       make([]float64, len(up.cells)),
		Unusable:    make([]bool, len(up.cells)),
		Rows:        c.Rows,
		CellsPerRow: c.Spread,
		Rates:       c.Rates[:c.Rows],
		Packets:     packets,
		Doubt:       doubt,
		Cells:       c.cellsOf(keys),
	}
	for i := range up.cells {
		a, b := &up.cells[i], &down.cells[i]
		problem.Sum[i] = float64(estimate.Difference(a.sum, b.sum, int(c.SumBits)))
		problem.Count[i] = float64(a.count())
		condition := compare(a, b, c.DigestBits)
		problem.Unusable[i] = condition == lossy || condition == reordered
	}
	return problem.Solve(ctx, opts)
}

// columns takes flow records apart.
func columns(flows []joint.FlowRecord) (keys []hashing.Flow, packets, doubt []float64) {
	keys, packets, doubt = make([]hashing.Flow, len(flows)), make([]float64, len(flows)), make([]float64, len(flows))
	for i, f := range flows {
		keys[i], packets[i], doubt[i] = f.Flow, f.Packets, f.Doubt
	}
	return keys, packets, doubt
}
