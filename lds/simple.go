package lds

import (
	"encoding"
	"encoding/binary"
	"fmt"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/wire"
)

// A SimpleConfig holds every size of a [Simple] sketch and the identity of its
// flow digests.
type SimpleConfig struct {
	Identity uint64 // identifies what flows are hashed with; see Config
	Rows     int    // 1 to MaxRows (R)
	Columns  int    // cells in each row, 1 to maxColumns (C)
	SumBits  uint8  // width of a delay sum on the wire, 1 to 64; see Config
}

// DefaultSimpleConfig has the rows and columns of [DefaultConfig]: 4 rows of
// 17,500 cells, of 10 bytes each.
var DefaultSimpleConfig = SimpleConfig{Rows: 4, Columns: 17500, SumBits: 48}

// Validate reports what is out of range. The error wraps [estimate.ErrConfig].
func (c *SimpleConfig) Validate() error {
	full := DefaultConfig
	full.Rows, full.Columns, full.SumBits = c.Rows, c.Columns, c.SumBits
	full.Rates = fitRates(full.Rates, min(max(c.Rows, 1), MaxRows))
	return full.Validate()
}

// EncodedSize returns the size of a sketch's encoding in bytes.
func (c *SimpleConfig) EncodedSize() int {
	return 5 + 8 + 1 + 4 + 1 + c.Rows*c.Columns*(wire.BytesOf(c.SumBits)+countBytes) + 4
}

// MemorySize returns the number of bytes that the cells of a sketch take in
// memory.
func (c *SimpleConfig) MemorySize() int { return 16 * c.Rows * c.Columns }

// Simple is the paper's SDS (section 2.2). It is for a receiver that knows
// each packet's delay because packets carry the time they were sent. It needs
// no second sketch, no spread and no digest: a lost packet has no delay and
// touches nothing.
//
// Make one with NewSimple; it never grows. It has a single writer and no
// locks: keep one sketch a goroutine and Merge them.
type Simple struct {
	cells  []cell // the rows one after the other
	config SimpleConfig
}

// NewSimple returns an empty sketch. The error wraps [estimate.ErrConfig].
func NewSimple(c SimpleConfig) (*Simple, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return &Simple{cells: make([]cell, c.Rows*c.Columns), config: c}, nil
}

// NewSimpleRotation returns two empty sketches in turn, for one interval after
// another. The error wraps [estimate.ErrConfig].
func NewSimpleRotation(c SimpleConfig) (*estimate.Rotation[*Simple], error) {
	return estimate.NewRotation(func() (*Simple, error) { return NewSimple(c) })
}

// Config returns the configuration that the sketch was made with.
func (s *Simple) Config() SimpleConfig { return s.config }

// Update records a packet of flow f that took delay nanoseconds (Fig. 2).
func (s *Simple) Update(f hashing.Flow, delay int64) {
	for r := range s.config.Rows {
		s.cells[s.at(r, f)].add(uint64(delay), 1)
	}
}

func (s *Simple) at(r int, f hashing.Flow) uint64 {
	columns := uint64(s.config.Columns)
	return uint64(r)*columns + home(r, f, columns)
}

// A SimpleResult is what a Simple says about one flow.
type SimpleResult struct {
	Mean float64 // nanoseconds
	N    uint64  // packets in the cell that gave it, including those of flows that share it
}

// Estimate returns the mean delay of flow f from the least loaded of its cells
// (Fig. 3), or [estimate.ErrNoSamples] if the flow had no packet.
func (s *Simple) Estimate(f hashing.Flow) (SimpleResult, error) {
	least := &s.cells[s.at(0, f)]
	for r := range s.config.Rows {
		if c := &s.cells[s.at(r, f)]; c.count() < least.count() {
			least = c
		}
	}
	if least.count() == 0 {
		return SimpleResult{}, errNoSamples
	}
	n := uint64(least.count())
	return SimpleResult{Mean: float64(estimate.SignExtend(least.sum, int(s.config.SumBits))) / float64(n), N: n}, nil
}

// Packets returns an upper bound of flow f's packets: the count of the least
// loaded of its cells.
func (s *Simple) Packets(f hashing.Flow) uint64 {
	least := s.cells[s.at(0, f)].count()
	for r := range s.config.Rows {
		least = min(least, s.cells[s.at(r, f)].count())
	}
	return uint64(least)
}

// Merge adds what b saw to s. The error wraps [estimate.ErrMismatch] if the
// Configs differ; s is then unchanged.
func (s *Simple) Merge(b *Simple) error {
	if s.config != b.config {
		return mismatch(s.config, b.config)
	}
	for i, c := range b.cells {
		s.cells[i].add(c.sum, c.tally)
	}
	return nil
}

// Reset empties the sketch for another interval.
func (s *Simple) Reset() { clear(s.cells) }

// The record of a Simple, big-endian:
//
//	magic "HSDS", version 2
//	identity 8 · rows 1 · columns 4 · sum bits 1
//	cells, row by row: sum, in as few bytes as hold its bits · count 4
//	CRC-32C 4
const (
	simpleMagic   = "HSDS"
	simpleVersion = 2
)

var (
	_ encoding.BinaryMarshaler   = (*Simple)(nil)
	_ encoding.BinaryAppender    = (*Simple)(nil)
	_ encoding.BinaryUnmarshaler = (*Simple)(nil)
)

// AppendBinary appends the sketch's encoding to b. The error is always nil.
func (s *Simple) AppendBinary(b []byte) ([]byte, error) {
	start := len(b)
	b = wire.Begin(b, simpleMagic, simpleVersion)
	b = binary.BigEndian.AppendUint64(b, s.config.Identity)
	b = append(b, uint8(s.config.Rows))
	b = binary.BigEndian.AppendUint32(b, uint32(s.config.Columns))
	b = append(b, s.config.SumBits)
	for i := range s.cells {
		b = wire.AppendBits(b, s.cells[i].sum, s.config.SumBits)
		b = wire.AppendUint(b, uint64(s.cells[i].count()), countBytes)
	}
	return wire.Seal(b, start), nil
}

// MarshalBinary returns the sketch's encoding. The error is always nil.
func (s *Simple) MarshalBinary() ([]byte, error) { return s.AppendBinary(nil) }

// UnmarshalBinary replaces the sketch, including its Config, with the decoded
// one. On error, which wraps [estimate.ErrEncoding], the sketch is unchanged.
func (s *Simple) UnmarshalBinary(data []byte) error {
	r, err := wire.Open(data, simpleMagic, simpleVersion)
	if err != nil {
		return fmt.Errorf("lds: %w", err)
	}
	c := SimpleConfig{Identity: r.Uint64(), Rows: int(r.Uint8()), Columns: r.Size(), SumBits: r.Uint8()}
	if err := c.Validate(); err != nil {
		return fmt.Errorf("%w: %w", err, estimate.ErrEncoding)
	}
	if err := r.Expect(int64(c.Rows) * int64(c.Columns) * int64(wire.BytesOf(c.SumBits)+countBytes)); err != nil {
		return fmt.Errorf("lds: cells: %w", err)
	}
	decoded := &Simple{cells: make([]cell, c.Rows*c.Columns), config: c}
	for i := range decoded.cells {
		sum := r.Bits(c.SumBits)
		decoded.cells[i] = cell{sum: uint64(estimate.SignExtend(sum, int(c.SumBits))), tally: r.Uint(countBytes)}
	}
	if err := r.Close(); err != nil {
		return fmt.Errorf("lds: %w", err)
	}
	*s = *decoded
	return nil
}
