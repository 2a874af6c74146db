// Package families has hashes that hardware computes, or that give a guarantee
// which a proof asks for. Use those of package hashing unless you have a reason
// not to.
//
// Each family has the methods Bytes, for bytes, and Word, for one 64-bit word.
//
//	            guarantee over the seed    bits  key, bits   time  choose it when
//	H3          3-universal                  64  64 a bit       5  the switch hashes so
//	Toeplitz    universal                    32   1 a bit       5  the adapter hashes so
//	Rabin       n bits collide: n/2^d         d          d     23  the switch has a CRC engine
//	Polynomial  4-universal                  61        305      6  the analysis asks for it
//	Tabulation  3-universal, Chernoff        64  16384 a byte   5  loads must be bounded
//
// The time is for 40 bytes, in multiples of hashing.Digest's (2 to 3 ns), on an
// AMD EPYC with Go 1.26; "go test -bench Hash ./bench" in the module's root
// measures it anywhere, beside SipHash (6), CRC-32C (2), FNV-1a (8) and
// hash/maphash (1.2, on the processor's AES instructions).
//
// Pass a hash of fewer than 64 bits, and Rabin's of any degree, through
// [hashing.Word] before you derive a row, a bank or a sampling decision from
// it. Word is a fixed function, so independent hashes stay independent.
//
// Keys come from a seed by SplitMix64, in the order that each constructor says,
// so that a controller can compute what to program into a switch. Like those of
// package hashing, these hashes give the same values on every machine and in
// every release. They are read-only after construction; any number of
// goroutines may share one. Only the constructors allocate.
//
// None resists packets that are crafted by someone who sees its effects. H3,
// Toeplitz, Rabin and any CRC are linear: some hashes, or which packets share a
// cell, give the key away, and collisions follow by elimination. Four hashes give
// the polynomial away, and Tabulation's tables follow from one hash for each of
// their entries.
package families

import "github.com/hoplag/hoplag/hashing"

// keys is a SplitMix64 generator.
type keys uint64

// The families' numbers keep two of them with the same seed apart. 3 is not
// used any more.
const (
	familyH3         = 1
	familyTabulation = 2
	familyRabin      = 4
	familyPolynomial = 5
)

func newKeys(seed, family uint64) keys {
	const zero = 0xbb67ae8584caa73b // which Mix would turn into 0, for every family
	if seed == zero {
		return keys(family)
	}
	return keys(hashing.Mix(seed, family))
}

func (k *keys) next() uint64 {
	*k += 0x9e3779b97f4a7c15
	z := uint64(*k)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
