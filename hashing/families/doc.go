// Package families has the hashes that hardware computes. Use those of package hashing unless a switch or an
// adapter already computes one of these.
//
//	          guarantee over the seed  bits  key, bits  choose it when
//	H3        3-universal                64   64 a bit  the switch hashes so
//	Toeplitz  universal                  32    1 a bit  the adapter hashes so
//
// H3 is of Carter and Wegman (1979), Toeplitz of Microsoft's RSS. Both take several times a [hashing.Digest].
//
// Pass a hash of fewer than 64 bits, such as a CRC of package hash/crc32, through [hashing.Word] before you
// derive a row, a bank or a sampling decision from it.
//
// SplitMix64 derives keys from a seed, in the order that each constructor documents, so that a controller can
// compute what to program into a switch. The hashes are the same on every machine and in every release. They
// are read-only after construction; any number of goroutines may share one. Only the constructors allocate.
//
// None of them resists packets crafted by someone who sees its effects. H3, Toeplitz and all CRCs are linear: a
// few hashes, or which packets share a cell, give the key away.
package families

import "github.com/hoplag/hoplag/hashing"

// keys is a SplitMix64 generator.
type keys uint64

// newKeys returns the generator of H3's keys.
func newKeys(seed uint64) keys { return keys(hashing.Mix(seed, 1)) }

func (k *keys) next() uint64 {
	*k += 0x9e3779b97f4a7c15
	z := uint64(*k)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
