package lds

import "github.com/hoplag/hoplag/estimate/clock"

// Correct corrects the far point's sketch as if its clock had agreed with the
// near point's. The delays of all flows are right after that, however much the
// clocks drifted within the interval, up to the reading's own intervals, which
// are the same for all flows. The reading must be of the middle of the
// interval. Package clock makes readings.
func (s *Sketch) Correct(reading clock.Reading) {
	for i := range s.cells {
		if c := &s.cells[i]; c.count() > 0 {
			c.sum = reading.NearSum(c.sum, uint64(c.count()), int(s.config.SumBits))
		}
	}
}
