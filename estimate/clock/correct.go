package clock

import (
	"math"

	"github.com/hoplag/hoplag/estimate"
)

// A Corrected delay is what points whose clocks agree would have measured.
type Corrected struct {
	// Delay has the mean without the clock's offset, and the deviation without
	// what the drift added.
	estimate.Delay

	// Certain and Likely hold the mean of the measured packets as far as the
	// [Reading]'s intervals of the same names tell, apart from sampling error.
	Certain, Likely estimate.Interval
}

// Correct subtracts the reading from a delay that was measured from the near
// point to the far one; for one measured back, use [Reading.Reverse]. The
// reading is to be of the mean time of the packets: the drift between that and
// the reading's time is an error that no interval has room for, and cells that
// are corrected one by one do not have ([Reading.NearSum]). spread is the
// standard deviation of the packets' times, in nanoseconds, by which the drift
// widened the delays: that of an interval of length T evenly filled is T/√12.
func (r Reading) Correct(measured estimate.Delay, spread float64) Corrected {
	variance := measured.StdDev*measured.StdDev - r.Drift*r.Drift*spread*spread
	c := Corrected{Delay: measured}
	c.Mean -= r.Offset
	c.StdDev = math.Sqrt(max(0, variance))
	c.Certain = within(measured.Mean, r.Certain)
	c.Likely = within(measured.Mean, r.Likely)
	return c
}

// within applies an interval of the offset to a measured delay. No mean of
// delays is below zero.
func within(measured float64, offset estimate.Interval) estimate.Interval {
	return estimate.Interval{
		Low:        max(0, measured-offset.High),
		High:       max(0, measured-offset.Low),
		Confidence: offset.Confidence,
	}
}
