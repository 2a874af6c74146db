package hashing

import (
	"crypto/sha256"
	"encoding/binary"
)

const version = 2 // of this package's functions, a part of every fingerprint

// Fingerprint returns a one-way function of a seed that may be published. Two points, and the records that they
// write, know by it that they hash alike. Every Config's Identity is a fingerprint.
//
// It does not reveal the seed, unless the seed can be guessed. Use 64 random bits: a small number, a date or a
// word can be found by trial.
func Fingerprint(seed uint64) uint64 {
	return fingerprint("seed", seed, 0)
}

// Fingerprint returns a one-way function of the key that may be published, like [Fingerprint] of a seed.
func (s SipHash) Fingerprint() uint64 {
	key := s.words()
	return fingerprint("SipHash", key[0], key[1])
}

// fingerprint returns the first 64 bits of the SHA-256 of everything that defines a hash.
func fingerprint(kind string, k0, k1 uint64) uint64 {
	b := append([]byte("hoplag hashing "), version)
	b = binary.BigEndian.AppendUint64(append(b, kind...), k0)
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(b, k1))
	return binary.BigEndian.Uint64(sum[:])
}
