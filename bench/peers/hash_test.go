package main

import (
	"fmt"
	"hash/crc32"
	"hash/maphash"
	"math/rand/v2"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/dchest/siphash"
	"github.com/zeebo/xxh3"

	"github.com/hoplag/hoplag/bench/speed"
	"github.com/hoplag/hoplag/hashing"
)

// hashed keeps the compiler from leaving hashes out.
var hashed uint64

// BenchmarkHash hashes 4,096 inputs (256 KiB) of a word, an IPv4 5-tuple, IP and TCP headers, and a cache line,
// all through a function value.
func BenchmarkHash(b *testing.B) {
	const count = 1 << 12
	inputs := new([count][64]byte)
	packets := make([]hashing.Packet, count)
	rng := rand.NewChaCha8([32]byte{1, 31})
	for i := range inputs {
		rng.Read(inputs[i][:])
		packets[i] = hashing.Digest(7, inputs[i][:])
	}
	seed := maphash.MakeSeed()
	castagnoli := crc32.MakeTable(crc32.Castagnoli)
	for _, h := range []struct {
		name string
		hash func([]byte) uint64
	}{
		{"hoplag-Digest", func(p []byte) uint64 { return uint64(hashing.Digest(7, p)) }},
		{"hoplag-SipHash", hashing.SipHashFromKey([16]byte{7}).Bytes},
		{"xxhash", xxhash.Sum64},
		{"xxh3", func(p []byte) uint64 { return xxh3.HashSeed(p, 7) }},
		{"dchest-siphash", func(p []byte) uint64 { return siphash.Hash(7, 11, p) }},
		{"std-maphash", func(p []byte) uint64 { return maphash.Bytes(seed, p) }},
		{"std-crc32c", func(p []byte) uint64 { return uint64(crc32.Checksum(p, castagnoli)) }},
	} {
		for _, n := range []int{8, 13, 40, 64} {
			b.Run(fmt.Sprintf("%s/%dB", h.name, n), func(b *testing.B) {
				speed.Compare(b, count, 0, func(from, to int) {
					var sum uint64
					for i := range inputs[from:to] {
						sum += h.hash(inputs[from+i][:n])
					}
					hashed = sum
				}, speed.Floor(packets))
			})
		}
	}
}

// Two implementations of one function agree.
func TestSipHashIsSipHash(t *testing.T) {
	var key [16]byte
	rng := rand.NewChaCha8([32]byte{1, 32})
	rng.Read(key[:])
	ours := hashing.SipHashFromKey(key)
	for n := range 100 {
		p := make([]byte, n)
		rng.Read(p)
		theirs := siphash.New(key[:])
		theirs.Write(p)
		if got, want := ours.Bytes(p), theirs.Sum64(); got != want {
			t.Errorf("%d bytes: %#x, and by dchest/siphash %#x", n, got, want)
		}
	}
}
