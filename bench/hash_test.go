package main

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/hoplag/hoplag/bench/speed"
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

// digest40 is Digest of 40 bytes, the least that gives the same: it knows their number when it is compiled.
//
//go:noinline
func digest40(seed uint64, b *[40]byte) hashing.Packet {
	const key0, key1, key2, key4 = 0x6a09e667f3bcc909, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0x510e527fade682d1
	le, mix := binary.LittleEndian, func(a, b uint64) uint64 {
		hi, lo := bits.Mul64(a, b)
		return hi ^ lo
	}
	seed ^= key0
	y, lo := bits.Mul64(seed, key1+2*40)
	if uint32(seed>>16+1) <= 1 {
		y, lo = bits.Mul64(seed^key4, key1+2*40)
	}
	s := y ^ lo
	x := mix(le.Uint64(b[:8])^s, le.Uint64(b[8:16])^y)
	y = mix(le.Uint64(b[16:24])^s, le.Uint64(b[24:32])^bits.RotateLeft64(y, 32))
	return hashing.Packet(mix(mix(le.Uint64(b[24:32])^x, le.Uint64(b[32:40])^y), key2))
}

// BenchmarkDigest40 hashes IP and TCP headers, called directly.
func BenchmarkDigest40(b *testing.B) {
	headers := headerStream()
	packets := make([]hashing.Packet, headerCount)
	for i := range packets {
		if packets[i] = hashing.Digest(7, headers[i][:40]); packets[i] != digest40(7, (*[40]byte)(headers[i][:])) {
			b.Fatal("another digest")
		}
	}
	floor := speed.Floor(packets)
	b.Run("40-bytes-alone", func(b *testing.B) {
		speed.Compare(b, headerCount, 0, func(from, to int) {
			var sum uint64
			some := headers[from:to]
			for i := range some {
				sum += uint64(digest40(7, (*[40]byte)(some[i][:])))
			}
			hashed = sum
		}, floor)
	})
	b.Run("Digest", func(b *testing.B) {
		speed.Compare(b, headerCount, 5.6, func(from, to int) {
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
			speed.Compare(b, headerCount, 0, func(from, to int) {
				var sum uint64
				for i := range tuples[from:to] {
					sum += h.hash(&tuples[from+i])
				}
				hashed = sum
			}, speed.Floor(packets))
		})
	}
}

// BenchmarkFloor compares the floor with itself: 1, except for the noise of the method.
func BenchmarkFloor(b *testing.B) {
	speed.Compare(b, speed.StreamLength, 0, speed.Floor(speed.Packets()), speed.Floor(speed.Packets()))
}
