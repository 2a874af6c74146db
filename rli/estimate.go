package rli

import (
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// Counts says what became of the packets and references.
type Counts struct {
	Packets uint64 // passed to Update

	// How packets were estimated. Packets still in the buffer are in none of
	// these.
	Idle        uint64 // found the link idle: exact
	Busy        uint64 // within a busy period, by BusyAware
	Linear      uint64 // from one reference or two, eq. (1)
	Unestimated uint64 // not estimated: there was no reference
	Unfollowed  uint64 // of all of these, without a reference before or after

	Shed    uint64 // packets without a record: all were in use
	Evicted uint64 // packets whose record gave way to another flow's

	// According to the numbers of packets in references.
	Missing   uint64 // packets that never departed, or were not passed to Update
	Overtaken uint64 // packets that departed after a reference sent after them, or did not pass the injector

	References uint64 // passed to Reference or Accept
	Lost       uint64 // numbers missing between references
	Refused    uint64 // references that came twice, late or from another injector, or contradict earlier ones
	Forged     uint64 // not a reference, or of another key
	Steps      uint64 // times that a clock was stepped, or the injector restarted with its clock behind
	Conflicts  uint64 // times that BusyAware found the link not as it assumes
}

// list returns all counts in the order of the encoding.
func (c *Counts) list() [countFields]*uint64 {
	return [...]*uint64{
		&c.Packets, &c.Idle, &c.Busy, &c.Linear, &c.Unestimated, &c.Unfollowed, &c.Shed, &c.Evicted,
		&c.Missing, &c.Overtaken, &c.References, &c.Lost, &c.Refused, &c.Forged, &c.Steps, &c.Conflicts,
	}
}

const countFields = 16

func (c *Counts) add(b *Counts) {
	theirs := b.list()
	for i, n := range c.list() {
		*n += *theirs[i]
	}
}

// Counts returns what became of the packets and references so far.
func (r *Receiver) Counts() Counts { return r.counts }

// Trusted reports whether packets are estimated within busy periods at
// present.
func (r *Receiver) Trusted() bool { return r.bridging() }

// Estimate returns the delay of flow f. It leaves out packets that wait for a
// reference. The error wraps [estimate.ErrNoSamples] or [ErrUntrusted].
func (r *Receiver) Estimate(f hashing.Flow) (Result, error) {
	flow, err := r.find(f)
	if err != nil {
		return Result{}, err
	}
	share, err := r.doubtful(flow, 0)
	if err != nil {
		return Result{}, err
	}
	return r.result(flow, share), nil
}

// find returns the record of a flow.
func (r *Receiver) find(f hashing.Flow) (*record, error) {
	flow := &r.flows.records[r.flows.find(f)]
	if flow.count() == 0 {
		return nil, fmt.Errorf("rli: %w: no packet of flow %#016x was estimated", estimate.ErrNoSamples, uint64(f))
	}
	return flow, nil
}

// Total returns the delay of all packets, including those without a record. The
// error wraps [estimate.ErrNoSamples] or [ErrUntrusted].
func (r *Receiver) Total() (Result, error) {
	if r.total.count() == 0 {
		return Result{}, fmt.Errorf("rli: %w: no packet was estimated", estimate.ErrNoSamples)
	}
	share, err := r.doubtful(&r.total, r.counts.Unestimated)
	if err != nil {
		return Result{}, err
	}
	return r.result(&r.total, share), nil
}

// All returns an iterator over the flows that Estimate answers, in no
// particular order. Meanwhile, only query the receiver.
func (r *Receiver) All() iter.Seq2[hashing.Flow, Result] {
	return func(yield func(hashing.Flow, Result) bool) {
		for i := range r.flows.records {
			flow := &r.flows.records[i]
			if flow.count() == 0 {
				continue
			}
			if share, err := r.doubtful(flow, 0); err == nil && !yield(flow.flow, r.result(flow, share)) {
				return
			}
		}
	}
}

var _ = math.Pi
var _ = slices.Sort[[]int]
