package hashing_test

import (
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"hash/maphash"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hoplag/hoplag/hashing"
)

// Working sets: 1,024 headers of 64 bytes (64 KiB) with random bytes, and
// for words a stream of 1,024 (8 KiB); the cells of the floor take 16 KiB.
var (
	headers [1024][64]byte
	words   [1024]uint64
	cells   [1024]struct{ sum, count uint64 }
	result  uint64
)

func init() {
	rng := rand.New(rand.NewPCG(1, 12))
	for i := range headers {
		for j := range headers[i] {
			headers[i][j] = byte(rng.Uint32())
		}
		words[i] = rng.Uint64()
	}
}

// floor is the loop that everything on a packet's path is compared with: it
// adds a timestamp to, and counts, the cell that a precomputed hash chooses.
func floor(n int) {
	for i := range n {
		c := &cells[hashing.Row(words[i&1023], 1024)&1023]
		c.sum += uint64(i)
		c.count++
	}
}

func BenchmarkFloor(b *testing.B) {
	floor(b.N)
}

// report adds what a time per operation does not say: packets per second, and
// the multiple of the floor, measured right after so that both meet the same
// machine.
func report(b *testing.B) {
	perOp := float64(b.Elapsed().Nanoseconds()) / float64(b.N)
	b.ReportMetric(1e3/perOp, "Mpkt/s")
	b.ReportMetric(perOp/floorNs(), "x-floor")
}

// floorNs is the floor's time per packet, the best of several short runs.
func floorNs() float64 {
	const n = 1 << 18
	best := math.Inf(1)
	for range 8 {
		start := time.Now()
		floor(n)
		best = min(best, float64(time.Since(start).Nanoseconds())/n)
	}
	return best
}

// The lengths: a word, an IPv4 5-tuple, IP and TCP headers, and a header that
// fills a cache line.
var benchLengths = []int{8, 13, 40, 64}

func BenchmarkDigest(b *testing.B) {
	for _, n := range benchLengths {
		b.Run(fmt.Sprintf("bytes=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			var sum uint64
			for i := range b.N {
				sum += uint64(hashing.Digest(7, headers[i&1023][:n]))
			}
			result = sum
			report(b)
		})
	}
}

// As a data path calls it: the length a constant, which the compiler knows.
func BenchmarkDigest40(b *testing.B) {
	var sum uint64
	for i := range b.N {
		sum += uint64(hashing.Digest(7, headers[i&1023][:40]))
	}
	result = sum
	report(b)
}

// The families and, beside them, what the standard library offers, all called
// through a function value.
func BenchmarkBytes(b *testing.B) {
	hashes := map[string]func([]byte) uint64{}
	var names []string
	add := func(name string, hash func([]byte) uint64) {
		hashes[name] = hash
		names = append(names, name)
	}
	add("Digest", func(p []byte) uint64 { return uint64(hashing.Digest(7, p)) })
	for _, f := range families {
		add(f.name, f.make(7).Bytes)
	}
	seed := maphash.MakeSeed()
	add("maphash", func(p []byte) uint64 { return maphash.Bytes(seed, p) })
	castagnoli := crc32.MakeTable(crc32.Castagnoli)
	add("CRC-32C", func(p []byte) uint64 { return uint64(crc32.Checksum(p, castagnoli)) })
	fnv1a := fnv.New64a()
	add("FNV-1a", func(p []byte) uint64 {
		fnv1a.Reset()
		fnv1a.Write(p)
		return fnv1a.Sum64()
	})
	for _, name := range names {
		hash := hashes[name]
		for _, n := range benchLengths {
			b.Run(fmt.Sprintf("%s/bytes=%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				var sum uint64
				for i := range b.N {
					sum += hash(headers[i&1023][:n])
				}
				result = sum
				report(b)
			})
		}
	}
}

func BenchmarkWord(b *testing.B) {
	b.Run("Word", func(b *testing.B) {
		var sum uint64
		for i := range b.N {
			sum += uint64(hashing.Word(7, words[i&1023]))
		}
		result = sum
		report(b)
	})
	for _, f := range families {
		h := f.make(7)
		b.Run(f.name, func(b *testing.B) {
			var sum uint64
			for i := range b.N {
				sum += h.Word(words[i&1023])
			}
			result = sum
			report(b)
		})
	}
}

func BenchmarkFlow(b *testing.B) {
	rng := rand.New(rand.NewPCG(2, 12))
	tuples := make([]hashing.Tuple, 1024)
	for i := range tuples {
		tuples[i] = randomTuple(rng)
	}
	b.Run("Flow", func(b *testing.B) {
		var sum uint64
		for i := range b.N {
			sum += uint64(tuples[i&1023].Flow(7))
		}
		result = sum
		report(b)
	})
	sip := hashing.NewSipHash(7)
	b.Run("SipHash", func(b *testing.B) {
		var sum uint64
		for i := range b.N {
			sum += uint64(sip.Flow(&tuples[i&1023]))
		}
		result = sum
		report(b)
	})
	toeplitz := must(hashing.ToeplitzFromKey([]byte(hashing.RSSKey)))
	b.Run("Toeplitz", func(b *testing.B) {
		var sum uint64
		for i := range b.N {
			sum += toeplitz.Tuple(&tuples[i&1023])
		}
		result = sum
		report(b)
	})
}

// The derivations, on words that are hashes already.
func BenchmarkDerivations(b *testing.B) {
	quarter := hashing.Threshold(0.25)
	run := func(name string, loop func(n int) uint64) {
		b.Run(name, func(b *testing.B) {
			result = loop(b.N)
			report(b)
		})
	}
	run("Row", func(n int) (sum uint64) {
		for i := range n {
			sum += hashing.Row(words[i&1023], 1000)
		}
		return sum
	})
	run("LeadingZeros", func(n int) (sum uint64) {
		for i := range n {
			sum += uint64(hashing.LeadingZeros(words[i&1023]))
		}
		return sum
	})
	run("Sampled", func(n int) (sum uint64) {
		for i := range n {
			sum += hashing.Sampled(words[i&1023], quarter)
		}
		return sum
	})
	run("Sign", func(n int) (sum uint64) {
		for i := range n {
			sum += uint64(hashing.Sign(words[i&1023]))
		}
		return sum
	})
	run("Mix", func(n int) (sum uint64) {
		for i := range n {
			sum += hashing.Mix(words[i&1023], 1)
		}
		return sum
	})
}
