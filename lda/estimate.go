package lda

import (
	"fmt"

	"github.com/hoplag/hoplag/estimate"
)

// A Result is what two aggregators tell about one interval.
type Result struct {
	// Delay is over the packets of the usable cells: the mean of section
	// III-D (D, with N = S the effective sample size), and the
	// count-conditioned deviation of [estimate.Cells]. With fewer than two
	// usable cells the deviation is 0 because it is not known; its interval
	// says so.
	estimate.Delay

	Sent     uint64 // packets that passed upstream
	Received uint64 // packets that passed downstream

	// Lost and Extra add up, over the cells, how many packets fewer or more
	// passed downstream; so Lost - Extra = Sent - Received. Extra packets are
	// duplicates, or were not seen upstream. In a cell with both the smaller
	// number of the two is missed.
	Lost, Extra uint64

	Cells    int // cells that saw a packet at either point
	Usable   int // of these, how many have the same packets at both points, as far as count and digest tell
	Replaced int // of these, how many agree in count and not in digest: as many lost as appeared
	Negative int // usable cells whose delays add up to less than 0: the clocks are offset, or the points swapped

	usable estimate.Cells
}

// Estimate compares the upstream and the downstream point's aggregator of
// one interval. Neither is changed. The error wraps [estimate.ErrMismatch] if
// their Configs differ, and [estimate.ErrNoSamples] if no cell is usable; in
// the latter case the counts of the Result are still right.
//
// A delay that is negative is reported as it is measured. See [Offset] for
// what to do about clocks that disagree.
func Estimate(up, down *Aggregator) (Result, error) {
	if err := sameConfig(up, down); err != nil {
		return Result{}, err
	}
	var r Result
	width := int(up.config.SumBits)
	digest := up.config.digestMask()
	sent, received := up.sampled(), down.sampled()
	for i := range sent {
		s, d := &sent[i], &received[i]
		if s.count() == 0 && d.count() == 0 {
			continue
		}
		r.Cells++
		r.add(uint64(s.count()), uint64(d.count()))
		switch {
		case s.count() != d.count():
		case (s.tally^d.tally)&digest != 0:
			r.Replaced++
		default:
			r.Usable++
			total := estimate.Difference(s.sum, d.sum, width)
			if total < 0 {
				r.Negative++
			}
			r.usable.Add(float64(total), uint64(s.count()))
		}
	}
	r.add(up.unsampledCount(), down.unsampledCount())

	var err error
	if r.Delay, err = r.usable.Delay(); err != nil {
		return r, fmt.Errorf("lda: %w: %d packets sent, %d received, none of %d cells usable", err, r.Sent, r.Received, r.Cells)
	}
	return r, nil
}

// add accounts for a group of packets.
func (r *Result) add(sent, received uint64) {
	r.Sent += sent
	r.Received += received
	if sent > received {
		r.Lost += sent - received
	} else {
		r.Extra += received - sent
	}
}

// digestMask covers the bits of a tally that hold the stream digest.
func (c *Config) digestMask() uint64 {
	return (1<<c.DigestBits - 1) << 32
}
