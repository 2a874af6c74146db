package lda

import "github.com/hoplag/hoplag/estimate/clock"

// AppendClockSamples appends what the cells say about the two points' clocks, for
// [clock.Tracker.Add]: the sending time and the delay of every packet that was
// alone in its cell at both points. If these are few, it adds the means of cells that hold several packets. The
// near clock is that of the first point or, if back is set, that of the second, to which packets travel back.
// near is the middle of the interval by that clock. The error wraps [estimate.ErrMismatch].
func AppendClockSamples(dst []clock.Sample, up, down *Aggregator, near int64, back bool) ([]clock.Sample, error) {
	if err := sameConfig(up, down); err != nil {
		return dst, err
	}
	const few, most = 64, 8 // samples of single packets; packets of a fuller cell
	sample, first, bits := clock.There, len(dst), int(up.config.SumBits)
	if back {
		sample = clock.Back
	}
	cells := newPairing(up, down)
	for packets := uint32(1); packets <= most && len(dst)-first < few; packets++ {
		cells.each(func(bank, i int) {
			if up.cells[i].count() == packets && cells.usable(i) && !cells.overfull(bank, i) {
				dst = append(dst, sample(up.cells[i].sum, down.cells[i].sum, packets, bits, near))
			}
		})
	}
	return dst, nil
}

// Correct changes the far point's aggregator to what it would be if the far clock had agreed with the near one.
// Mean, deviation and quantiles are then right for every packet, however much the clocks drifted during the
// interval. What remains uncertain is in the reading's intervals. The reading must be of the middle of the
// interval.
func (a *Aggregator) Correct(reading clock.Reading) {
	for i := range a.sampled() {
		if c := &a.cells[i]; c.count() > 0 {
			c.sum = reading.NearSum(c.sum, uint64(c.count()), int(a.config.SumBits))
		}
	}
}
