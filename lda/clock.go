package lda

import (
	"github.com/hoplag/hoplag/estimate/clock"
)

// AppendClockSamples appends what the cells say about the two points' clocks, for
// [clock.Tracker.Add]: the sending time and the delay of every packet that was
// alone in its cell at both points. If there are few, it adds the means of cells
// that hold several packets. Pass [clock.There] as make for the direction away
// from the near point, whose clock is the reference, and [clock.Back] for the
// other. near is the middle of the interval on the near point's clock. The error
// wraps [estimate.ErrMismatch].
func AppendClockSamples(
	dst []clock.Sample, up, down *Aggregator,
	make func(sent, received uint64, packets uint32, bits int, near int64) clock.Sample, near int64,
) ([]clock.Sample, error) {
	if err := sameConfig(up, down); err != nil {
		return dst, err
	}
	const few, most = 64, 8 // samples of single packets; packets of a fuller cell
	first := len(dst)
	digest := up.config.digestMask()
	sent, received := up.sampled(), down.sampled()
	for packets := uint32(1); packets <= most && len(dst)-first < few; packets++ {
		for i := range sent {
			s, d := &sent[i], &received[i]
			if s.count() == packets && d.count() == packets && (s.tally^d.tally)&digest == 0 {
				dst = append(dst, make(s.sum, d.sum, packets, int(up.config.SumBits), near))
			}
		}
	}
	return dst, nil
}

// Correct changes the far point's aggregator to what it would be if the far clock
// had agreed with the near one. Mean, deviation and quantiles are then right for
// every packet, however much the clocks drifted during the interval. What remains
// uncertain is in the reading's intervals. The reading is of the middle of the
// interval.
func (a *Aggregator) Correct(reading clock.Reading) {
	cells := a.sampled()
	for i := range cells {
		if c := &cells[i]; c.count() > 0 {
			c.sum = reading.NearSum(c.sum, uint64(c.count()), int(a.config.SumBits))
		}
	}
}
