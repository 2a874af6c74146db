package hashing_test

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/hoplag/hoplag/hashing"
)

// structuredSeeds returns seeds that people choose, and seeds that differ from them in one bit.
func structuredSeeds() []uint64 {
	var seeds []uint64
	for _, s := range []uint64{0, 7, 1 << 32, 0x5555555555555555, ^uint64(0), root2, root3, root5, root7, root11, root13, 0x9e3779b97f4a7c15} {
		seeds = append(seeds, s, s+1, s-1, ^s)
		for bit := range 64 {
			seeds = append(seeds, s^1<<bit)
		}
	}
	slices.Sort(seeds)
	return slices.Compact(seeds)
}

// shared counts identities that two seeds or more have in common, over sequential ids: a wrong seed must show.
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

// collisions counts equal digests of packets that differ in one small number, at any two places, and of zeros
// of several lengths.
func collisions(digest func(b []byte) uint64) int {
	seen := map[uint64]string{}
	n := 0
	add := func(b []byte) {
		h := digest(b)
		if other, ok := seen[h]; ok && other != string(b) {
			n++
		}
		seen[h] = string(b)
	}
	for length := range 128 {
		add(make([]byte, length))
	}
	for _, length := range []int{8, 16, 40, 72} {
		for at := 0; at < length; at += 8 {
			for other := 0; other < length; other += 8 {
				for small := range uint64(40) {
					b := make([]byte, length)
					binary.LittleEndian.PutUint64(b[at:], small/5)
					binary.LittleEndian.PutUint64(b[other:], small%5)
					add(b)
				}
			}
		}
	}
	return n
}

// No seed is weak: even seeds next to the constant that they are first combined with, which would give keys of
// zero or of a few bits, distinguish small numbers as all do.
func TestNoSeedIsWeak(t *testing.T) {
	seeds := []uint64{root2, root2 + 1, root2 - 1, ^uint64(root2), root2 ^ root11, root3, root5, root7, root11, root13, 0, 1, ^uint64(0)}
	for bit := range 64 {
		seeds = append(seeds, root2^1<<bit, root2^root11^1<<bit)
	}
	for _, seed := range seeds {
		if n := collisions(func(b []byte) uint64 { return uint64(hashing.Digest(seed, b)) }); n > 0 {
			t.Errorf("%d packets collide under %#x", n, seed)
		}
		x, y := hashing.Split(seed, root3)
		if least := uint64(1 << 15); min(x, ^x, y, ^y, x^y) < least {
			t.Errorf("the keys of %#x are %#x and %#x", seed, x, y)
		}
	}
	// Negative control: the keys that such a seed would have.
	weak := func(b []byte) uint64 {
		high, low := slowProduct(0, root3)
		word := func(at int) uint64 { return binary.LittleEndian.Uint64(b[at:]) }
		if len(b) != 16 {
			return uint64(hashing.Digest(1, b))
		}
		return slowFold(slowFold(word(0)^high^low, word(8)^high), root5)
	}
	if n := collisions(weak); n < 10 {
		t.Errorf("%d packets collide under keys of zero: the test sees nothing", n)
	}
}

// A fingerprint tells seeds apart, and a seed from a key made of it.
func TestFingerprint(t *testing.T) {
	seen := map[uint64]bool{}
	add := func(f uint64) {
		if seen[f] {
			t.Fatalf("fingerprint %#x twice", f)
		}
		seen[f] = true
	}
	for _, seed := range structuredSeeds() {
		add(hashing.Fingerprint(seed))
		add(hashing.SipHashFromKey([16]byte(binary.LittleEndian.AppendUint64(make([]byte, 8), seed))).Fingerprint())
	}
}
