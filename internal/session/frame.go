// Package session frames what one point tells another about its intervals: markers in the stream of packets
// that say where an interval begins and ends, and the parts of an encoded synopsis, of which it knows nothing.
//
// A point that has a key tags its control packets and accepts only those with the right tag.
package session

import (
	"errors"
	"fmt"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/wire"
)

// Control packets are records of package wire with the body, big-endian:
//
//	kind          1 byte
//	flags         1: tagged 1, clock was set 2
//	fingerprint   8, of the seed that both points hash with
//	session       8
//	interval      8
//	part, parts   2, 2; zero but for parts of a synopsis
//	payload       bytes of the synopsis; markers have none
//	tag           8, if tagged: SipHash-2-4 of all before it
const (
	magic   = "HOPC"
	version = 3
	head    = 1 + 1 + 8 + 8 + 8 + 2 + 2

	// FrameSize is the number of bytes in a frame besides its payload and tag.
	FrameSize = wire.Overhead + head
	// TagSize is the number of bytes in a tag.
	TagSize = 8
)

// A Kind says what a frame is.
type Kind uint8

// The kinds of frames.
const (
	Start Kind = iota + 1
	End
	Part
)

const (
	flagTagged = 1 << iota
	flagSet
)

// ErrForged says that a control packet lacks the tag of the key.
var ErrForged = errors.New("tag missing or wrong")

// A Frame is a control packet.
type Frame struct {
	Kind                           Kind
	ClockSet                       bool // for an End: the sender's clock was set in the interval
	Fingerprint, Session, Interval uint64
	Part, Parts                    uint16
	Payload                        []byte
}

// A Key tags frames. The zero Key adds no tags.
type Key struct {
	hash hashing.SipHash
	set  bool
}

// NewKey returns a Key of 128 secret bits.
func NewKey(key [16]byte) Key { return Key{hashing.SipHashFromKey(key), true} }

// Size returns the number of bytes in the tag of a frame, 0 without a key.
func (k *Key) Size() int {
	if k.set {
		return TagSize
	}
	return 0
}

// Append appends the frame, with a tag if there is a key.
func (f *Frame) Append(dst []byte, key *Key) []byte {
	start := len(dst)
	dst = wire.Begin(dst, magic, version)
	flags := byte(0)
	if key.set {
		flags |= flagTagged
	}
	if f.ClockSet {
		flags |= flagSet
	}
	dst = append(dst, byte(f.Kind), flags)
	for _, v := range [...]uint64{f.Fingerprint, f.Session, f.Interval} {
		dst = wire.AppendUint(dst, v, 8)
	}
	dst = wire.AppendUint(dst, uint64(f.Part), 2)
	dst = wire.AppendUint(dst, uint64(f.Parts), 2)
	dst = append(dst, f.Payload...)
	if key.set {
		dst = wire.AppendUint(dst, key.hash.Bytes(dst[start:]), TagSize)
	}
	return wire.Seal(dst, start)
}

// Parse reads a frame. Its payload aliases data. The error wraps [estimate.ErrEncoding], [ErrForged] if its tag
// is not the key's, or [estimate.ErrMismatch] if it has a tag and there is no key.
func (f *Frame) Parse(data []byte, key *Key) error {
	r, err := wire.Open(data, magic, version)
	if err != nil {
		return err
	}
	g := Frame{Kind: Kind(r.Uint8())}
	flags := r.Uint8()
	g.Fingerprint, g.Session, g.Interval = r.Uint64(), r.Uint64(), r.Uint64()
	g.Part, g.Parts = r.Uint16(), r.Uint16()
	tagged, tag := flags&flagTagged != 0, uint64(0)
	if tagged {
		g.Payload, tag = r.Bytes(r.Len()-TagSize), r.Uint64()
	} else {
		g.Payload = r.Bytes(r.Len())
	}
	if err := r.Close(); err != nil {
		return err
	}
	switch {
	case tagged && !key.set:
		return fmt.Errorf("%w: it carries a tag, and there is no key here", estimate.ErrMismatch)
	case key.set && (!tagged || tag != key.hash.Bytes(data[:len(data)-4-TagSize])):
		return ErrForged
	}
	g.ClockSet = flags&flagSet != 0
	if !g.valid() || flags&^(flagTagged|flagSet) != 0 {
		return fmt.Errorf("%w: kind %d, flags %d, interval %d, part %d of %d, %d bytes of payload",
			estimate.ErrEncoding, g.Kind, flags, g.Interval, g.Part, g.Parts, len(g.Payload))
	}
	*f = g
	return nil
}

// valid reports whether the fields fit each other. The last possible interval has no next one.
func (f *Frame) valid() bool {
	if f.Kind == Part {
		return f.Part < f.Parts && len(f.Payload) > 0 && !f.ClockSet && f.Interval < 1<<64-1
	}
	return (f.Kind == Start && !f.ClockSet || f.Kind == End) && f.Part|f.Parts == 0 && len(f.Payload) == 0 && f.Interval < 1<<64-1
}
