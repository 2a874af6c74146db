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
	if b.total.count() == 0 {
		return nil
	}
	if r.total.count() == 0 {
		r.centre = b.centre
	}
	step := b.centre - r.centre
	r.quality.add(&b.quality)
	total := b.total
	b.seal(&total)
	total.shift(step)
	if r.total.count() == 0 {
		total.first = r.gap
	}
	r.total.merge(&total)
	for i := range b.flows.records {
		theirs := b.flows.records[i]
		if theirs.count() == 0 {
			continue
		}
		b.seal(&theirs)
		theirs.shift(step)
		at := r.flows.find(theirs.flow)
		mine := &r.flows.records[at]
		if mine.count() == 0 && !r.flows.claim(at, theirs.flow) {
			r.counts.Shed += theirs.count()
			continue
		}
		if mine.count() == 0 {
			theirs.first = r.gap
		}
		mine.merge(&theirs)
		histogram := r.flows.histogram(at)
		for k, n := range b.flows.histogram(i) {
			histogram[k] = plus(histogram[k], n)
		}
	}
	return nil
}
