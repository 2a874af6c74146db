package lds

import "github.com/hoplag/hoplag/estimate/clock"

// Correct makes of the far point's sketch what its clock would have made of it
// had it agreed with the near point's. After that the delays of all flows are
// right, however much the clocks drifted within the interval; what remains open
// is in the reading's intervals, and common to all flows. reading is of the
// middle of the interval. See package clock for where it comes from.
func (s *Sketch) Correct(reading clock.Reading) {
	for i := range s.cells {
		if c := &s.cells[i]; c.count() > 0 {
			c.sum = reading.NearSum(c.sum, uint64(c.count()), int(s.config.SumBits))
		}
	}
}
