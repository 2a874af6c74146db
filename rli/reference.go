package rli

import (
	"encoding"
	"fmt"
	"math"

	"github.com/hoplag/hoplag/internal/wire"
)

// A ReferencePacket is what a reference packet carries to the receiver. Its
// encoding has a checksum, not a signature: set a key if strangers can send to
// the receiver, see [Injector.SetKey].
type ReferencePacket struct {
	// Sequence numbers the references of one injector from 0, so that the
	// receiver notices lost, duplicated and reordered ones.
	Sequence uint64

	// Sent is when it was sent, by the sender's clock, in nanoseconds.
	Sent int64

	// Behind is the size of the packet sent directly before it, at the same
	// instant. It is 0 if there was none or the size does not fit. The
	// reference then reveals the exact delay of that packet. (A reference that
	// goes out with a packet always waits for it, so its own delay is not what
	// packets meet.)
	Behind uint16

	// Packets is the number of packets that its injector has seen, modulo
	// 2^32, or 0 if unknown. It lets a receiver notice packets that were lost,
	// or that took another way than the references: see Counts.Missing and
	// Counts.Overtaken.
	Packets uint32

	// Injector is the InjectorConfig.Injector of its sender. A receiver takes
	// only references with its own Config.Injector.
	Injector uint32
}

// The encoding, big-endian, between the head and the CRC-32C of package wire:
//
//	sequence 8 · sent 8 · behind 2 · packets 4 · injector 4
const (
	referenceMagic   = "HREF"
	referenceVersion = 3

	// ReferenceSize is the number of bytes in the encoding of a
	// ReferencePacket.
	ReferenceSize = wire.Overhead + 26
)

var (
	_ encoding.BinaryMarshaler   = (*ReferencePacket)(nil)
	_ encoding.BinaryAppender    = (*ReferencePacket)(nil)
	_ encoding.BinaryUnmarshaler = (*ReferencePacket)(nil)
)

// AppendBinary appends the encoding, ReferenceSize bytes, to dst. The error is
// always nil.
func (p *ReferencePacket) AppendBinary(dst []byte) ([]byte, error) { return p.append(dst), nil }

// MarshalBinary returns the encoding. The error is always nil.
func (p *ReferencePacket) MarshalBinary() ([]byte, error) {
	return p.append(make([]byte, 0, ReferenceSize)), nil
}

func (p *ReferencePacket) append(dst []byte) []byte {
	start := len(dst)
	dst = wire.Begin(dst, referenceMagic, referenceVersion)
	dst = wire.AppendUint(dst, p.Sequence, 8)
	dst = wire.AppendUint(dst, uint64(p.Sent), 8)
	dst = wire.AppendUint(dst, uint64(p.Behind), 2)
	dst = wire.AppendUint(dst, uint64(p.Packets), 4)
	dst = wire.AppendUint(dst, uint64(p.Injector), 4)
	return wire.Seal(dst, start)
}

// UnmarshalBinary replaces p with the decoded packet. The error wraps
// [estimate.ErrEncoding]; p is then unchanged.
func (p *ReferencePacket) UnmarshalBinary(data []byte) error {
	if err := p.decode(data); err != nil {
		return fmt.Errorf("rli: %w", err)
	}
	return nil
}

func (p *ReferencePacket) decode(data []byte) error {
	r, err := wire.Open(data, referenceMagic, referenceVersion)
	if err != nil {
		return err
	}
	if err := r.Expect(ReferenceSize - wire.Overhead); err != nil {
		return err
	}
	*p = ReferencePacket{Sequence: r.Uint64(), Sent: int64(r.Uint64()), Behind: r.Uint16(), Packets: r.Uint32(), Injector: r.Uint32()}
	return nil
}

// behind returns the Behind field for a packet of the given size.
func behind(bytes int) uint16 {
	if bytes < 0 || bytes > math.MaxUint16 {
		return 0
	}
	return uint16(bytes)
}
