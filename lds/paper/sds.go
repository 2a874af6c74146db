// Package paper has SDS, the simple sketch of the LDS paper, to check the paper's claims.
//
// Source: J. Sanjuàs-Cuxart, P. Barlet-Ros, N. Duffield and R. Kompella, Sketching the Delay: Tracking
// Temporally Uncorrelated Flow-Level Latencies, IMC 2011, section 2.2.
package paper

import (
	"fmt"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// SDS is the paper's simple sketch (section 2.2). It is for a receiver that knows each packet's delay because
// packets carry the time they were sent. It needs no second sketch, no spread and no digest: a lost packet has
// no delay and changes nothing. It is not safe for concurrent use, and the zero value panics.
type SDS struct {
	columns uint64
	cells   []sdsCell // row by row
}

type sdsCell struct{ sum, n int64 }

// NewSDS returns an empty sketch of 1 to 8 rows (R) of 1 to 2^22 columns (C). The error wraps [estimate.ErrConfig].
func NewSDS(rows, columns int) (*SDS, error) {
	if rows < 1 || rows > 8 || columns < 1 || columns > 1<<22 {
		return nil, fmt.Errorf("lds/paper: %w: %d rows of %d columns, want 1 to 8 of 1 to 2^22", estimate.ErrConfig, rows, columns)
	}
	return &SDS{uint64(columns), make([]sdsCell, rows*columns)}, nil
}

// Update records a packet of flow f that took delay nanoseconds (Fig. 2).
func (s *SDS) Update(f hashing.Flow, delay int64) {
	for row := range uint64(len(s.cells)) / s.columns {
		c := s.cell(row, f)
		c.sum += delay
		c.n++
	}
}

func (s *SDS) cell(row uint64, f hashing.Flow) *sdsCell {
	word := uint64(f) * (2*row*0xd1342543de82ef95 + 1)
	return &s.cells[row*s.columns+word>>32*s.columns>>32]
}

// Estimate returns the mean delay of flow f from the least loaded of its cells, and the packets in it (Fig. 3),
// or [estimate.ErrNoSamples] if the flow had no packet.
func (s *SDS) Estimate(f hashing.Flow) (mean float64, packets uint64, err error) {
	least := s.cell(0, f)
	for row := range uint64(len(s.cells)) / s.columns {
		if c := s.cell(row, f); c.n < least.n {
			least = c
		}
	}
	if least.n == 0 {
		return 0, 0, fmt.Errorf("lds/paper: %w", estimate.ErrNoSamples)
	}
	return float64(least.sum) / float64(least.n), uint64(least.n), nil
}
