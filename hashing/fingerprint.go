package hashing

import (
	"crypto/sha256"
	"encoding/binary"
)

// Version is the version of this package's functions. Two points agree on
// packets and flows only if theirs is the same: it is part of every
// fingerprint.
const Version = 2

// Fingerprint returns what may be told of a seed: a one-way function by which
// two points, and everything they write down, know that they hash alike. Every
// Config's Identity is one.
//
// It gives the seed to nobody who cannot guess it. Take 64 random bits: a
// small number, a date or a word is found by trying.
func Fingerprint(seed uint64) uint64 {
	return fingerprint("seed", seed, 0)
}

// Fingerprint returns what may be told of the key, as [Fingerprint] does of a
// seed.
func (s SipHash) Fingerprint() uint64 {
	return fingerprint("SipHash", s.k0, s.k1)
}

// fingerprint is the first 64 bits of the SHA-256 of all that makes a hash.
func fingerprint(kind string, k0, k1 uint64) uint64 {
	buf := make([]byte, 0, 64)
	buf = append(buf, "hoplag hashing "...)
	buf = append(buf, Version)
	buf = append(buf, kind...)
	buf = binary.BigEndian.AppendUint64(buf, k0)
	buf = binary.BigEndian.AppendUint64(buf, k1)
	sum := sha256.Sum256(buf)
	return binary.BigEndian.Uint64(sum[:])
}
