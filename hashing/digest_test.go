package hashing_test

import (
	"encoding/binary"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/hashing"
)

// The fractions of the square roots of 2, 3, 5, 7, 11 and 13.
const (
	root2  = 0x6a09e667f3bcc909
	root3  = 0xbb67ae8584caa73b
	root5  = 0x3c6ef372fe94f82b
	root7  = 0xa54ff53a5f1d36f1
	root11 = 0x510e527fade682d1
	root13 = 0x9b05688c2b3e6c1f
)

// slowSplit is the two keys of a seed.
func slowSplit(seed, constant uint64) (first, second uint64) {
	seed ^= root2
	const ones = 1<<32 - 1
	if middle := seed >> 16 & ones; middle == 0 || middle == ones {
		seed ^= root11
	}
	high, low := slowProduct(seed, constant)
	return high ^ low, high
}

// slowDigest is the digest in arbitrary-precision arithmetic, written for reading: the message is cut into
// blocks of two words, the last of which may overlap the one before.
func slowDigest(seed uint64, message []byte) uint64 {
	word := func(at int) uint64 {
		var w [8]byte
		copy(w[:], message[at:])
		return binary.LittleEndian.Uint64(w[:])
	}
	n := len(message)
	first, second := slowSplit(seed, root3+2*uint64(n))
	s := first
	var a, b uint64
	if n > 16 {
		// The first block and every one from the third on enter the first chain, the second block enters the
		// second.
		for block := 0; block == 0 || 16*(block+1) < n; block++ {
			low, high := word(16*block), word(16*block+8)
			switch block {
			case 0:
				first = slowFold(low^s, high^second)
			case 1:
				second = slowFold(low^s, high^(second>>32|second<<32))
			default:
				first = slowFold(low^s, high^first)
			}
		}
		a, b = word(n-16)^first, word(n-8)^second
	} else {
		var low, high uint64
		switch {
		case n >= 8:
			low, high = word(0), word(n-8)
		case n >= 4:
			low, high = word(0)&0xffffffff, word(n-4)&0xffffffff
		case n > 0:
			low = word(0)
		}
		swapped := high ^ second
		a, b = low^first, swapped>>32|swapped<<32
	}
	return slowFold(slowFold(a, b), root5)
}

func slowFold(a, b uint64) uint64 {
	high, low := slowProduct(a, b)
	return high ^ low
}

func slowProduct(a, b uint64) (high, low uint64) {
	product := new(big.Int).Mul(new(big.Int).SetUint64(a), new(big.Int).SetUint64(b))
	mask := new(big.Int).SetUint64(^uint64(0))
	return new(big.Int).Rsh(product, 64).Uint64(), new(big.Int).And(product, mask).Uint64()
}

func FuzzDigest(f *testing.F) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 300 {
		message := randomBytes(rng, n)
		for _, seed := range []uint64{rng.Uint64(), root2 ^ rng.Uint64()>>rng.IntN(64), ^uint64(root2) ^ rng.Uint64()<<rng.IntN(64)} {
			f.Add(seed, message)
		}
	}
	f.Fuzz(func(t *testing.T, seed uint64, message []byte) {
		// The byte behind must not matter.
		if got, want := uint64(hashing.Digest(seed, append(message, 1)[:len(message)])), slowDigest(seed, message); got != want {
			t.Errorf("digest %#x, want %#x", got, want)
		}
	})
}

// The numbers below are a promise: two points that run different releases must agree, and fingerprints are
// stored. They never change, nor do the vectors of SPEC.md, which has more digests and fingerprints.
func TestGolden(t *testing.T) {
	flow := func(proto uint8, from, to string) uint64 {
		tuple := mustTuple(proto, from, to)
		return uint64(tuple.Flow(7))
	}
	digest := func(seed uint64, length int) uint64 { return uint64(hashing.Digest(seed, counting(length))) }
	for i, g := range [][2]uint64{ // got, want
		{digest(7, 0), 0x7b7a39288c02596f},
		{digest(7, 13), 0x6ba11c6434917c6b},
		{digest(7, 24), 0x280affb5cccad716},
		{digest(7, 40), 0xfed1ff17323489b4},
		{digest(7, 96), 0xb444ba6f314b5ee7},
		{digest(7, 128), 0x30028d863c5d5cb6},
		{digest(^uint64(0), 40), 0xb5f5e91b7d8f5a16},
		{uint64(hashing.Word(7, 0x0123456789abcdef)), 0x98f271dcf7753a58},
		{hashing.Mix(0x0123456789abcdef, 3), 0x46e919cd0410a473},
		{flow(6, "10.0.0.1:80", "10.0.0.2:1234"), 0xbaeaa388384c1509},
		{flow(6, "10.0.0.2:1234", "10.0.0.1:80"), 0x2ce55be27e144440},
		{flow(6, "[2001:db8::1]:53", "[2001:db8::2]:5353"), 0xab028729a5d619fc},
		{hashing.Fingerprint(0x0123456789abcdef), 0x7898f8335817d45d},
		{hashing.SipHashFromKey([16]byte([]byte("sixteen bytes ok"))).Fingerprint(), 0x57abaeb8dd397284},
		{hashing.Tunnels{}.Identity(hashing.Fingerprint(0)), 0x815e2de37ec4628f},
	} {
		if g[0] != g[1] {
			t.Errorf("number %d is %#x, want %#x", i+1, g[0], g[1])
		}
	}
}

// Word is Digest.
func TestDigestOfWord(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for range 1000 {
		seed, x := root2^rng.Uint64()<<rng.IntN(64), rng.Uint64()
		got, want := hashing.Word(seed, x), hashing.Digest(seed, binary.LittleEndian.AppendUint64(nil, x))
		if again := hashing.NewIdentifier(seed, hashing.LinkRaw, hashing.Tunnels{}).Word(x); got != want || again != want {
			t.Fatalf("Word(%#x, %#x) = %#x, by an Identifier %#x, Digest of its bytes %#x", seed, x, uint64(got), uint64(again), uint64(want))
		}
	}
}

func randomBytes(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// counting returns the bytes 0, 1, 2, … n-1.
func counting(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}
