package lds

import (
	"math"

	"github.com/hoplag/hoplag/estimate"
)

// reach is how far the mean delay of a cell may be from the centre of others, in
// nanoseconds, if nothing else is known.
const reach = 10e9

// fits reports whether a sum of the given width tells the mean of n packets, which
// it knows up to multiples of 2^bits/n, if it is no farther than so many
// nanoseconds from the centre.
func fits(n uint64, bits uint8, reach float64) bool {
	return float64(n)*2*reach < math.Ldexp(1, int(bits))
}

// fits is fits for a cell of n packets of a sketch.
func (c *Config) fits(n uint64) bool {
	if c.GreatestDelay == 0 {
		return fits(n, c.SumBits, reach)
	}
	return fits(n, c.SumBits, float64(c.GreatestDelay))
}

// A centre is a delay that others are near. It takes the clocks' offset out of
// sums before they are read, so that the offset may be as large as one packet's
// sum can hold. It comes from the cell with the fewest packets, which wraps last.
type centre struct {
	delay   int64
	sent    uint64 // its time stamps upstream, of one packet its time
	packets uint64 // of that cell, 0: none
}

// look makes a cell that has the same packets at both points the centre if it
// has the fewest so far.
func (c *centre) look(up, down *cell, bits uint8) {
	if n := uint64(up.count()); n > 0 && (c.packets == 0 || n < c.packets) {
		*c = centre{estimate.Difference(up.sum, down.sum, int(bits)) / int64(n), up.sum, n}
	}
}

// beyond returns the sum of the delays of a cell's packets beyond the centre.
func (c *centre) beyond(up, down *cell, bits uint8) float64 {
	return float64(estimate.SignExtend(down.sum-up.sum-uint64(c.delay)*uint64(up.count()), int(bits)))
}
