package rli

import (
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// A Result is what is known of the packets of one flow, or of all.
type Result struct {
	// Delay is over the estimated delays of its packets, eq. (5) and (6): N is
	// their number, and the divisor of the deviation. A delay includes the
	// time to send the packet itself.
	estimate.Delay

	Bytes       uint64
	First, Last int64 // departures of its first and latest packet

	// Tuple is the 5-tuple that UpdateTuple told of, with Config.Tuples; else
	// it is zero.
	Tuple hashing.Tuple

	gaps           uint64  // pairs of references that its packets came between
	variance, bias float64 // of an estimate's error
}

// Counts say what became of the packets and references.
type Counts struct {
	Packets   uint64 // that Update was told of
	Passed    uint64 // that Pass was told of
	Unsampled uint64 // packets whose flow is not in the sample

	// How sampled packets were estimated. Those that still wait in the buffer
	// are in none of these.
	Idle        uint64 // found the link idle: exact
	Busy        uint64 // within a busy period, by the busy-aware method
	Linear      uint64 // between two references, eq. (1)
	Left, Right uint64 // by the reference before or after them alone
	Unestimated uint64 // not at all, as there was no reference

	Invalid    uint64 // packets of fewer than 0 or more than 2^31-1 bytes, refused
	Overflowed uint64 // packets that were estimated early because the buffer was full
	Unheld     uint64 // packets that no record took: not drawn by Config.Hold
	Shed       uint64 // packets that no record took: all were in use
	Evicted    uint64 // packets whose record gave way to another flow's

	// As references tell how many packets the injector was told of.
	Missing   uint64 // packets that never departed, or were not told of by Update
	Overtaken uint64 // packets that departed after a reference that was sent after them, or were not sent past the injector

	References uint64 // that Reference was told of
	Lost       uint64 // numbers left out between references
	Duplicated uint64 // references of a number that had come
	Reordered  uint64 // references of a number lower than one that had come
	Restarts   uint64 // the injector began to number anew: lower numbers that were sent later, or 65 in a row

	Foreign     uint64 // references of other injectors
	Forged      uint64 // that Accept refused: not a reference, or of another key
	Implausible uint64 // references left out: sent before earlier ones, or with a delay far below all others

	// Why the busy-aware method did not believe the link.
	Conflicts  uint64 // references that contradict what was known of the link
	Impossible uint64 // departures closer together than the link could send
	Fallbacks  uint64 // times that it went back to Linear
}

// list is all the counts, in the order of the encoding.
func (c *Counts) list() [countFields]*uint64 {
	return [...]*uint64{
		&c.Packets, &c.Passed, &c.Unsampled,
		&c.Idle, &c.Busy, &c.Linear, &c.Left, &c.Right, &c.Unestimated,
		&c.Invalid, &c.Overflowed, &c.Unheld, &c.Shed, &c.Evicted,
		&c.Missing, &c.Overtaken,
		&c.References, &c.Lost, &c.Duplicated, &c.Reordered, &c.Restarts,
		&c.Foreign, &c.Forged, &c.Implausible,
		&c.Conflicts, &c.Impossible, &c.Fallbacks,
	}
}

const countFields = 27

func (c *Counts) add(b *Counts) {
	theirs := b.list()
	for i, n := range c.list() {
		*n += *theirs[i]
	}
}

// Counts returns what became of the packets and references so far.
func (r *Receiver) Counts() Counts { return r.counts }

// Trusted reports whether the busy-aware method believes the link at present.
func (r *Receiver) Trusted() bool {
	return r.method == BusyAware && r.link.trusted()
}

// Flows is how many flows have a record.
func (r *Receiver) Flows() int { return r.flows.used }

// Estimate returns the delay of flow f. Packets that wait for a reference are
// not included. The error wraps [estimate.ErrNoSamples].
func (r *Receiver) Estimate(f hashing.Flow) (Result, error) {
	at := r.flows.find(f)
	if r.flows.records[at].count() == 0 {
		return Result{}, fmt.Errorf("rli: %w: no packet of flow %#016x was estimated", estimate.ErrNoSamples, uint64(f))
	}
	return r.resultAt(at), nil
}

// resultAt is the record at a place of the table as an estimate.
func (r *Receiver) resultAt(at int) Result {
	res := r.result(&r.flows.records[at])
	if r.config.Tuples {
		res.Tuple = r.flows.tuples[at]
	}
	return res
}

// result is a record as an estimate.
func (r *Receiver) result(flow *record) Result {
	res := flow.result(r.centre)
	res.variance, res.bias = r.residuals.of()
	if r.counts.Missing > 0 {
		// A full queue lets a reference in only where there is room for one, so that
		// those that come have waited for up to a packet less than others.
		res.bias += r.sending(int32(r.total.bytes / r.total.count()))
	}
	if r.counts.Overtaken*scarce > r.counts.Packets {
		res.variance, res.bias = math.Inf(1), math.Inf(1)
	}
	return res
}

// Total returns the delay of all sampled packets, also of those that no
// record took. The error wraps [estimate.ErrNoSamples].
func (r *Receiver) Total() (Result, error) {
	if r.total.count() == 0 {
		return Result{}, fmt.Errorf("rli: %w: no packet was estimated", estimate.ErrNoSamples)
	}
	return r.result(&r.total), nil
}

// Quantile returns the delay in nanoseconds that a share p, 0 to 1, of flow
// f's packets do not exceed, as near as the histogram's buckets are narrow: see
// Config.Buckets. Below Config.Floor it is half of that, and beyond the last
// bucket it is where that begins. A bucket of a flow counts up to 2^32-1
// packets, then there is no answer. The clocks must agree: an offset moves
// delays to buckets of another width. The error wraps
// [estimate.ErrNoSamples], or [estimate.ErrConfig] where there are no buckets
// or p is out of range.
func (r *Receiver) Quantile(f hashing.Flow, p float64) (float64, error) {
	i := r.flows.find(f)
	if err := r.checkQuantile(r.flows.records[i].count(), p); err != nil {
		return 0, err
	}
	if r.config.Histograms > 0 {
		likely, _ := r.shared.quantile(f, r.flows.records[i].count(), r.histogram, r.config.Floor, p)
		return likely, nil
	}
	histogram := r.flows.histogram(i)
	if slices.Contains(histogram, math.MaxUint32) {
		return 0, fmt.Errorf("rli: %w: a bucket of flow %#016x is full at %d packets", estimate.ErrNoSamples, uint64(f), uint32(math.MaxUint32))
	}
	return quantile(histogram, r.config.Floor, p), nil
}

// TotalQuantile is Quantile of all packets that are in Total.
func (r *Receiver) TotalQuantile(p float64) (float64, error) {
	if err := r.checkQuantile(r.total.count(), p); err != nil {
		return 0, err
	}
	return quantile(r.histogram, r.config.Floor, p), nil
}

func (r *Receiver) checkQuantile(count uint64, p float64) error {
	switch {
	case r.config.Buckets == 0:
		return fmt.Errorf("rli: %w: quantiles want Buckets", estimate.ErrConfig)
	case !(p >= 0 && p <= 1):
		return fmt.Errorf("rli: %w: quantile %v, want 0 to 1", estimate.ErrConfig, p)
	case count == 0:
		return fmt.Errorf("rli: %w: no packet was estimated", estimate.ErrNoSamples)
	}
	return nil
}

// All returns an iterator over the flows that have a record, in no order.
// The receiver must not be used meanwhile, but for queries.
func (r *Receiver) All() iter.Seq2[hashing.Flow, Result] {
	return func(yield func(hashing.Flow, Result) bool) {
		for i := range r.flows.records {
			flow := &r.flows.records[i]
			if flow.count() > 0 && !yield(flow.flow, r.resultAt(i)) {
				return
			}
		}
	}
}

// Expire returns an iterator over the flows whose record is due at time now,
// by Config.Inactive or Config.Active, and removes each record after it was
// yielded. A packet of such a flow that still waits for a reference begins
// another record. The receiver must not be used meanwhile, but for queries.
func (r *Receiver) Expire(now int64) iter.Seq2[hashing.Flow, Result] {
	return func(yield func(hashing.Flow, Result) bool) {
		for i := range r.flows.records {
			// Another record may move to where one was removed.
			for flow := &r.flows.records[i]; flow.count() > 0 && r.due(flow, now); {
				more := yield(flow.flow, r.resultAt(i))
				r.flows.remove(i)
				if !more {
					return
				}
			}
		}
	}
}

func (r *Receiver) due(flow *record, now int64) bool {
	c := &r.config
	return c.Inactive > 0 && now-flow.last >= c.Inactive || c.Active > 0 && now-flow.first >= c.Active
}
