package hashing

import (
	"encoding/binary"
	"math/bits"
)

// SipHash is SipHash-2-4, a keyed pseudorandom function (Aumasson and
// Bernstein, SipHash: a fast short-input PRF, 2012).
//
//   - Guarantee: computational, 64 bits. Without the key an attacker, even one
//     who sees hashes of inputs of his choice, cannot tell it from a random
//     function, and so can neither aim packets at one cell nor evade sampling.
//   - Key: 128 bits.
//   - Gates: four 64-bit additions, four exclusive ors and six rotations a round,
//     two rounds per eight bytes and four at the end; programmable switches
//     have run reduced forms of it over several passes.
//   - Choose it wherever someone else chooses the packets and gains by
//     misleading the measurement. It takes several times as long as [Digest].
//
// A SipHash is a value, and safe for concurrent use. No printer shows its key,
// wherever it is a part of what is printed. To compare keys, compare
// Fingerprints.
type SipHash struct {
	// Printers show a pointer within a value as an address, but package fmt
	// follows one if the verb is wrong.
	key **[2]uint64
}

var zeroKey [2]uint64

// NewSipHash returns SipHash-2-4 keyed from seed by its first two key words.
// What is derived from 64 bits can be guessed in 2^64 trials, and a seed that
// is not secret protects nothing; see [SipHashFromKey].
func NewSipHash(seed uint64) SipHash {
	const family = 6 // package families has the others
	k := newKeys(seed, family)
	return sipHash(k.next(), k.next())
}

// SipHashFromKey returns SipHash-2-4 with a key as its authors write it.
func SipHashFromKey(key [16]byte) SipHash {
	return sipHash(binary.LittleEndian.Uint64(key[:8]), binary.LittleEndian.Uint64(key[8:]))
}

func sipHash(k0, k1 uint64) SipHash {
	key := &[2]uint64{k0, k1}
	return SipHash{&key}
}

// Bytes returns the hash of b.
func (s SipHash) Bytes(b []byte) uint64 {
	v0, v1, v2, v3 := s.start()
	last := uint64(len(b)) << 56
	for len(b) >= 8 {
		word := binary.LittleEndian.Uint64(b)
		v3 ^= word
		v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
		v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
		v0 ^= word
		b = b[8:]
	}
	for i, c := range b {
		last |= uint64(c) << (8 * i)
	}
	return sipFinish(v0, v1, v2, v3, last)
}

// Word returns the hash of x's eight bytes, little-endian.
func (s SipHash) Word(x uint64) uint64 {
	v0, v1, v2, v3 := s.start()
	v3 ^= x
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0 ^= x
	return sipFinish(v0, v1, v2, v3, 8<<56)
}

// Packet returns the hash of b as a packet's identity.
func (s SipHash) Packet(b []byte) Packet { return Packet(s.Bytes(b)) }

// Flow returns the hash of t as a flow's identity.
func (s SipHash) Flow(t *Tuple) Flow {
	var buf [TupleSize]byte
	return Flow(s.Bytes(t.Append(buf[:0])))
}

// words returns the key, which is 0 for the zero SipHash.
func (s SipHash) words() *[2]uint64 {
	if s.key == nil {
		return &zeroKey
	}
	return *s.key
}

// start returns the state before the first word: the key, and the constants
// that spell "somepseudorandomlygeneratedbytes".
func (s SipHash) start() (v0, v1, v2, v3 uint64) {
	key := s.words()
	return key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d,
		key[0] ^ 0x6c7967656e657261, key[1] ^ 0x7465646279746573
}

// sipFinish takes in the last word and returns the hash after four rounds.
func sipFinish(v0, v1, v2, v3, last uint64) uint64 {
	v3 ^= last
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0 ^= last
	v2 ^= 0xff
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	return v0 ^ v1 ^ v2 ^ v3
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

// keys is a SplitMix64 generator, from which the families of hashes draw their
// keys, as package families does.
type keys uint64

func newKeys(seed, family uint64) keys {
	if seed == key1 { // Mix would turn it into 0, for every family
		return keys(family)
	}
	return keys(Mix(seed, family))
}

func (k *keys) next() uint64 {
	*k += 0x9e3779b97f4a7c15
	z := uint64(*k)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
