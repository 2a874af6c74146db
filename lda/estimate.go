package lda

import (
	"errors"
	"fmt"
	"math"

	"github.com/hoplag/hoplag/estimate"
)

// A Result says what happened between two points in an interval or, from an
// [Accumulator], in many.
type Result struct {
	// Delay is that of the packets in usable cells: the mean of section III-D
	// (D, with N = S the effective sample size) and the count-conditioned
	// deviation of [estimate.Cells]. With fewer than two usable cells the
	// deviation is not known, and 0; its interval says so.
	estimate.Delay

	Sent     uint64 // packets that passed upstream
	Received uint64 // packets that passed downstream

	// Lost and Extra add up, cell by cell, how many packets fewer or more passed
	// downstream, so that Lost - Extra = Sent - Received. Extra packets are
	// duplicates, or were not seen upstream. If a cell has both lost and extra
	// packets, only the difference counts; Loss estimates how many more were lost.
	Lost, Extra uint64

	// Outstanding is the number of packets that were sent, and neither received
	// nor given up for lost: Lost may still grow by as much. It is 0 for one
	// interval.
	Outstanding uint64

	// MeanError is the standard error of Mean as the mean delay of all packets
	// received.
	MeanError float64

	Cells   int     // cells that saw a packet at either point
	Usable  int     // cells with the same packets at both points, as far as count and digest tell
	Repeats Repeats // identical packets

	// spoken is the number of received packets that mean and deviation speak of: for
	// one interval all, from an Accumulator those that the mean rests on, in cells that
	// lost nothing for a while, and those of which nothing is known.
	spoken uint64

	replaced int // cells that agree in count but not in digest: they gained as many packets as they lost
	negative int // usable cells whose delays add up to less than 0

	hidden, hiddenError float64 // losses in cells that other packets joined, and its standard error

	// The intervals rest on these. Degrees of 0 mean that nothing is known.
	sampling         float64 // standard error of Mean, of which packets it speaks
	meanDegrees      uint64  // degrees of freedom of that
	deviationDegrees uint64  // degrees of freedom of StdDev

	// strays is the greatest number of packets that the sample may lack because
	// they passed the points in different intervals; slow packets are more
	// likely to. An Accumulator knows where they belong.
	strays uint64

	fromAreas bool           // by an Accumulator
	owed      float64        // by how much the mean delay of those received exceeds the time on the way
	settling  bool           // it is not known yet what was on its way at the end
	alone     estimate.Delay // of packets that were alone
	greatest  float64        // delay
	late      float64        // by how much packets that count as lost may raise the mean if they come
}

// Estimate compares the upstream and the downstream point's aggregators of one
// interval and changes neither. The error wraps [estimate.ErrMismatch] if their
// Configs differ, [ErrDifferent] if the points saw different packets,
// [estimate.ErrNoSamples] if no cell is usable, and [ErrContradiction] if the
// usable cells cannot all be right. In the last two cases the Result's counts are
// still right; if the packets differ, only Sent and Received are.
//
// A mean may be negative: then the clocks disagree, or the points are swapped.
func Estimate(up, down *Aggregator) (Result, error) {
	if err := sameConfig(up, down); err != nil {
		return Result{}, err
	}
	return compare(up, down, down.Packets())
}

// compare estimates the delay of the packets that were received, from the
// aggregators, which may have only some of them.
func compare(up, down *Aggregator, received uint64) (Result, error) {
	r := count(up, down)
	r.spoken, r.strays = received, min(r.Lost, r.Extra)+uint64(r.replaced)
	cells := newPairing(up, down)
	copies, census := cells.copies(), cells.census()
	if err := census.different(); err != nil {
		r.Lost, r.Extra = r.Sent-min(r.Sent, r.Received), r.Received-min(r.Sent, r.Received)
		return r, fmt.Errorf("lda: %w: %d sent, %d received", err, r.Sent, r.Received)
	}
	r.hide(&census)
	found, err := settle(&cells, int(up.config.SumBits))
	if errors.Is(err, estimate.ErrNoSamples) && cells.any { // there are hardly any others
		copies.received, copies.known, copies.unknown, cells.any = 0, 0, 0, false
		found, err = settle(&cells, int(up.config.SumBits))
	}
	r.Repeats = copies.Repeats
	var effects effects
	if err == nil {
		effects = compareCells(&cells, &found)
		err = effects.contradiction()
	}
	if err != nil {
		return r, fmt.Errorf("lda: %w: %d packets sent, %d received, %d of %d cells usable", err, r.Sent, r.Received, r.Usable, r.Cells)
	}
	r.report(&found, received-min(received, copies.received))
	r.seeRepeats(&census, &effects)
	err = r.include(&copies)
	r.MeanError = r.sampling
	return r, err
}

// report fills in the figures about delays, of packets that were received in one
// interval: those in usable cells are a sample of them.
func (r *Result) report(found *settlement, received uint64) {
	c := &found.cells
	r.N, r.spoken, r.Usable, r.negative = found.packets, max(received, found.packets), found.distinct, found.negative
	r.Mean = float64(found.base) + found.sum/float64(found.packets)
	unseen := 1 - float64(r.N)/float64(r.spoken) // finite population: no guess is needed for the packets seen
	r.deviationDegrees = c.EffectiveDegrees(1 - unseen)
	r.meanDegrees = r.deviationDegrees
	if r.deviationDegrees == 0 {
		if unseen == 0 {
			r.meanDegrees = 1
		}
		return
	}
	variance := c.Variance()
	r.StdDev, r.sampling = math.Sqrt(variance), math.Sqrt(variance*unseen/float64(r.N))
}

// count compares the numbers of packets.
func count(up, down *Aggregator) (r Result) {
	digest := up.config.digestMask()
	sent, received := up.sampled(), down.sampled()
	for i := range sent {
		s, d := &sent[i], &received[i]
		if s.count() == 0 && d.count() == 0 {
			continue
		}
		r.Cells++
		r.add(uint64(s.count()), uint64(d.count()))
		switch {
		case s.count() != d.count():
		case (s.tally^d.tally)&digest != 0:
			r.replaced++
		default:
			r.Usable++
		}
	}
	r.add(up.unsampledCount(), down.unsampledCount())
	return r
}

// add accounts for a group of packets.
func (r *Result) add(sent, received uint64) {
	r.Sent += sent
	r.Received += received
	if sent > received {
		r.Lost += sent - received
	} else {
		r.Extra += received - sent
	}
}

// digestMask returns the bits of a tally that hold the stream digest.
func (c *Config) digestMask() uint64 {
	return (1<<c.DigestBits - 1) << 32
}
