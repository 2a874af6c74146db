package lda

import (
	"fmt"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// Classes are one point's aggregators for many classes of packets: pairs of
// ingress and egress, classes of service, prefixes, or whatever else the caller
// numbers from 0 (section V's classifier). Their cells lie in one array.
// Different goroutines may update different classes; nothing else is safe for
// concurrent use.
type Classes struct {
	aggregators []Aggregator
}

// NewClasses returns n empty aggregators of one Config. The error wraps
// [estimate.ErrConfig].
func NewClasses(c Config, n int) (*Classes, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	each := c.allCells()
	most := max(1<<30/16/each, 1) // 1 GiB of cells
	if n < 1 || n > most {
		return nil, fmt.Errorf("lda: %w: %d classes, want 1 to %d of %d bytes", estimate.ErrConfig, n, most, c.MemorySize())
	}
	cells := make([]cell, n*each)
	all := &Classes{aggregators: make([]Aggregator, n)}
	for i := range all.aggregators {
		a := &all.aggregators[i]
		a.cells = cells[i*each : (i+1)*each : (i+1)*each]
		a.configure(c)
	}
	return all, nil
}

// Len returns the number of classes.
func (all *Classes) Len() int { return len(all.aggregators) }

// Update records that packet p of a class passed at time t. It panics if
// there is no such class.
func (all *Classes) Update(class int, p hashing.Packet, t int64) {
	all.aggregators[class].Update(p, t)
}

// Class returns the aggregator of a class. Its cells are part of one array, so do
// not decode into it. Class panics if there is no such class.
func (all *Classes) Class(class int) *Aggregator { return &all.aggregators[class] }

// MergeInto adds classes to dst, which then has the delay of all their packets
// together. If the error wraps [estimate.ErrMismatch], dst is unchanged. It panics
// if there is no such class.
func (all *Classes) MergeInto(dst *Aggregator, classes ...int) error {
	for _, class := range classes {
		if err := dst.Merge(&all.aggregators[class]); err != nil {
			return err
		}
	}
	return nil
}

// Reset empties all classes.
func (all *Classes) Reset() {
	for i := range all.aggregators {
		all.aggregators[i].Reset()
	}
}
