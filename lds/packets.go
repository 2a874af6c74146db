package lds

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
)

// How DecodePackets decodes. A cell's count is the sum of its flows' packets in
// it, so that what a flow had is what its cells hold less what the others had.
// All are found together by expectation propagation (T. Minka, UAI 2001), in
// rounds:
//
//	A row   tells each flow what its cells there leave for it when the others
//	        are taken away as they are believed to be, and with what precision:
//	        by the variances of the others, and by how packets fall into cells
//	        and samples.
//	A flow  weighs what its rows tell by how rare sizes are, and is believed to
//	        have the mean and the variance of what comes out. A row hears these
//	        without what it told itself, or it would take its echo for news.
//
// A round goes from flow to flow, and what one is newly believed to have counts
// for the next at once: that settles in a third of the rounds that it takes when
// all hear the same. Where cells are farther from what is expected of them than
// variances say, as when flows are missing from the list, all variances grow by
// that.
//
// Where flows are spread, and rows sample, much is left open, and a flow of dozens
// of packets is then too often believed to have had a few, which makes its delay
// too long by as much. So there the counts have the last word: what is in a cell
// beyond what is expected is shared out in proportion to that.
const (
	decodeRounds = 7   // further ones gain little
	decodeStep   = 0.9 // part of the way that what a row tells moves to what it should be
	shareRounds  = 30  // further ones fit noise
	// Where no more than so small a part of the packets still moves, counts all but
	// determine the flows, and rounds go on until they do.
	decodeNear    = 1e-3
	decodeSettled = 1e-7
	decodeMost    = 20
	// A flow that moved by less than a part of its deviation, or of a packet, is
	// left alone for this many rounds.
	decodeStill = 0.01
	decodeRests = 2
	// No row is taken to have told more than this part of what is believed of a
	// flow: without it there would be next to nothing left.
	decodeMostTold = 0.75
	// Variances below which no flow is taken away from others, and nothing is
	// believed at all.
	decodeSurest = 0.01
	decodeLeast  = 1e-6
	// A single cell has no more weight than this in how wrong variances are.
	decodeMisfit = 100
)

// DecodePackets estimates how many packets each of the interval's flows sent,
// from the counts of all cells at once, and returns a record of each, as
// [Decode] takes them. Large sizes are taken to be the rarer (Pareto with the
// shape of the paper's traffic, 0.8). A flow has at least one packet, unless
// the sketch proves that it has none.
//
// Doubt is how far Packets may be off, as a standard deviation. Over all
// flows, the root mean square of the errors is about that of the doubts. It is
// larger for large flows where there are dozens to a cell, and where flows are
// missing from the list.
//
// progress, if not nil, is told which part of the work is done, from 0 to 1.
// The error is [estimate.ErrConfig] if a flow is listed twice, and the
// context's, once it is done.
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

// decode decodes the packets of those flows of which they are 0.
func (c counts) decode(ctx context.Context, flows []joint.FlowRecord, progress func(done float64)) ([]joint.FlowRecord, error) {
	d, err := c.counting(ctx, flows)
	if err != nil {
		return nil, err
	}
	rounds := decodeRounds
	if c.Spread > 1 {
		rounds += shareRounds
	}
	tell := func(round int) {
		if progress != nil {
			progress(float64(round) / float64(rounds))
		}
	}
	step, moved := 1.0, 1.0
	for round := 0; round < decodeRounds || round < decodeMost && moved < decodeNear && moved > decodeSettled; round++ {
		if err := decodingEnds(ctx); err != nil {
			return nil, err
		}
		moved = d.round(step)
		step = decodeStep
		tell(min(round+1, decodeRounds))
	}
	d.widen()
	if c.Spread > 1 {
		left := d.beginSharing()
		for round := range shareRounds {
			if err := decodingEnds(ctx); err != nil {
				return nil, err
			}
			d.share(left)
			tell(decodeRounds + round + 1)
		}
		d.endSharing()
	}
	tell(rounds)
	records := slices.Clone(flows)
	for i, fixed := range d.fixed {
		if !fixed {
			records[i].Packets, records[i].Doubt = d.mean[i], math.Sqrt(d.variance[i])
		}
	}
	return records, nil
}

// decodingEnds is the context's error, once it is done.
func decodingEnds(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("lds: decoding packet counts: %w", err)
	}
	return nil
}
