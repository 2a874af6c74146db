package rli

import (
	"crypto/subtle"
	"fmt"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/wire"
)

// TaggedReferenceSize is the number of bytes in the encoding of a
// ReferencePacket by an Injector that has a key.
const TaggedReferenceSize = ReferenceSize + tagSize

const tagSize = 8

// A key tags references.
type key struct {
	hash hashing.SipHash
	set  bool
}

// SetKey tags every reference with SipHash under a secret key. The receiver
// needs the same key: see [Receiver.SetKey].
func (j *Injector) SetKey(secret [16]byte) { j.key = key{hashing.SipHashFromKey(secret), true} }

// Append appends the encoding of a reference to dst, with a tag if there is a
// key: ReferenceSize or TaggedReferenceSize bytes, as [Receiver.Accept] takes
// them.
func (j *Injector) Append(dst []byte, p ReferencePacket) []byte {
	start := len(dst)
	dst = p.append(dst)
	if j.key.set {
		dst = wire.AppendUint(dst, j.key.hash.Bytes(dst[start:]), tagSize)
	}
	return dst
}

// SetKey makes Accept take only references that an Injector with the same
// secret key has tagged. Without the key nobody can forge or replay a
// reference. If an injector's clock goes back, the receiver believes it again
// only after the clock has passed its earlier time, or after another SetKey.
func (r *Receiver) SetKey(secret [16]byte) {
	r.key = key{hashing.SipHashFromKey(secret), true}
	r.sequence, r.guard = sequence{}, guard{}
	r.stepped()
}

// Accept records the payload of a reference packet whose last bit departed at
// time received: see [Receiver.Reference]. The error wraps
// [estimate.ErrEncoding] if data does not encode a reference or its tag does
// not match the key. Such a packet only counts as a departure of a reference's
// size, and in Counts.Forged.
func (r *Receiver) Accept(data []byte, received int64) error {
	p, err := r.key.open(data)
	if err != nil {
		r.counts.Forged++
		if r.method == BusyAware {
			r.depart(r.config.ReferenceBytes, received, true)
		}
		return fmt.Errorf("rli: %w", err)
	}
	r.Reference(p, received)
	return nil
}

func (k *key) open(data []byte) (p ReferencePacket, err error) {
	if !k.set {
		return p, p.decode(data)
	}
	if len(data) != TaggedReferenceSize {
		return p, fmt.Errorf("%w: %d bytes, want %d for a tagged reference", estimate.ErrEncoding, len(data), TaggedReferenceSize)
	}
	plain, tag := data[:ReferenceSize], data[ReferenceSize:]
	if subtle.ConstantTimeCompare(wire.AppendUint(make([]byte, 0, tagSize), k.hash.Bytes(plain), tagSize), tag) != 1 {
		return p, fmt.Errorf("%w: the tag is of another key", estimate.ErrEncoding)
	}
	return p, p.decode(plain)
}
