package rli

import (
	"fmt"

	"github.com/hoplag/hoplag/estimate"
)

// Merge adds the flows and counts of b, which saw other flows of the same
// interval or another interval. It adds a flow's record whole or, if there is
// no room, drops it whole and counts its packets as shed. It leaves out
// packets that wait in b. The error wraps [estimate.ErrMismatch]; r is then
// unchanged.
func (r *Receiver) Merge(b *Receiver) error {
	if r.config != b.config {
		return fmt.Errorf("rli: %w: %+v and %+v", estimate.ErrMismatch, r.config, b.config)
	}
	r.counts.add(&b.counts)
	r.quality.add(&b.quality)
	if b.total.count() == 0 {
		return nil
	}
	r.total.merge(b.seal(b.total), r.gap)
	for i := range b.flows.records {
		theirs := &b.flows.records[i]
		if theirs.count() == 0 {
			continue
		}
		at := r.flows.find(theirs.flow)
		mine := &r.flows.records[at]
		if mine.count() == 0 && !r.flows.claim(at, theirs.flow) {
			r.counts.Shed += theirs.count()
			continue
		}
		mine.merge(b.seal(*theirs), r.gap)
	}
	return nil
}
