package lda

import (
	"fmt"
	"math"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/clock"
)

// AppendClockSamples appends what the cells say about the two points' clocks, for [clock.Tracker.Add]: the sending time and the
// delay of every packet that was alone in its cell at both points. If these are few, it adds the means of cells that hold
// several packets. The near clock is that of the first point or, if back is set, that of the second, to which packets travel
// back. near is the middle of the interval by that clock. The error wraps [estimate.ErrMismatch].
func AppendClockSamples(dst []clock.Sample, up, down *Aggregator, near int64, back bool) ([]clock.Sample, error) {
	if err := up.config.same(&down.config); err != nil {
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

// Correct changes the far point's aggregator to what it would be if the far clock had agreed with the near one. Mean, deviation
// and quantiles are then right for every packet, however much the clocks drifted during the interval. What remains uncertain is
// in the reading's intervals. The reading must be of the middle of the interval.
func (a *Aggregator) Correct(reading clock.Reading) {
	for i := range a.sampled() {
		if c := &a.cells[i]; c.count() > 0 {
			c.sum = reading.NearSum(c.sum, uint64(c.count()), int(a.config.SumBits))
		}
	}
}

// Shift adds by, in nanoseconds, to all timestamps. An [Accumulator] does not take that for a clock that was set.
func (a *Aggregator) Shift(by int64) {
	a.each(a.sampled(), func(_ int, c *cell) {
		c.sum += uint64(c.count()) * uint64(by)
		a.shifted += float64(c.count()) * math.Abs(float64(by))
	})
}

// Singles calls f for every cell that holds a single packet, with the cell's number, the packet's digest of
// Config.DigestBits, and its timestamp modulo 2^SumBits. Cells are numbered bank by bank.
func (a *Aggregator) Singles(f func(cell int, digest uint32, stamp uint64)) {
	unknown, mask := 64-a.config.SumBits, a.config.digestMask()
	a.each(a.sampled(), func(i int, c *cell) {
		if c.count() == 1 {
			f(i, uint32(c.tally&mask>>32), c.sum<<unknown>>unknown)
		}
	})
}

// A stamping adds up how far stamps are from the middle of their interval, how long these are, by how much
// stamps were shifted on purpose, and how far off stamps are that cannot be right.
type stamping struct{ packets, off, length, shifted, stray float64 }

// An interval is what stamps must lie in. Sums of so many bits tell of up to so many packets in a cell.
type interval struct {
	start, ns uint64
	packets   uint64
	bits      int
}

// after returns how long after the beginning the packets of a cell passed, added up.
func (of *interval) after(c *cell) int64 {
	return estimate.SignExtend(c.sum-uint64(c.count())*of.start, of.bits)
}

// add adds the stamps of a cell, unless the interval has no length, because then it adds to the one before, or
// their sum is too narrow to tell.
func (s *stamping) add(c *cell, of *interval) {
	n := uint64(c.count())
	if n*of.ns == 0 || n > of.packets {
		return
	}
	length, after := float64(n*of.ns), float64(of.after(c))
	s.within(n, after, of)
	if far := math.Abs(after-length/2) - length/2; far > 0 && far > min(s.shifted, 1)*length { // by up to an interval
		s.stray += far + length
	}
}

// within adds stamps that all are in the interval, by how long after its beginning they are, added up.
func (s *stamping) within(packets uint64, after float64, of *interval) {
	length := float64(packets) * float64(of.ns)
	s.packets, s.off, s.length = s.packets+float64(packets), s.off+after-length/2, s.length+length
}

// check refuses stamps that are on average more than an interval away from the one that they belong to,
// unless they were shifted so far.
func (s *stamping) check(point string) error {
	if math.Abs(s.off) <= 1.5*s.length+s.shifted {
		return nil
	}
	return fmt.Errorf("lda: %w: stamps %s are %.3g s away from the cuts: another clock's", estimate.ErrClocks, point, s.off/s.packets/1e9)
}
