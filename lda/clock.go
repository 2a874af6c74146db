package lda

import (
	"github.com/hoplag/hoplag/estimate/clock"
)

// AppendClockSamples appends what the cells tell of the two points' clocks, for
// [clock.Tracker.Add]: the sending time and the delay of every packet that was
// alone in its cell at both points and, where these are few, the means of
// cells of some packets more. make is [clock.There] for the direction from the
// near point, whose clock is the reference, and [clock.Back] for the other;
// near is the middle of the interval, by the near point's clock. The error
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

// Correct makes of the far point's aggregator what its clock would have made
// of it had it agreed with the near point's. After that mean, deviation and
// quantiles are right, packet by packet, however much the clocks drifted within
// the interval; what remains open is in the reading's intervals. reading is of
// the middle of the interval.
func (a *Aggregator) Correct(reading clock.Reading) {
	cells := a.sampled()
	for i := range cells {
		if c := &cells[i]; c.count() > 0 {
			c.sum = reading.NearSum(c.sum, uint64(c.count()), int(a.config.SumBits))
		}
	}
}
