package colate

import (
	"fmt"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// Absent is how many flows that never were a [Subvector] reads beside its own.
// What an estimator says about them is noise and nothing else, so they
// calibrate it: see [Result.Interval].
const Absent = 199

// A Subvector is what the epochs of one point say about one flow (§3.1, S): its
// counters, and those of some absent flows, added up over epochs. It is all
// that a query keeps of them. It is made by NewSubvector, never grows, and is
// used again for the next flow after Reset.
//
// Single writer, no locks.
type Subvector struct {
	config Config
	flow   hashing.Flow
	at     []uint32 // for each flow, its own first: positions of its counters
	sums   []uint64 // for each vector, each flow: sums of its counters, modulo 2^64
	counts []uint64 // the same for packets; nil without CountBits

	vectors [MaxVectors]Vector
	epochs  int
}

// NewSubvector returns an empty Subvector for flow 0 at points of Config c.
// The error wraps [estimate.ErrConfig].
func NewSubvector(c Config) (*Subvector, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	flows := (1 + Absent) * c.PerFlow
	v := &Subvector{
		config: c,
		at:     make([]uint32, flows),
		sums:   make([]uint64, c.Vectors*flows),
	}
	if c.CountBits > 0 {
		v.counts = make([]uint64, c.Vectors*flows)
	}
	v.Reset(0)
	return v, nil
}

// Reset empties the subvector and makes it that of flow f.
func (s *Subvector) Reset(f hashing.Flow) {
	clear(s.sums)
	clear(s.counts)
	s.flow, s.epochs, s.vectors = f, 0, [MaxVectors]Vector{}
	c := &s.config
	for i := range 1 + Absent {
		flow := f
		if i > 0 {
			flow = hashing.Flow(hashing.Mix(uint64(f), uint64(i)))
		}
		own := s.at[i*c.PerFlow:][:c.PerFlow]
		for j := range own {
			own[j] = uint32(position(c.Identity, flow, uint64(j), uint64(c.Counters)))
		}
	}
}

// Config returns the configuration of the epochs that can be added.
func (s *Subvector) Config() Config { return s.config }

// Flow returns the flow.
func (s *Subvector) Flow() hashing.Flow { return s.flow }

// Epochs is how many epochs were added.
func (s *Subvector) Epochs() int { return s.epochs }

// Add adds an epoch, which should overlap the flow's lifetime. It returns
// [estimate.ErrMismatch] for one of another Config.
func (s *Subvector) Add(e *Epoch) error {
	if e.config != s.config {
		return fmt.Errorf("colate: %w: epoch of %+v, subvector of %+v", estimate.ErrMismatch, e.config, s.config)
	}
	s.add(e, &e.vectors)
	return nil
}

// cells is an epoch's counters, packed or not.
type cells interface{ cell(at int) uint64 }

func (s *Subvector) add(cells cells, vectors *[MaxVectors]Vector) {
	c := &s.config
	mask, shift := c.sumMask(), c.sumBits()
	for k := range c.Vectors {
		s.vectors[k].add(vectors[k])
		for i, at := range s.at {
			cell := cells.cell(c.cellIndex(k, int(at)))
			s.sums[k*len(s.at)+i] += cell & mask
			if s.counts != nil {
				s.counts[k*len(s.at)+i] += cell >> shift
			}
		}
	}
	s.epochs++
}
