package lda

import (
	"fmt"
	"math"

	"github.com/hoplag/hoplag/estimate"
)

// see counts the packets of a cell if it is overfull, and reports whether it is. All copies of a packet fall into one
// cell; if they are many, the cell holds more packets than chance puts there, which it does once in a million times.
// It takes no key to repeat a packet, and honest senders do: keep-alives, probes, tunnels that are not looked into.
//
// If no copy is lost, their delays add up exactly and have their full weight in the mean. Their deviation is
// not known, and is taken to be that of the other packets. If a copy is lost, nothing is known of its cell
// except how many packets it holds: the mean is of the others, and the intervals allow for what the copies may
// add. Groups of copies too small to overfill a cell show by their effects on other counts, and widen the
// intervals, too.
func (r *Result) see(p *pairing, bank, i int) bool {
	if !p.overfull(bank, i) {
		return false
	}
	s, d := float64(p.up.cells[i].count()), float64(p.down.cells[i].count())
	r.Repeats += uint64(max(s-p.usual[0][bank].mean, d-p.usual[1][bank].mean))
	return true
}

// copies are the packets received in overfull cells.
type copies struct {
	received, known uint64
	sum             float64 // of the delays of those known
}

// copies adds up the overfull cells. A sum that may have wrapped tells nothing.
func (p *pairing) copies() (c copies) {
	width := int(p.up.config.SumBits)
	p.each(func(bank, i int) {
		if !p.overfull(bank, i) {
			return
		}
		s, d := &p.up.cells[i], &p.down.cells[i]
		c.received += uint64(d.count())
		sum := float64(estimate.SignExtend(d.sum-s.sum, width))
		if p.usable(i) && math.Abs(sum) < math.Ldexp(1, width-8) {
			c.known += uint64(d.count())
			c.sum += sum
		}
	})
	return c
}

// include adds copies to a Result of all other packets. The error wraps
// [estimate.ErrNoSamples] if too many are unknown.
func (r *Result) include(c *copies) error {
	r.unknown = c.received - c.known
	r.strays += r.unknown
	if c.known > 0 {
		share := float64(c.known) / (float64(r.spoken) + float64(c.known))
		apart := c.sum/float64(c.known) - r.Mean
		r.N += c.known
		r.Mean += share * apart
		r.StdDev = math.Sqrt(r.StdDev*r.StdDev + share*(1-share)*apart*apart)
		r.sampling *= 1 - share
	}
	if r.spoken += c.received; 4*r.unknown > r.spoken {
		const unknown = "lda: %w: of %d packets received %d share cells with copies of one, and no delay of them is known"
		return fmt.Errorf(unknown, estimate.ErrNoSamples, r.Received, r.unknown)
	}
	return nil
}

const (
	tooFar     = 8  // between means of banks; chance makes them never
	leastAlone = 20 // packets
)

// compareCells compares the usable cells of a settlement, and returns the packets that are alone, and how many
// standard errors fuller cells are slower per packet. The error wraps ErrContradiction if the means of banks
// differ so much that they cannot both be right: copies that share cells, however slow they are, are in every
// bank alike.
func compareCells(p *pairing, found *settlement) (alone estimate.Cells, slope float64, err error) {
	mean, variance := found.sum/float64(found.packets), found.cells.Variance()
	var sum, squares float64
	for j := range p.up.config.banks() {
		var packets, cells, total, noise float64 // total: of the delays beyond the mean
		for n, wrapped := range p.of(j, j+1) {
			cells++
			packets += float64(n)
			total += found.relative(n, wrapped) - float64(n)*mean
		}
		for n, wrapped := range p.of(j, j+1) {
			beyond := found.relative(n, wrapped) - float64(n)*mean
			found.less, found.more = max(found.less, -beyond), max(found.more, beyond)
			noise += sq(beyond - float64(n)*total/packets)
			term := beyond * (float64(n) - packets/cells)
			sum += term
			squares += sq(term)
			if n == 1 {
				alone.Add(beyond, 1)
			}
		}
		// Few packets may miss the rare slow ones that all have.
		rounding := packets * (1 + 1e-12*math.Abs(float64(found.base)))
		apart := math.Abs(total) / (math.Sqrt(noise+packets*variance) + rounding)
		if cells >= leastAlone && apart > tooFar {
			err = fmt.Errorf("%w: the means of banks differ by %.3g standard errors", ErrContradiction, apart)
		}
	}
	return alone, sum / math.Sqrt(max(squares, math.SmallestNonzeroFloat64)), err
}

// seeRepeats looks for copies in groups too small to overfill a cell, by their effects. Cells that lost a
// packet lost more than one, and hold more of those that arrived, than they should: copies of the lost one.
// Fuller cells are slower or faster per packet, for a cell is full because of its copies. And full cells
// scatter more than packets that are alone.
func (r *Result) seeRepeats(c *census, alone *estimate.Cells, slope float64) {
	if c.copies(slope, likely) {
		r.behind, r.sure = c.excess.each(), c.copies(slope, surely)
	}
	if alone.Cells() < leastAlone {
		return
	}
	// The logarithm of the variance of n exponential delays has the variance 8/n.
	// Heavier tails err more, and are taken for copies: all that costs is width.
	variance := alone.Variance()
	if math.Log(r.StdDev*r.StdDev/variance) > surely*math.Sqrt(8/float64(alone.Cells())) {
		r.alone.StdDev, r.aloneDegrees = math.Sqrt(variance), alone.EffectiveDegrees(0)
	}
}
