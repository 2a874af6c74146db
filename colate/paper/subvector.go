package paper

import (
	"fmt"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// A Subvector is what the epochs of one point say about one flow (§3.1, S):
// its counters, added up. Make one with NewSubvector, and use it again for the
// next flow after Reset.
//
// It has a single writer and no locks.
type Subvector struct {
	config  Config
	flow    hashing.Flow
	at      []uint32 // positions of its counters
	sums    []uint64 // for each vector, one for each counter
	vectors [MaxVectors]Vector
	epochs  int
}

// NewSubvector returns an empty Subvector for flow 0 at points of Config c.
// The error wraps [estimate.ErrConfig].
func NewSubvector(c Config) (*Subvector, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	s := &Subvector{config: c, at: make([]uint32, c.PerFlow), sums: make([]uint64, c.Vectors*c.PerFlow)}
	s.Reset(0)
	return s, nil
}

// Reset empties the subvector and assigns it to flow f.
func (s *Subvector) Reset(f hashing.Flow) {
	clear(s.sums)
	s.flow, s.epochs, s.vectors = f, 0, [MaxVectors]Vector{}
	for j := range s.at {
		s.at[j] = uint32(position(s.config.Identity, f, uint64(j), uint64(s.config.Counters)))
	}
}

// Add adds an epoch, which should overlap the flow's lifetime. It returns
// [estimate.ErrMismatch] if the epoch has another Config.
func (s *Subvector) Add(e *Epoch) error {
	if e.config != s.config {
		return fmt.Errorf("paper: %w: epoch of %+v, subvector of %+v", estimate.ErrMismatch, e.config, s.config)
	}
	for k := range s.config.Vectors {
		s.vectors[k].add(e.vectors[k])
		for j, at := range s.at {
			s.sums[k*len(s.at)+j] += e.Counter(k, int(at))
		}
	}
	s.epochs++
	return nil
}

// own returns the sums of the flow's counters in vector k.
func (s *Subvector) own(k int) []uint64 {
	return s.sums[k*len(s.at):][:s.config.PerFlow]
}

// MostSampled returns the vector that the paper's rule chooses (§1.4): of
// those with equal packet counts at both points, the one that samples most, or
// -1 if there is none. A vector that lost as many packets as others brought in
// deceives the rule.
func MostSampled(up, down *Subvector) int {
	for k := range min(up.config.Vectors, down.config.Vectors) {
		if n := up.vectors[k].Packets; n > 0 && n == down.vectors[k].Packets {
			return k
		}
	}
	return -1
}

// Config returns the configuration that epochs must have to be added.
func (s *Subvector) Config() Config { return s.config }

// Positions returns where the flow's counters are in each vector, H(f, j).
func (s *Subvector) Positions() []uint32 { return s.at }
