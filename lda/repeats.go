package lda

import (
	"fmt"
	"math"

	"github.com/hoplag/hoplag/estimate"
)

// Repeats says what the counts reveal of identical packets. All copies of a packet
// fall into one cell; if they are many, the cell holds more packets than chance
// puts there (see [estimate.CountLimit]). It takes no key to repeat a packet, and
// honest senders do: keep-alives, probes, tunnels that are not looked into.
//
// If no copy is lost, their delays add up exactly and have their full weight in
// the mean. Their deviation is not known, and is taken to be that of the other
// packets. If a copy is lost, nothing is known of its cell except how many packets
// it holds: the mean is of the others, and the intervals allow for what the copies
// may add. Where counts or scatter tell of copies, Repeats is not zero.
type Repeats struct {
	Cells   int    // cells that hold more packets than chance puts there
	Packets uint64 // packets beyond that, at the point that counted more
	unknown uint64 // received packets of those cells whose delays are not known

	// excess is how many packets that arrived may be missing from the sample
	// because a copy of them was lost. Groups too small to overfill a cell show
	// by that.
	excess uint64

	// aloneStdDev is the deviation of packets that were alone in their cell if,
	// beyond chance, fuller cells scatter more: because copies share a cell, or
	// because of delays too rare to be alone. Else it and its degrees are 0.
	aloneStdDev  float64
	aloneDegrees uint64
}

// copies are the packets of overfull cells.
type copies struct {
	Repeats
	received uint64
	known    uint64  // packets of usable ones
	sum      float64 // of their delays
	usable   int
}

// copies adds up the overfull cells. A sum that may have wrapped tells nothing.
func (p *pairing) copies() (c copies) {
	if !p.any {
		return c
	}
	width := int(p.up.config.SumBits)
	p.each(func(bank, i int) {
		if !p.overfull(bank, i) {
			return
		}
		received := uint64(p.down.cells[i].count())
		c.Cells++
		c.Packets += p.beyond(bank, i)
		c.received += received
		sum := float64(estimate.SignExtend(p.down.cells[i].sum-p.up.cells[i].sum, width))
		if p.usable(i) && math.Abs(sum) < math.Ldexp(1, width-8) {
			c.known += received
			c.sum += sum
			c.usable++
		}
	})
	c.unknown = c.received - c.known
	return c
}

// include adds the copies to a Result of all other packets. The error wraps
// [estimate.ErrNoSamples] if too many are unknown.
func (r *Result) include(c *copies) error {
	r.Repeats.Cells, r.Repeats.Packets, r.Repeats.unknown = c.Cells, c.Packets, c.unknown
	if c.received == 0 {
		return nil
	}
	rest, known := float64(r.spoken), float64(c.known)
	r.N += c.known
	r.spoken += c.received
	r.Usable += c.usable
	r.strays += c.unknown
	share := known / (rest + known)
	if c.known > 0 {
		apart := c.sum/known - r.Mean
		r.Mean += share * apart
		r.StdDev = math.Sqrt(r.StdDev*r.StdDev + share*(1-share)*apart*apart)
	}
	r.sampling *= 1 - share
	if 4*c.unknown > r.spoken {
		const unknown = "lda: %w: of %d packets received %d share cells with copies of one, and no delay of them is known"
		return fmt.Errorf(unknown, estimate.ErrNoSamples, r.Received, c.unknown)
	}
	return nil
}
