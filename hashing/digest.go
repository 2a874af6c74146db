package hashing

import (
	"encoding/binary"
	"math/bits"
)

// A Packet is a keyed digest of bytes of a packet that do not change in transit. Two points agree on it when
// they use the same seed and hash the same bytes; see [Frame] for which bytes those are.
type Packet uint64

// The keys are the first 64-bit fractions of the square roots of the primes 2, 3, 5, 7, 11 and 13 (the initial
// state of SHA-512): nothing up our sleeve, odd, and about half of the bits set.
const (
	key0 = 0x6a09e667f3bcc909
	key1 = 0xbb67ae8584caa73b
	key2 = 0x3c6ef372fe94f82b
	key3 = 0xa54ff53a5f1d36f1
	key4 = 0x510e527fade682d1
	key5 = 0x9b05688c2b3e6c1f
)

// mix folds the 128-bit product of its arguments. One folding spreads a difference over the word but leaves
// sequences of inputs recognisable, so everything that enters a digest passes through at least two.
func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// split makes two keys from a seed: one for each factor of a product. Their exclusive or is the low half of the
// seed's product with an odd constant, which differs for any two seeds but those below: a pair of inputs that
// exchanges the factors collides under one seed only.
//
// A product with few bits makes weak keys: of zeros under the seed key0, of ones under its complement, equal
// ones under seeds that differ from these in a few low or high bits. So the 2^33 seeds that have the middle 32
// bits of either have the keys of as many other seeds.
func split(seed, constant uint64) (x, y uint64) {
	seed ^= key0
	hi, lo := bits.Mul64(seed, constant)
	if uint32(seed>>16+1) <= 1 {
		hi, lo = bits.Mul64(seed^key4, constant)
	}
	return hi ^ lo, hi
}

// Digest returns the digest of b under seed, by folded 64×64→128-bit multiplications that each absorb 16 bytes.
// It is the fast default for traffic that nobody crafts against us. Someone who knows the seed can construct
// collisions at will; use [SipHash] against that.
//
// It is stable across processes, machines and releases: the golden values in the tests do not change.
func Digest(seed uint64, b []byte) Packet {
	le := binary.LittleEndian
	n := len(b)
	// The length enters with the seed, where no bytes can cancel it. Every factor of a product contains a key:
	// a factor of zero would swallow the other one, and nobody can aim at it without the seed.
	x, y := split(seed, key1+2*uint64(n))
	if n > 16 {
		// Two chains: a processor runs two multiplications at once. The last 16 bytes may overlap the blocks before.
		tail := (*[16]byte)(b[n-16:])
		s := x
		x = mix(le.Uint64(b[:8])^s, le.Uint64(b[8:16])^y)
		if n > 32 {
			// The rotation keeps equal blocks from making equal chains, which the product below could not tell apart.
			y = mix(le.Uint64(b[16:24])^s, le.Uint64(b[24:32])^bits.RotateLeft64(y, 32))
			if n > 48 { // the registers that the loop needs would delay shorter headers
				for rest := b; len(rest) > 48; rest = rest[16:] {
					x = mix(le.Uint64(rest[32:40])^s, le.Uint64(rest[40:48])^x)
				}
			}
		}
		return finish(le.Uint64(tail[:8])^x, le.Uint64(tail[8:])^y)
	}
	var first, last uint64
	switch {
	case n >= 8:
		first, last = le.Uint64(b), le.Uint64(b[n-8:])
	case n >= 4:
		first, last = uint64(le.Uint32(b)), uint64(le.Uint32(b[n-4:]))
	case n == 3:
		first = uint64(le.Uint16(b)) | uint64(b[2])<<16
	case n == 2:
		first = uint64(le.Uint16(b))
	case n == 1:
		first = uint64(b[0])
	}
	return short(first, last, x, y)
}

// short absorbs two words. The rotation keeps one word given twice out of a symmetric product, which would map two inputs to one.
func short(first, last, x, y uint64) Packet {
	return finish(first^x, bits.RotateLeft64(last^y, 32))
}

// finish folds the last two factors, and once more.
func finish(a, b uint64) Packet {
	return Packet(mix(mix(a, b), key2))
}

// Word returns the digest of one 64-bit word under seed, which is that of its eight little-endian bytes: for
// packets that carry an identity of that size, and to widen a shorter hash. It is inlined on 64-bit machines.
func Word(seed, x uint64) Packet {
	// This is split and short, in a form that the compiler can inline.
	if seed ^= key0; uint32(seed>>16+1) <= 1 {
		seed ^= key4
	}
	hi, lo := bits.Mul64(seed, key1+2*8)
	hi, lo = bits.Mul64(x^hi^lo, bits.RotateLeft64(x^hi, 32))
	hi, lo = bits.Mul64(hi^lo, key2)
	return Packet(hi ^ lo)
}
