package rli

import (
	"crypto/subtle"
	"fmt"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/session"
	"github.com/hoplag/hoplag/internal/wire"
)

// A ReferencePacket is what a reference carries to the receiver. If strangers can send to that: see [Injector.SetKey].
type ReferencePacket struct {
	Sequence uint64 // numbers the references of one injector from 0
	Sent     int64  // when it was sent, by the sender's clock, in nanoseconds
	// Behind is the size of the packet sent directly before it, whose delay it reveals (its own includes the
	// wait for that packet), or 0 if there was none. After is how many ns later it was sent.
	Behind   uint16
	After    uint32
	Packets  uint32 // that its injector has seen, modulo 2^32, or 0 if unknown
	Injector uint32 // InjectorConfig.Injector of its sender
}

// The encoding, big-endian, between the head and the CRC-32C of package wire:
//
//	sequence 8 · sent 8 · behind 2 · after 4 · packets 4 · injector 4
const (
	referenceMagic   = "HREF"
	referenceVersion = 4

	// ReferenceSize is the number of bytes in the encoding of a ReferencePacket. A tag takes another 8.
	ReferenceSize = wire.Overhead + 30

	tagSize = 8 // of SipHash, if the injector has a key
)

func (p *ReferencePacket) append(dst []byte) []byte {
	start := len(dst)
	dst = wire.Begin(dst, referenceMagic, referenceVersion)
	dst = wire.AppendUint(wire.AppendUint(dst, p.Sequence, 8), uint64(p.Sent), 8)
	dst = wire.AppendUint(wire.AppendUint(dst, uint64(p.Behind), 2), uint64(p.After), 4)
	dst = wire.AppendUint(wire.AppendUint(dst, uint64(p.Packets), 4), uint64(p.Injector), 4)
	return wire.Seal(dst, start)
}

func (p *ReferencePacket) decode(data []byte) error {
	r, err := wire.Open(data, referenceMagic, referenceVersion)
	if err == nil {
		err = r.Expect(ReferenceSize - wire.Overhead)
	}
	if err != nil {
		return err
	}
	*p = ReferencePacket{r.Uint64(), int64(r.Uint64()), r.Uint16(), r.Uint32(), r.Uint32(), r.Uint32()}
	return nil
}

// ErrForged means that a reference lacks the tag of the receiver's key.
var ErrForged = session.ErrForged

// A key tags references.
type key struct {
	hash hashing.SipHash
	set  bool
}

func (k *key) open(data []byte) (p ReferencePacket, err error) {
	if !k.set {
		return p, p.decode(data)
	}
	if len(data) != ReferenceSize+tagSize {
		return p, fmt.Errorf("%w: %d bytes, want %d for a tagged reference", estimate.ErrEncoding, len(data), ReferenceSize+tagSize)
	}
	plain, tag := data[:ReferenceSize], data[ReferenceSize:]
	if subtle.ConstantTimeCompare(wire.AppendUint(make([]byte, 0, tagSize), k.hash.Bytes(plain), tagSize), tag) != 1 {
		return p, ErrForged
	}
	return p, p.decode(plain)
}

// SetKey makes Accept take only references that an Injector with the same secret key has tagged: nobody else can forge or
// replay one. One whose clock was set back is believed again once it is past its earlier time, or after another SetKey.
func (r *Receiver) SetKey(secret [16]byte) {
	r.key, r.order = key{hashing.SipHashFromKey(secret), true}, order{}
	r.forget()
}

// Accept records the payload of a reference packet whose last bit departed at time received, in nanoseconds:
// see [Receiver.Reference]. The error wraps [ErrForged] if the tag does not match the key, or
// [estimate.ErrEncoding]; the packet then counts only as a departure, and in Counts.Refused.
func (r *Receiver) Accept(data []byte, received int64) error {
	made(r.tracker != nil, "Receiver")
	p, err := r.key.open(data)
	if err != nil {
		r.counts.Refused++
		r.depart(int32(r.config.ReferenceBytes), received)
		return fmt.Errorf("rli: %w", err)
	}
	r.Reference(p, received)
	return nil
}
