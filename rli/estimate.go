package rli

import (
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// A Result is what is known about the packets of one flow, or of all flows.
type Result struct {
	// Delay describes the estimated delays of the packets, eq. (5) and (6). N
	// is their number, and the divisor of the deviation. A delay includes the
	// time to send the packet itself.
	estimate.Delay

	Bytes       uint64
	First, Last int64 // departures of the first and the latest packet

	// Tuple is the 5-tuple passed to UpdateTuple, with Config.Tuples;
	// otherwise it is zero.
	Tuple hashing.Tuple

	// Believed is the share of all the receiver's packets that BusyAware
	// estimated within busy periods. The others are on straight lines, or have
	// the delay of one reference.
	Believed float64

	gaps           uint64  // pairs of references that its packets came between
	variance, bias float64 // of an estimate's error
}

// Counts says what became of the packets and references.
type Counts struct {
	Packets   uint64 // passed to Update
	Passed    uint64 // passed to Pass
	Unsampled uint64 // packets whose flow is not in the sample

	// How sampled packets were estimated. Packets still in the buffer are in
	// none of these.
	Idle        uint64 // found the link idle: exact
	Busy        uint64 // within a busy period, by BusyAware
	Linear      uint64 // between two references, eq. (1)
	Left, Right uint64 // by the reference before or after them alone
	Unestimated uint64 // not estimated: there was no reference

	Invalid    uint64 // packets of fewer than 0 or more than 2^31-1 bytes, refused
	Overflowed uint64 // packets estimated early because the buffer was full
	Unheld     uint64 // packets without a record: not drawn by Config.Hold
	Shed       uint64 // packets without a record: all were in use
	Evicted    uint64 // packets whose record gave way to another flow's

	// According to the numbers of packets in references.
	Missing   uint64 // packets that never departed, or were not passed to Update
	Overtaken uint64 // packets that departed after a reference sent after them, or did not pass the injector

	References uint64 // passed to Reference
	Lost       uint64 // numbers missing between references
	Duplicated uint64 // references with a number that had come before
	Reordered  uint64 // references with a number lower than one that had come
	Restarts   uint64 // times the injector restarted its numbers: lower numbers that were sent later, or 65 in a row

	Foreign     uint64 // references of other injectors
	Forged      uint64 // refused by Accept: not a reference, or of another key
	Implausible uint64 // references ignored: sent before earlier ones, or with a delay far below all others

	// Why BusyAware did not trust the link.
	Conflicts  uint64 // references that contradict what was known about the link
	Impossible uint64 // departures closer together than the link could send
	Fallbacks  uint64 // times that it fell back to Linear
	Rates      uint64 // times that references showed a new rate of the link, see Rate
}

// list returns all counts in the order of the encoding.
func (c *Counts) list() [countFields]*uint64 {
	return [...]*uint64{
		&c.Packets, &c.Passed, &c.Unsampled,
		&c.Idle, &c.Busy, &c.Linear, &c.Left, &c.Right, &c.Unestimated,
		&c.Invalid, &c.Overflowed, &c.Unheld, &c.Shed, &c.Evicted,
		&c.Missing, &c.Overtaken,
		&c.References, &c.Lost, &c.Duplicated, &c.Reordered, &c.Restarts,
		&c.Foreign, &c.Forged, &c.Implausible,
		&c.Conflicts, &c.Impossible, &c.Fallbacks, &c.Rates,
	}
}

// believed returns the share of estimated packets within busy periods.
func (c *Counts) believed() float64 {
	busy := c.Idle + c.Busy
	return float64(busy) / float64(max(busy+c.Linear+c.Left+c.Right, 1))
}

const countFields = 28

func (c *Counts) add(b *Counts) {
	theirs := b.list()
	for i, n := range c.list() {
		*n += *theirs[i]
	}
}

// Counts returns what became of the packets and references so far.
func (r *Receiver) Counts() Counts { return r.counts }

// Trusted reports whether BusyAware trusts the link at present.
func (r *Receiver) Trusted() bool {
	return r.method == BusyAware && r.link.trusted()
}

// Flows returns the number of flows that have a record.
func (r *Receiver) Flows() int { return r.flows.used }

// Estimate returns the delay of flow f. It leaves out packets that wait for a
// reference. The error wraps [estimate.ErrNoSamples].
func (r *Receiver) Estimate(f hashing.Flow) (Result, error) {
	at := r.flows.find(f)
	if r.flows.records[at].count() == 0 {
		return Result{}, fmt.Errorf("rli: %w: no packet of flow %#016x was estimated", estimate.ErrNoSamples, uint64(f))
	}
	return r.resultAt(at), nil
}

// resultAt returns the estimate of the record at a place of the table.
func (r *Receiver) resultAt(at int) Result {
	res := r.result(&r.flows.records[at])
	if r.config.Tuples {
		res.Tuple = r.flows.tuples[at]
	}
	return res
}

// result returns the estimate of a record.
func (r *Receiver) result(flow *record) Result {
	res := flow.result(r.centre)
	res.variance, res.bias = r.residuals.of()
	res.Believed = r.counts.believed()
	if r.counts.Missing > 0 {
		// A full queue lets a reference in only if there is room for one, so
		// the references that arrive have waited up to a packet less than
		// others.
		res.bias += r.sending(int32(r.total.bytes / r.total.count()))
	}
	if r.counts.Overtaken*scarce > r.counts.Packets {
		res.variance, res.bias = math.Inf(1), math.Inf(1)
	}
	return res
}

// Total returns the delay of all sampled packets, including those without a
// record. The error wraps [estimate.ErrNoSamples].
func (r *Receiver) Total() (Result, error) {
	if r.total.count() == 0 {
		return Result{}, fmt.Errorf("rli: %w: no packet was estimated", estimate.ErrNoSamples)
	}
	return r.result(&r.total), nil
}

// Quantile returns the delay in nanoseconds that a fraction p, 0 to 1, of flow
// f's packets do not exceed, within the width of a histogram bucket: see
// Config.Buckets. For delays below Config.Floor it returns half of Floor, and
// beyond the last bucket the beginning of that bucket. A bucket of a flow
// counts up to 2^32-1 packets; after that there is no answer. The clocks must
// agree: an offset moves delays to buckets of another width. The error wraps
// [estimate.ErrNoSamples], or [estimate.ErrConfig] if there are no buckets or
// p is out of range.
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

// TotalQuantile is Quantile for all packets in Total.
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

// All returns an iterator over the flows that have a record, in no particular
// order. Meanwhile, only query the receiver.
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
// by Config.Inactive or Config.Active. It removes each record after yielding
// it. A packet of such a flow that still waits for a reference starts a new
// record. Meanwhile, only query the receiver.
func (r *Receiver) Expire(now int64) iter.Seq2[hashing.Flow, Result] {
	return func(yield func(hashing.Flow, Result) bool) {
		for i := range r.flows.records {
			// Removing a record may move another one into its place.
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
