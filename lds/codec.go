package lds

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/internal/wire"
)

// The record of a sketch, big-endian:
//
//	magic "HLDS", version 5
//	identity 8 · number of the interval 8 · its beginning 8 (ns, signed)
//	rows 1 · columns 4 · spread 1 · rates 8 each of rows (IEEE 754)
//	tolerance 8 (IEEE 754) · greatest delay 8 (ns) · sum bits 1 · digest bits 1
//	cells, row by row: sum · count 4 · digest
//	CRC-32C 4
//
// Sums and digests take as few bytes as hold their bits, with the upper bits zero.
const (
	magic      = "HLDS"
	version    = 5
	countBytes = 4
)

// AppendBinary appends the sketch's encoding to b. The error is always nil.
func (s *Sketch) AppendBinary(b []byte) ([]byte, error) {
	made(s.config.Rows > 0, "Sketch")
	c, start := &s.config, len(b)
	b = binary.BigEndian.AppendUint64(wire.Begin(b, magic, version), c.Identity)
	b = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, s.stamp.number), uint64(s.stamp.began))
	b = append(b, uint8(c.Rows))
	b = binary.BigEndian.AppendUint32(b, uint32(c.Columns))
	b = append(b, uint8(c.Spread))
	for _, rate := range c.Rates[:c.Rows] {
		b = binary.BigEndian.AppendUint64(b, math.Float64bits(rate))
	}
	b = binary.BigEndian.AppendUint64(b, math.Float64bits(c.Tolerance))
	b = binary.BigEndian.AppendUint64(b, uint64(c.GreatestDelay))
	b = append(b, c.SumBits, c.DigestBits)
	for i := range s.cells {
		b = s.cells[i].appendTo(b, c.SumBits, c.DigestBits)
	}
	return wire.Seal(b, start), nil
}

func (c *Config) encodedBytes() int { return 57 + 8*c.Rows + c.Rows*c.Columns*c.cellBytes() }

func (c *cell) appendTo(b []byte, sumBits, digestBits uint8) []byte {
	b = wire.AppendBits(b, c.sum, sumBits)
	b = wire.AppendUint(b, uint64(c.count()), countBytes)
	return wire.AppendBits(b, uint64(c.digest()), digestBits)
}

func readCell(r *wire.Reader, sumBits, digestBits uint8) cell {
	sum, count, digest := r.Bits(sumBits), r.Uint(countBytes), r.Bits(digestBits)
	return cell{sum: uint64(estimate.SignExtend(sum, int(sumBits))), tally: digest<<32 | count}
}

// MarshalBinary returns the sketch's encoding. The error is always nil.
func (s *Sketch) MarshalBinary() ([]byte, error) { return s.AppendBinary(nil) }

// UnmarshalBinary replaces the sketch and its Config with the decoded ones. On error, which wraps [estimate.ErrEncoding], it is unchanged.
func (s *Sketch) UnmarshalBinary(data []byte) error {
	r, err := wire.Open(data, magic, version)
	if err != nil {
		return fmt.Errorf("lds: %w", err)
	}
	identity, of := r.Uint64(), stamp{r.Uint64(), int64(r.Uint64())}
	c := Config{Identity: identity, Rows: int(r.Uint8()), Columns: r.Size(), Spread: int(r.Uint8())}
	for i := range min(c.Rows, MaxRows) {
		c.Rates[i] = math.Float64frombits(r.Uint64())
	}
	c.Tolerance, c.GreatestDelay = math.Float64frombits(r.Uint64()), int64(r.Uint64())
	c.SumBits, c.DigestBits = r.Uint8(), r.Uint8()
	if err := c.Validate(); err != nil {
		return fmt.Errorf("%w: %w", err, estimate.ErrEncoding)
	}
	if err := r.Expect(int64(c.Rows) * int64(c.Columns) * int64(c.cellBytes())); err != nil {
		return fmt.Errorf("lds: cells: %w", err)
	}
	decoded := newSketch(c)
	decoded.stamp = of
	for i := range decoded.cells {
		decoded.cells[i] = readCell(&r, c.SumBits, c.DigestBits)
	}
	if err := r.Close(); err != nil {
		return fmt.Errorf("lds: %w", err)
	}
	*s = *decoded
	return nil
}

// A stamp says which interval a sketch is of, if its point says so.
type stamp struct {
	number uint64
	began  int64
}

// SetInterval sets the interval's number, from 1, and when it began by the point's clock, in nanoseconds. Encodings carry both.
// Sketches of different numbers are not compared, except with 0, the number before. (lda's are in markers, colate has a Span.)
func (i *stamp) SetInterval(number uint64, began int64) { *i = stamp{number, began} }

// Interval returns the values passed to SetInterval, or 0 and 0.
func (i *stamp) Interval() (number uint64, began int64) { return i.number, i.began }

// join makes i the interval of both together: it begins with the earlier one.
func (i *stamp) join(j stamp) {
	if i.number == 0 || j.number != 0 && j.number < i.number {
		*i = j
	}
}

func (i stamp) match(j stamp) error {
	if i.number != 0 && j.number != 0 && i.number != j.number {
		return fmt.Errorf("lds: %w: intervals %d and %d", estimate.ErrMismatch, i.number, j.number)
	}
	return nil
}
