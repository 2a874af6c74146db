package lda

import (
	"fmt"
	"math"

	"github.com/hoplag/hoplag/estimate"
)

// A Result says what happened between two points in an interval or, from an [Accumulator], in many.
type Result struct {
	// Delay is that of the packets in usable cells: the mean of section III-D (D, with N = S the effective
	// sample size) and the count-conditioned deviation of [estimate.Cells]. With fewer than two usable cells
	// the deviation is unknown, and 0; its interval says so.
	estimate.Delay

	Sent     uint64 // packets that passed upstream
	Received uint64 // packets that passed downstream

	// Lost and Extra add up, cell by cell, how many fewer or more packets passed downstream, so that Lost -
	// Extra = Sent - Received, less by how many more are Outstanding than before. Extra packets are duplicates,
	// or were not seen upstream. If a cell has both lost and extra packets, only the difference counts; Loss
	// estimates how many more were lost.
	Lost, Extra uint64

	// Outstanding is the number of packets that were sent and neither received nor given up as lost: Lost may
	// still grow by as many. It is 0 for one interval.
	Outstanding uint64

	// MeanError is the standard error of Mean as the mean delay of all packets received.
	MeanError float64

	// Repeats is how many packets cells hold beyond what chance puts there, at the point that counted more:
	// copies of other packets.
	Repeats uint64

	spoken uint64 // received packets that mean and deviation speak of

	hidden float64 // losses in cells that other packets joined

	cells  int // that saw a packet at either point
	usable int // with the same packets at both points, as far as count and digest tell

	// The intervals rest on these. Degrees of 0 mean that nothing is known.
	sampling         float64 // standard error of Mean, of which packets it speaks
	meanDegrees      uint64  // degrees of freedom of that
	deviationDegrees uint64  // degrees of freedom of StdDev

	// strays is the greatest number of packets that the sample may lack, possibly because of their delay: those
	// that passed the points in different intervals, as slow packets do, were copied on the way, or are in
	// cells that agree in count and not in digest. From an Accumulator it is 0.
	strays uint64

	behind  figure // share of those received that are not in the sample because a copy of them was lost
	unknown uint64 // packets received in overfull or crowded cells whose delays are not known

	// calm is the deviation, and calmDegrees are its degrees of freedom, without what may be there by chance: of
	// all packets alone but the farthest or, in one interval, of those alone if fuller cells scatter more beyond
	// chance, because copies share a cell or because of delays too rare to be alone.
	calm        float64
	calmDegrees uint64

	alone    estimate.Delay // of packets that were alone
	greatest float64        // delay that is known, or may be
	least    float64        // likewise, of one interval

	length      float64 // of the interval, from the first to the last packet
	crossing    float64 // from its first packet to the last arrival of one that was not sent in it
	twice       float64 // greatest delay known of a packet that came twice
	fromAreas   bool    // by an Accumulator
	copied      float64 // share of packets that were not alone because copies of them came
	owed        float64 // by how much the mean delay of those received exceeds the time on the way
	delaysError float64 // of the mean of those received, if levels alone tell it better than areas do, or +Inf
	pending     float64 // share of those on their way at the end that are not known to have come since, or to be lost
	late        float64 // by how much packets that count as lost may raise the mean if they come, and copies that are not seen,
	coming      float64 // part of that which leaves the mean of those received as it is, for nobody received them yet,
	stray       float64 // and by how much stamps may have moved it that are not of their interval
}

// Estimate compares the upstream and the downstream point's aggregators of one interval and changes neither. The error wraps
// [estimate.ErrMismatch] if their Configs differ, [ErrDifferent] if the points saw different packets, [estimate.ErrNoSamples] if no
// cell is usable, and [ErrContradiction] if the usable cells cannot all be right. In the last two cases the Result's counts are
// still right; if the packets differ, only Sent and Received are.
//
// A mean may be negative: then the clocks disagree, or the points are swapped.
func Estimate(up, down *Aggregator) (Result, error) {
	if err := up.config.same(&down.config); err != nil {
		return Result{}, err
	}
	cells := newPairing(up, down)
	r, census := cells.count(), cells.census()
	r.spoken = r.Received
	if err := census.different(); err != nil {
		r.Lost, r.Extra = r.Sent-min(r.Sent, r.Received), r.Received-min(r.Sent, r.Received)
		return r, fmt.Errorf("lda: %w: %d sent, %d received", err, r.Sent, r.Received)
	}
	if r.Extra > 0 && census.sent > 0 { // as many joined as the losses that they hide, also where no bank samples
		all := 1 + float64(up.unsampledCount())/census.sent
		r.hidden = census.hidden.value * all
		r.strays = max(r.strays, r.Extra+uint64(census.hidden.most(2)*all))
	}
	if r.Extra > 0 && up.config.DigestBits == 0 {
		return r, fmt.Errorf("lda: %w: %d packets came that were not sent, and no digest tells in which cells", ErrContradiction, r.Extra)
	}
	found, err := settle(&cells)
	if err != nil {
		return r, fmt.Errorf("lda: %w: %d packets sent, %d received, %d of %d cells usable", err, r.Sent, r.Received, r.usable, r.cells)
	}
	alone, slope := compareCells(&cells, &found)
	copies := cells.copies()
	r.report(&found, r.Received-min(r.Received, copies.received))
	r.seeRepeats(&census, &alone, slope)
	err = r.include(&copies)
	r.MeanError = r.sampling
	return r, err
}

// report fills in the figures about delays, of packets that were received in one
// interval: those in usable cells are a sample of them.
func (r *Result) report(found *settlement, received uint64) {
	r.N, r.spoken = found.packets, max(received, found.packets)
	r.Mean = float64(found.base) + found.sum/float64(found.packets)
	r.least, r.greatest = r.Mean-found.less, r.Mean+found.more
	unseen := 1 - float64(r.N)/float64(r.spoken) // finite population: no guess is needed for the packets seen
	r.deviationDegrees = found.cells.EffectiveDegrees(1 - unseen)
	r.meanDegrees = r.deviationDegrees
	switch {
	case r.deviationDegrees > 0:
		variance := found.cells.Variance()
		r.StdDev, r.sampling = math.Sqrt(variance), math.Sqrt(variance*unseen/float64(r.N))
	case unseen == 0:
		r.meanDegrees = 1
	}
}

// count compares the numbers of packets.
func (p *pairing) count() (r Result) {
	var stamps passing
	r.add(p.up.unsampledCount(), p.down.unsampledCount())
	p.each(func(bank, i int) {
		sent, received := p.up.cells[i].count(), p.down.cells[i].count()
		if sent|received == 0 {
			return
		}
		r.cells++
		stamps.see(&p.up.cells[i], &p.down.cells[i], int(p.up.config.SumBits))
		r.add(uint64(sent), uint64(received))
		switch {
		case p.usable(i):
			r.usable++
		case sent == received:
			r.strays++
		case sent == 1 && received == 2 && p.down.cells[i].tally&p.agree == 2*p.up.cells[i].tally&p.agree:
			twice := p.down.cells[i].sum - 2*p.up.cells[i].sum
			r.twice = max(r.twice, float64(estimate.SignExtend(twice, int(p.up.config.SumBits)))/2)
		}
		r.see(p, bank, i)
	})
	r.strays += r.Extra
	if stamps.alone >= leastAlone { // fewer may all be close together
		r.length, r.crossing = stamps.last-stamps.first, stamps.late-stamps.first
	}
	return r
}

// A passing says when packets passed that were alone in their cell.
type passing struct {
	alone             int
	base              uint64  // one of the stamps
	first, last, late float64 // from base to the least stamp, the greatest, and the last arrival of packets that were not sent
}

// see takes a cell.
func (a *passing) see(s, d *cell, bits int) {
	switch n := uint64(d.count()); {
	case s.count() == 1:
		if a.alone++; a.alone == 1 {
			a.base, a.late = s.sum, math.Inf(-1)
		}
		x := float64(estimate.SignExtend(s.sum-a.base, bits))
		a.first, a.last = min(a.first, x), max(a.last, x)
	case s.count() == 0 && a.alone > 0:
		a.late = max(a.late, float64(estimate.SignExtend(d.sum-n*a.base, bits))/float64(n))
	}
}

// add accounts for a group of packets.
func (r *Result) add(sent, received uint64) {
	r.Sent += sent
	r.Received += received
	r.Lost += sent - min(sent, received)
	r.Extra += received - min(sent, received)
}
