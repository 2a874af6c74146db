package lds

import (
	"encoding/binary"
	"fmt"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/internal/wire"
)

// The sparse record of a sketch, big-endian:
//
//	magic "HLDC", version 3
//	identity, interval and Config, as in the full record
//	for each cell that is not empty: how many empty ones are before it, as a
//	    varint · count, as a varint · sum · digest · byte sum 6 (if bytes is 1)
//	CRC-32C 4
//
// Sums and digests take as few bytes as hold their bits, with the upper bits
// zero.
const (
	sparseMagic   = "HLDC"
	sparseVersion = 3
)

// AppendSparse appends an encoding to b that is small if few cells hold
// packets: some 11 bytes for each of these, where AppendBinary takes 12 for
// every cell. It is for points that compare often. The error is always nil.
func (s *Sketch) AppendSparse(b []byte) ([]byte, error) {
	c := &s.config
	start := len(b)
	b = s.appendHead(wire.Begin(b, sparseMagic, sparseVersion))
	skipped := uint64(0)
	for i, cell := range s.cells {
		if s.emptyAt(i) {
			skipped++
			continue
		}
		b = binary.AppendUvarint(b, skipped)
		b = binary.AppendUvarint(b, uint64(cell.count()))
		b = wire.AppendBits(b, cell.sum, c.SumBits)
		b = wire.AppendBits(b, uint64(cell.digest()), c.DigestBits)
		if c.Bytes {
			b = wire.AppendUint(b, s.bytes[i], byteBytes)
		}
		skipped = 0
	}
	return wire.Seal(b, start), nil
}

// emptyAt reports whether cell i has nothing to encode.
func (s *Sketch) emptyAt(i int) bool {
	c, cell := &s.config, &s.cells[i]
	return cell.count() == 0 && cell.sum<<(64-c.SumBits) == 0 && cell.digest()&(1<<c.DigestBits-1) == 0 && (s.bytes == nil || s.bytes[i] == 0)
}

// UnmarshalSparse replaces the contents of s with what AppendSparse encoded of
// a sketch of the same Config. It allocates nothing. The error wraps
// [estimate.ErrMismatch] if the Config differs, and [estimate.ErrEncoding]
// otherwise; s is then unchanged.
func (s *Sketch) UnmarshalSparse(data []byte) error {
	r, err := wire.Open(data, sparseMagic, sparseVersion)
	if err != nil {
		return fmt.Errorf("lds: %w", err)
	}
	c, of, err := readHead(&r)
	if err != nil {
		return err
	}
	if c != s.config {
		return mismatch(c, s.config)
	}
	// Read once to check, and again to keep.
	again := r
	if err := s.readSparse(&r, false); err != nil {
		return err
	}
	s.Reset()
	s.stamp = of
	return s.readSparse(&again, true)
}

// readSparse reads the cells, and stores them if keep is set.
func (s *Sketch) readSparse(r *wire.Reader, keep bool) error {
	c := &s.config
	at := uint64(0)
	for ; r.Len() > 0; at++ {
		skipped, first := uvarint(r)
		count, second := uvarint(r)
		if !first || !second || skipped >= uint64(len(s.cells))-at || count > 1<<32-1 {
			return fmt.Errorf("lds: %w: cell %d and %d further ones that are empty, with %d packets", estimate.ErrEncoding, at, skipped, count)
		}
		at += skipped
		sum, digest := r.Bits(c.SumBits), r.Bits(c.DigestBits)
		var bytes uint64
		if c.Bytes {
			bytes = r.Uint(byteBytes)
		}
		if count|sum|digest|bytes == 0 {
			return fmt.Errorf("lds: %w: cell %d is empty", estimate.ErrEncoding, at)
		}
		if keep {
			s.cells[at] = cell{sum: uint64(estimate.SignExtend(sum, int(c.SumBits))), tally: digest<<32 | count}
			if c.Bytes {
				s.bytes[at] = bytes
			}
		}
		if at+1 == uint64(len(s.cells)) {
			break
		}
	}
	if err := r.Close(); err != nil {
		return fmt.Errorf("lds: %w", err)
	}
	return nil
}

// uvarint reads a varint and requires the shortest form.
func uvarint(r *wire.Reader) (v uint64, ok bool) {
	for shift := 0; shift < 35 && r.Len() > 0; shift += 7 {
		b := r.Uint8()
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return v, b > 0 || shift == 0
		}
	}
	return 0, false
}
