package lds

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
)

// How DecodePackets works. A cell's count is the sum of its flows' packets, so
// a flow's packets are what its cells hold less what the others had.
// Expectation propagation (T. Minka, UAI 2001) finds all of them together, in
// rounds:
//
//	A row   says to each flow what its cells leave for it once the expected
//	        packets of the others are subtracted, and with what precision:
//	        that follows from the variances of the others, and from the way
//	        packets fall into cells and samples.
//	A flow  weighs what its rows say by how rare sizes are. The result is a
//	        mean and a variance. A row hears them without its own message,
//	        or it would take its echo for news.
//
// A round goes from flow to flow, and the new belief about one flow counts for
// the next at once. That settles in a third of the rounds that it takes if all
// hear the same. If cells are farther from their expected counts than the
// variances allow, as when flows are missing from the list, all variances grow
// by that factor.
const (
	decodeRounds = 9   // more gain little
	decodeStep   = 0.9 // fraction of the way that a row's message moves to its new value
	// Once no more than this fraction of the packets still moves, counts all
	// but determine the flows, and rounds go on until they do.
	decodeNear    = 1e-3
	decodeSettled = 1e-7
	decodeMost    = 20
	// No row is taken to have contributed more than this fraction of the
	// belief about a flow. Without the limit, next to nothing would be left.
	decodeMostTold = 0.75
	// No flow's variance is taken as smaller than the first when it is
	// subtracted from others, and no variance at all as smaller than the
	// second.
	decodeSurest = 0.01
	decodeLeast  = 1e-6
	// A single cell has at most this weight in how wrong the variances are.
	decodeMisfit = 100
)

// DecodePackets estimates how many packets each of the interval's flows sent,
// from the counts of all cells at once. It returns a record of each, as
// [Decode] takes them. It assumes that large sizes are rarer (Pareto with the
// shape of the paper's traffic, 0.8). A flow has at least one packet, unless
// the sketch proves that it has none.
//
// Doubt is the standard deviation of the error of Packets. Over all flows, the
// root mean square error is about that of the doubts. It is larger for large
// flows if there are dozens of flows a cell, and if flows are missing from the
// list.
//
// DecodePackets calls progress, if not nil, with the fraction of the work
// done, from 0 to 1. The error is [estimate.ErrConfig] if a flow is listed
// twice, and the context's error once the context is done.
func (s *Sketch) DecodePackets(ctx context.Context, flows []hashing.Flow, progress func(done float64)) ([]joint.FlowRecord, error) {
	records := make([]joint.FlowRecord, len(flows))
	for i, f := range flows {
		records[i].Flow = f
	}
	if _, err := keysOf(records); err != nil {
		return nil, err
	}
	return s.counts().decode(ctx, records, progress)
}

// decode decodes the packets of the flows whose Packets are 0.
func (c counts) decode(ctx context.Context, flows []joint.FlowRecord, progress func(done float64)) ([]joint.FlowRecord, error) {
	d, err := c.counting(ctx, flows)
	if err != nil {
		return nil, err
	}
	tell := func(round int) {
		if progress != nil {
			progress(float64(min(round, decodeRounds)) / decodeRounds)
		}
	}
	step, moved := 1.0, 1.0
	for round := 0; round < decodeRounds || round < decodeMost && moved < decodeNear && moved > decodeSettled; round++ {
		if err := decodingEnds(ctx); err != nil {
			return nil, err
		}
		moved = d.round(step)
		step = decodeStep
		tell(round + 1)
	}
	d.widen()
	records := slices.Clone(flows)
	for i, fixed := range d.fixed {
		if !fixed {
			records[i].Packets, records[i].Doubt = d.mean[i], math.Sqrt(d.variance[i])
		}
	}
	return records, nil
}

// decodingEnds returns the context's error once the context is done.
func decodingEnds(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("lds: decoding packet counts: %w", err)
	}
	return nil
}
