// Package wire holds what all encodings of hoplag have in common. A record is
//
//	magic (4 bytes) · version (1 byte) · body · CRC-32C of all before (4 bytes)
//
// with big-endian fields of fixed width. Writers use Begin, the Append functions of encoding/binary, AppendUint
// and Seal. Readers use Open, which checks magic, version and checksum before anything looks at the body, and a
// [Reader], which remembers its first error so that a decoder checks once.
package wire

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/hoplag/hoplag/estimate"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const (
	headSize = 5 // magic and version
	crcSize  = 4
)

// Overhead is the number of bytes in a record besides its body.
const Overhead = headSize + crcSize

// Begin appends the head of a record. magic has four bytes: H for hoplag, and three capital letters for the
// kind of record.
func Begin(dst []byte, magic string, version uint8) []byte {
	return append(append(dst, magic...), version)
}

// Seal appends the checksum of dst[start:], where start is the length that dst had before Begin.
func Seal(dst []byte, start int) []byte {
	return binary.BigEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

// AppendUint appends the low 8·width bits of v, big-endian; width is 1 to 8.
func AppendUint(dst []byte, v uint64, width int) []byte {
	for shift := 8 * (width - 1); shift >= 0; shift -= 8 {
		dst = append(dst, byte(v>>shift))
	}
	return dst
}

// BytesOf returns the number of bytes that hold a field of the given number of bits.
func BytesOf(bits uint8) int { return (int(bits) + 7) / 8 }

// AppendBits appends the low bits of v, up to 64 of them, in as few bytes as hold them.
func AppendBits(dst []byte, v uint64, bits uint8) []byte {
	return AppendUint(dst, v&(1<<bits-1), BytesOf(bits))
}

// Open checks a whole record's magic, version and checksum and returns a Reader of its body. The error wraps
// [estimate.ErrEncoding].
func Open(data []byte, magic string, version uint8) (Reader, error) {
	switch {
	case len(data) < Overhead:
		return Reader{}, fmt.Errorf("%w: %d bytes, too short for a %q record of at least %d", estimate.ErrEncoding, len(data), magic, Overhead)
	case string(data[:4]) != magic:
		return Reader{}, fmt.Errorf("%w: magic %q, want %q", estimate.ErrEncoding, data[:4], magic)
	case data[4] != version:
		return Reader{}, fmt.Errorf("%w: %q record of version %d, this release reads version %d", estimate.ErrEncoding, magic, data[4], version)
	}
	body := data[:len(data)-crcSize]
	if got, want := crc32.Checksum(body, castagnoli), binary.BigEndian.Uint32(data[len(body):]); got != want {
		return Reader{}, fmt.Errorf("%w: checksum %08x, the %q record says %08x", estimate.ErrEncoding, got, magic, want)
	}
	return Reader{b: body[headSize:]}, nil
}

// A Reader reads the fields of a record's body in order. After a read past the end it returns zeros, and Close
// reports the error.
type Reader struct {
	b      []byte
	short  bool
	excess bool // of a field of Bits
}

// NewReader returns a Reader of data that is no record.
func NewReader(data []byte) Reader { return Reader{b: data} }

// Len returns the number of bytes left to read. Decoders compare it with the size that a Config promises before
// they allocate.
func (r *Reader) Len() int { return len(r.b) }

// Bytes returns the next n bytes, without copying, or nil.
func (r *Reader) Bytes(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.short, r.b = true, nil
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

// Uint reads a big-endian number of width bytes, 1 to 8.
func (r *Reader) Uint(width int) uint64 {
	if len(r.b) >= 8 {
		v := binary.BigEndian.Uint64(r.b) >> (64 - 8*width)
		r.b = r.b[width:]
		return v
	}
	var v uint64
	for _, b := range r.Bytes(width) {
		v = v<<8 | uint64(b)
	}
	return v
}

// Bits reads a field that AppendBits appended. Excess bits are an error, which Close reports: equal states have
// equal bytes.
func (r *Reader) Bits(bits uint8) uint64 {
	v := r.Uint(BytesOf(bits))
	r.excess = r.excess || v>>bits != 0
	return v
}

// Expect returns an error unless exactly the given number of bytes is left to read. Decoders call it with what
// a Config promises, before they allocate anything for it.
func (r *Reader) Expect(bytes int64) error {
	if int64(len(r.b)) != bytes || r.short {
		return fmt.Errorf("%w: %d bytes, want %d", estimate.ErrEncoding, len(r.b), bytes)
	}
	return nil
}

// Uint8 reads one byte.
func (r *Reader) Uint8() uint8 { return uint8(r.Uint(1)) }

// Uint16 reads two bytes.
func (r *Reader) Uint16() uint16 { return uint16(r.Uint(2)) }

// Uint32 reads four bytes.
func (r *Reader) Uint32() uint32 { return uint32(r.Uint(4)) }

// Size reads four bytes as a number of things. A number too large for a 32-bit int becomes the largest int32,
// so that it is equally out of range on every machine.
func (r *Reader) Size() int { return int(min(r.Uint32(), math.MaxInt32)) }

// Uint64 reads eight bytes.
func (r *Reader) Uint64() uint64 { return r.Uint(8) }

// Uvarint reads a number as package encoding/binary appends it.
func (r *Reader) Uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		n = -1
	}
	r.Bytes(n)
	return v
}

// Close reports a body that ended early, has bytes left over, or has excess bits in a field.
func (r *Reader) Close() error {
	switch {
	case r.short:
		return fmt.Errorf("%w: the record ends early", estimate.ErrEncoding)
	case len(r.b) > 0:
		return fmt.Errorf("%w: %d bytes too many", estimate.ErrEncoding, len(r.b))
	case r.excess:
		return fmt.Errorf("%w: a field is wider than its bits", estimate.ErrEncoding)
	}
	return nil
}
