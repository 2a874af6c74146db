package hashing

import (
	"encoding/binary"
	"math/bits"
)

// SipHash is SipHash-2-4, a keyed pseudorandom function (Aumasson and Bernstein, SipHash: a fast short-input
// PRF, 2012). Without its key of 128 bits nobody can aim packets at one cell or evade sampling, even with the
// hashes of chosen inputs at hand. Use it wherever someone else chooses the packets and gains by misleading the
// measurement.
//
// A SipHash is a value, and safe for concurrent use. Printing it does not reveal the key. To compare keys,
// compare Fingerprints.
type SipHash struct {
	// Printers show a pointer within a value as an address, but package fmt follows one if the verb is wrong.
	key **[2]uint64
}

var zeroKey [2]uint64

// SipHashFromKey returns SipHash-2-4 with a key as its authors write it.
func SipHashFromKey(key [16]byte) SipHash {
	words := &[2]uint64{binary.LittleEndian.Uint64(key[:8]), binary.LittleEndian.Uint64(key[8:])}
	return SipHash{&words}
}

// Bytes returns the hash of b.
func (s SipHash) Bytes(b []byte) uint64 {
	// The key, and the constants that spell "somepseudorandomlygeneratedbytes".
	key := s.words()
	v0, v1 := key[0]^0x736f6d6570736575, key[1]^0x646f72616e646f6d
	v2, v3 := key[0]^0x6c7967656e657261, key[1]^0x7465646279746573
	last := uint64(len(b)) << 56
	for ; len(b) >= 8; b = b[8:] {
		m := binary.LittleEndian.Uint64(b)
		v3 ^= m
		v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
		v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
		v0 ^= m
	}
	for i, c := range b {
		last |= uint64(c) << (8 * i)
	}
	v3 ^= last
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0 ^= last
	v2 ^= 0xff
	for range 4 {
		v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	}
	return v0 ^ v1 ^ v2 ^ v3
}

// Word returns the hash of x's eight bytes, little-endian.
func (s SipHash) Word(x uint64) uint64 {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], x)
	return s.Bytes(b[:])
}

// Packet returns the hash of b as a packet's identity.
func (s SipHash) Packet(b []byte) Packet { return Packet(s.Bytes(b)) }

// Flow returns the hash of t as a flow's identity.
func (s SipHash) Flow(t *Tuple) Flow {
	var buf [37]byte
	return Flow(s.Bytes(t.Append(buf[:0])))
}

// words returns the key, which is 0 for the zero SipHash.
func (s SipHash) words() *[2]uint64 {
	if s.key == nil {
		return &zeroKey
	}
	return *s.key
}

// sipRound is inlined, so that the four words stay in registers.
func sipRound(v0, v1, v2, v3 uint64) (uint64, uint64, uint64, uint64) {
	v0 += v1
	v1 = bits.RotateLeft64(v1, 13) ^ v0
	v0 = bits.RotateLeft64(v0, 32)
	v2 += v3
	v3 = bits.RotateLeft64(v3, 16) ^ v2
	v0 += v3
	v3 = bits.RotateLeft64(v3, 21) ^ v0
	v2 += v1
	v1 = bits.RotateLeft64(v1, 17) ^ v2
	v2 = bits.RotateLeft64(v2, 32)
	return v0, v1, v2, v3
}
