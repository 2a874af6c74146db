package hashing_test

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/hashing"
)

// structuredSeeds are what people take, and what differs in one bit from it.
// Some seed makes a small key of any function, and meets small ids there: here
// those within 2^32 of root2, which are a coincidence of 2^-32 elsewhere.
func structuredSeeds() []uint64 {
	var seeds []uint64
	for _, s := range []uint64{0, 7, 1 << 32, 0x5555555555555555, ^uint64(0), root5, root3, 0x9e3779b97f4a7c15} {
		seeds = append(seeds, s, s+1, s-1, ^s)
		for bit := range 64 {
			seeds = append(seeds, s^1<<bit)
		}
	}
	distinct := map[uint64]bool{}
	kept := seeds[:0]
	for _, s := range seeds {
		if !distinct[s] {
			distinct[s] = true
			kept = append(kept, s)
		}
	}
	return kept
}

// shared counts identities that two seeds or more have in common, over
// sequential ids: a wrong seed must show.
func shared(hash func(seed, id uint64) uint64) int {
	seen := map[uint64]uint64{}
	n := 0
	for k, seed := range structuredSeeds() {
		for id := range uint64(512) {
			h := hash(seed, id)
			if other, ok := seen[h]; ok && other != uint64(k) {
				n++
			}
			seen[h] = uint64(k)
		}
	}
	return n
}

func TestSeedsShareNothing(t *testing.T) {
	for name, hash := range map[string]func(seed, id uint64) uint64{
		"Word": func(seed, id uint64) uint64 { return uint64(hashing.Word(seed, id)) },
		"Digest of 4 bytes": func(seed, id uint64) uint64 {
			return uint64(hashing.Digest(seed, binary.LittleEndian.AppendUint32(nil, uint32(id))))
		},
		"Digest of 16 bytes": func(seed, id uint64) uint64 {
			b := binary.LittleEndian.AppendUint64(nil, id)
			return uint64(hashing.Digest(seed, append(b, b...)))
		},
		"Digest of 40 bytes": func(seed, id uint64) uint64 {
			b := counting(40)
			binary.BigEndian.PutUint64(b[32:], id)
			return uint64(hashing.Digest(seed, b))
		},
		"Flow": func(seed, id uint64) uint64 {
			tuple := mustTuple(6, "10.0.0.1:80", "10.0.0.2:1234")
			tuple.DstPort = uint16(id)
			return uint64(tuple.Flow(seed))
		},
	} {
		if n := shared(hash); n > 0 {
			t.Errorf("%s: %d identities under two seeds", name, n)
		}
	}
	// Negative control: keys that are sums of the seed and constants.
	sum := func(seed, id uint64) uint64 {
		a, b := seed+root2, seed+root3
		low := id ^ b
		return slowFold(slowFold(id^a, low>>32|low<<32), root5^8)
	}
	if n := shared(sum); n == 0 {
		t.Error("seeds that are added share nothing: the test sees nothing")
	}
}

// exchanges counts the seeds, of n random ones, under which a pair of inputs
// of two words that exchange the factors of the first product collide. The
// inputs are those that most seeds of a small sample agree on.
func exchanges(n int, keys func(seed uint64) (x, y uint64)) int {
	rng := rand.New(rand.NewPCG(12, 3))
	votes := map[uint64]int{}
	for range n {
		x, y := keys(rng.Uint64())
		votes[x^y]++
	}
	most := 0
	for _, v := range votes {
		most = max(most, v)
	}
	return most
}

// Words a, b and c, d make the same product if a^x is d^y and b^y is c^x: if
// a^d and b^c are x^y. Nobody must be able to write that down for more than
// one seed.
func TestNoPairExchangesFactors(t *testing.T) {
	const seeds = 1 << 20
	if most := exchanges(seeds, func(seed uint64) (uint64, uint64) { return hashing.Split(seed, root3) }); most > 1 {
		t.Errorf("one pair collides under %d of %d seeds", most, seeds)
	}
	if most := exchanges(seeds, func(seed uint64) (uint64, uint64) { return seed + root2, seed + root3 }); most < 2 {
		t.Error("no pair collides under two seeds that are added: the test sees nothing")
	}
}

// The pair that collided for most seeds, when both factors had the seed added.
func TestFixedPairs(t *testing.T) {
	rng := rand.New(rand.NewPCG(12, 4))
	for range 1 << 20 {
		x, y := rng.Uint64(), rng.Uint64()
		flip := (x + root2) ^ (x + root3) // what most seeds like x had in common
		var a, b hashing.Tuple
		binary.LittleEndian.PutUint64(a.Src[:8], 0)
		binary.LittleEndian.PutUint64(a.Src[8:], y)
		binary.LittleEndian.PutUint64(b.Src[:8], y^flip)
		binary.LittleEndian.PutUint64(b.Src[8:], flip)
		if seed := rng.Uint64(); a.Flow(seed) == b.Flow(seed) {
			t.Fatalf("tuples %x and %x are one flow under %#x", a, b, seed)
		}
	}
}

// Inputs that differ in length alone, such as zeros, differ by the keys.
func TestLengthEntersTheKeys(t *testing.T) {
	for seed := range uint64(64) {
		seen := map[[2]uint64]int{}
		for n := range uint64(256) {
			x, y := hashing.Split(seed, root3+2*n)
			if other, ok := seen[[2]uint64{x, y}]; ok {
				t.Fatalf("lengths %d and %d have the same keys under %d", n, other, seed)
			}
			seen[[2]uint64{x, y}] = int(n)
		}
	}
}
