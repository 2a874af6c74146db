package lda

import (
	"errors"
	"fmt"

	"github.com/hoplag/hoplag/estimate"
)

// A Result is what two aggregators tell about an interval, or an [Accumulator]
// about many.
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

	// Outstanding is how many packets were sent and neither received nor yet
	// given up for lost: Lost may still grow by as much. Of one interval it is 0.
	Outstanding uint64

	// Crossed is how many packets passed the two points in different
	// intervals, at least; an Accumulator knows, Estimate does not.
	Crossed uint64

	// Spoken is how many of the received packets the mean and the deviation
	// speak of: those of intervals with a usable cell. Of one interval it is
	// Received.
	Spoken uint64

	// Strays is how many packets may have passed the points in different
	// intervals and are missing from the sample for that, at most; slow ones
	// are more likely to. An Accumulator knows where they belong.
	Strays uint64

	// Repeats are the identical packets among them.
	Repeats Repeats

	Cells    int // cells that saw a packet at either point
	Usable   int // of these, how many have the same packets at both points, as far as count and digest tell
	Replaced int // of these, how many agree in count and not in digest: as many lost as appeared
	Negative int // usable cells whose delays add up to less than 0: the clocks are offset, or the points swapped

	// MeanDoubt is by how much the mean may be off besides, 99 % sure, where
	// delays vary from interval to interval, packets cross the cuts, and some
	// are missing from the sample of which it is not known when they were
	// received. Of one interval it is 0.
	MeanDoubt float64

	// What the intervals rest on. Degrees of 0 mean that nothing is known.
	MeanError        float64 // standard error of the mean as that of all packets spoken of
	MeanDegrees      uint64  // degrees of freedom that MeanError rests on
	DeviationDegrees uint64  // degrees of freedom that StdDev rests on
}

// Estimate compares the upstream and the downstream point's aggregator of
// one interval. Neither is changed. The error wraps [estimate.ErrMismatch] if
// their Configs differ, [estimate.ErrNoSamples] if no cell is usable, and
// [ErrContradiction] if the usable ones cannot all be right; in the latter
// cases the counts of the Result are still right.
//
// A delay that is negative is reported as it is measured: the clocks disagree,
// or the points are swapped.
func Estimate(up, down *Aggregator) (Result, error) {
	if err := sameConfig(up, down); err != nil {
		return Result{}, err
	}
	return compare(up, down, down.Packets())
}

// compare estimates the delay of so many packets that were received, of which
// the aggregators have some.
func compare(up, down *Aggregator, received uint64) (Result, error) {
	r := count(up, down)
	r.Spoken, r.Strays = received, min(r.Lost, r.Extra)+uint64(r.Replaced)
	restUp, restDown, copies := split(up, down)
	usable := usableSums(restUp, restDown)
	found, err := settle(&usable, int(up.config.SumBits))
	if errors.Is(err, estimate.ErrNoSamples) && copies.received > 0 {
		copies.received, copies.known = 0, 0 // there are hardly any others
		usable = usableSums(up, down)
		found, err = settle(&usable, int(up.config.SumBits))
	}
	r.Repeats = copies.report()
	if err != nil {
		return r, fmt.Errorf("lda: %w: %d packets sent, %d received, %d of %d cells usable", err, r.Sent, r.Received, r.Usable, r.Cells)
	}
	var all sample
	all.add(&stratum{settlement: found, received: received - min(received, copies.received), told: float64(found.packets)}, 1)
	all.report(&r)
	return r, r.include(&copies)
}

// usableSums are the sums of the cells that have the same packets at both
// points.
func usableSums(up, down *Aggregator) sums {
	return sums{sent: up.sampled(), received: down.sampled(), agree: up.config.digestMask() | (1<<32 - 1)}
}

// count compares the numbers of packets.
func count(up, down *Aggregator) (r Result) {
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
		}
	}
	r.add(up.unsampledCount(), down.unsampledCount())
	return r
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
