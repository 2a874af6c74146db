package main

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/hashing/families"
)

// hashed keeps the compiler from leaving hashes out.
var hashed uint64

// headerCount inputs of up to 64 bytes take 256 KiB: too many for a first-level cache, and no more than a data
// path has at hand.
const headerCount = 1 << 12

var headerStream = sync.OnceValue(func() *[headerCount][64]byte {
	rng := rand.NewChaCha8([32]byte{1, 22})
	headers := new([headerCount][64]byte)
	for i := range headers {
		rng.Read(headers[i][:])
	}
	return headers
})

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// products is the least that Digest does for 40 bytes: five products in turn, without the steps against weak
// keys and against blocks that cancel each other.
//
//go:noinline
func products(seed uint64, b *[40]byte) hashing.Packet {
	le := binary.LittleEndian
	y, x := bits.Mul64(seed, 3)
	h1, l1 := bits.Mul64(le.Uint64(b[:8])^x, le.Uint64(b[8:16])^y)
	h2, l2 := bits.Mul64(le.Uint64(b[16:24])^x, le.Uint64(b[24:32])^y)
	h3, l3 := bits.Mul64(le.Uint64(b[24:32])^h1^l1, le.Uint64(b[32:40])^h2^l2)
	h4, l4 := bits.Mul64(h3^l3, 5)
	return hashing.Packet(h4 ^ l4)
}

// BenchmarkDigest40 hashes IP and TCP headers, called directly.
func BenchmarkDigest40(b *testing.B) {
	headers := headerStream()
	packets := make([]hashing.Packet, headerCount)
	for i := range packets {
		packets[i] = hashing.Digest(7, headers[i][:40])
	}
	floor := cellFloor(packets)
	b.Run("products-alone", func(b *testing.B) {
		compare(b, headerCount, 0, func(from, to int) {
			var sum uint64
			some := headers[from:to]
			for i := range some {
				sum += uint64(products(7, (*[40]byte)(some[i][:])))
			}
			hashed = sum
		}, floor)
	})
	b.Run("Digest", func(b *testing.B) {
		compare(b, headerCount, 5.5, func(from, to int) {
			var sum uint64
			some := headers[from:to]
			for i := range some {
				sum += uint64(hashing.Digest(7, some[i][:40]))
			}
			hashed = sum
		}, floor)
	})
}

// BenchmarkFlow hashes 5-tuples: 4,096 of them, 152 KiB.
func BenchmarkFlow(b *testing.B) {
	headers := headerStream()
	tuples := make([]hashing.Tuple, headerCount)
	packets := make([]hashing.Packet, headerCount)
	for i := range tuples {
		h := &headers[i]
		tuples[i] = hashing.Tuple{
			Src: [16]byte(h[:16]), Dst: [16]byte(h[16:32]),
			SrcPort: uint16(h[32]) << 8, DstPort: uint16(h[33]), Proto: 6,
		}
		packets[i] = hashing.Packet(tuples[i].Flow(7))
	}
	sip := hashing.SipHashFromKey([16]byte{7})
	toeplitz := must(families.ToeplitzFromKey([]byte(families.RSSKey)))
	for _, h := range []struct {
		name string
		hash func(*hashing.Tuple) uint64
	}{
		{"Tuple.Flow", func(t *hashing.Tuple) uint64 { return uint64(t.Flow(7)) }},
		{"SipHash", func(t *hashing.Tuple) uint64 { return uint64(sip.Flow(t)) }},
		{"Toeplitz", func(t *hashing.Tuple) uint64 { return toeplitz.Tuple(t) }},
	} {
		b.Run(h.name, func(b *testing.B) {
			compare(b, headerCount, 0, func(from, to int) {
				var sum uint64
				for i := range tuples[from:to] {
					sum += h.hash(&tuples[from+i])
				}
				hashed = sum
			}, cellFloor(packets))
		})
	}
}
