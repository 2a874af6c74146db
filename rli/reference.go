package rli

import (
	"encoding"
	"fmt"
	"math"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/internal/wire"
)

// A ReferencePacket is what a reference packet tells the receiver, which believes
// it: its encoding has a checksum, not a signature.
type ReferencePacket struct {
	// Sequence numbers the references of one injector from 0, so that lost,
	// duplicated and reordered ones are noticed.
	Sequence uint64

	// Sent is when it was sent, by the sender's clock, in nanoseconds.
	Sent int64

	// Behind is the size of the packet that was sent at that same instant
	// directly before it, or 0 where there was none or it is too large for
	// the field. With it a reference tells the exact delay of that packet.
	// (A reference that goes out when a packet does always waits for it, so
	// its own delay is not what packets meet.)
	Behind uint16
}

// The encoding, big-endian, between the head and the CRC-32C of package wire:
//
//	sequence 8 · sent 8 · behind 2
const (
	referenceMagic   = "HREF"
	referenceVersion = 1

	// ReferenceSize is how many bytes the encoding of a ReferencePacket takes.
	ReferenceSize = wire.Overhead + 18
)

var (
	_ encoding.BinaryMarshaler   = (*ReferencePacket)(nil)
	_ encoding.BinaryAppender    = (*ReferencePacket)(nil)
	_ encoding.BinaryUnmarshaler = (*ReferencePacket)(nil)
)

// AppendBinary appends the encoding, ReferenceSize bytes, to dst. The error is
// always nil.
func (p *ReferencePacket) AppendBinary(dst []byte) ([]byte, error) {
	start := len(dst)
	dst = wire.Begin(dst, referenceMagic, referenceVersion)
	dst = wire.AppendUint(dst, p.Sequence, 8)
	dst = wire.AppendUint(dst, uint64(p.Sent), 8)
	dst = wire.AppendUint(dst, uint64(p.Behind), 2)
	return wire.Seal(dst, start), nil
}

// MarshalBinary returns the encoding. The error is always nil.
func (p *ReferencePacket) MarshalBinary() ([]byte, error) {
	return p.AppendBinary(make([]byte, 0, ReferenceSize))
}

// UnmarshalBinary replaces p by the encoded packet. The error wraps
// [estimate.ErrEncoding], and p is then unchanged.
func (p *ReferencePacket) UnmarshalBinary(data []byte) error {
	if len(data) != ReferenceSize {
		return fmt.Errorf("rli: %w: %d bytes, want %d for a reference", estimate.ErrEncoding, len(data), ReferenceSize)
	}
	r, err := wire.Open(data, referenceMagic, referenceVersion)
	if err != nil {
		return fmt.Errorf("rli: %w", err)
	}
	q := ReferencePacket{Sequence: r.Uint64(), Sent: int64(r.Uint64()), Behind: r.Uint16()}
	if err := r.Close(); err != nil {
		return fmt.Errorf("rli: %w", err)
	}
	*p = q
	return nil
}

// behind is the Behind field for a packet of the given size.
func behind(bytes int) uint16 {
	if bytes < 0 || bytes > math.MaxUint16 {
		return 0
	}
	return uint16(bytes)
}
