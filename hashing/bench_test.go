package hashing_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/bench/speed"
	"github.com/hoplag/hoplag/hashing"
)

// The benchmarks of package bench hold the families beside each other and the
// standard library, over bytes and tuples; here is what they leave out.

// Working sets: 1,024 headers of 64 bytes (64 KiB) with random bytes, and
// for words as many of them (8 KiB); the cells of the floor take 16 KiB.
const benchStream = 1024

var (
	headers [benchStream][64]byte
	words   [benchStream]hashing.Packet
	result  uint64 // keeps the compiler from leaving hashes out
)

func init() {
	rng := rand.New(rand.NewPCG(1, 12))
	for i := range headers {
		copy(headers[i][:], randomBytes(rng, len(headers[i])))
		words[i] = hashing.Packet(rng.Uint64())
	}
}

// benchmark measures a loop that sums hashes, beside the floor.
func benchmark(b *testing.B, name string, sum func(from, to int) uint64) {
	b.Run(name, func(b *testing.B) {
		speed.Compare(b, benchStream, 0, func(from, to int) { result += sum(from, to) }, speed.Floor(words[:]))
	})
}

// As a data path calls it, not through a function value.
func BenchmarkDigest(b *testing.B) {
	for _, n := range []int{8, 13, 40, 64} {
		benchmark(b, fmt.Sprintf("%dB", n), func(from, to int) (sum uint64) {
			for i := range headers[from:to] {
				sum += uint64(hashing.Digest(7, headers[from+i][:n]))
			}
			return sum
		})
	}
	benchmark(b, "40B-constant", func(from, to int) (sum uint64) {
		for i := range headers[from:to] {
			sum += uint64(hashing.Digest(7, headers[from+i][:40]))
		}
		return sum
	})
}

func BenchmarkWord(b *testing.B) {
	benchmark(b, "Word", sumWords(func(h uint64) uint64 { return uint64(hashing.Word(7, h)) }))
	for _, f := range families {
		benchmark(b, f.name, sumWords(f.make(7).Word))
	}
}

// The derivations, on words that are hashes already.
func BenchmarkDerivations(b *testing.B) {
	quarter := hashing.Threshold(0.25)
	for _, d := range []struct {
		name string
		sum  func(from, to int) uint64
	}{
		{"Row", func(from, to int) (sum uint64) {
			for _, h := range words[from:to] {
				sum += hashing.Row(uint64(h), 1000)
			}
			return sum
		}},
		{"LeadingZeros", func(from, to int) (sum uint64) {
			for _, h := range words[from:to] {
				sum += uint64(hashing.LeadingZeros(uint64(h)))
			}
			return sum
		}},
		{"Sampled", func(from, to int) (sum uint64) {
			for _, h := range words[from:to] {
				sum += hashing.Sampled(uint64(h), quarter)
			}
			return sum
		}},
		{"Sign", func(from, to int) (sum uint64) {
			for _, h := range words[from:to] {
				sum += uint64(hashing.Sign(uint64(h)))
			}
			return sum
		}},
		{"Mix", func(from, to int) (sum uint64) {
			for _, h := range words[from:to] {
				sum += hashing.Mix(uint64(h), 1)
			}
			return sum
		}},
	} {
		benchmark(b, d.name, d.sum)
	}
}

// sumWords calls a hash of words through a function value.
func sumWords(hash func(x uint64) uint64) func(from, to int) uint64 {
	return func(from, to int) (sum uint64) {
		for _, x := range words[from:to] {
			sum += hash(uint64(x))
		}
		return sum
	}
}
