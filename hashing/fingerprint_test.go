package hashing_test

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/hashing"
)

// Fingerprints are stored, and compared by later releases.
func TestFingerprintGolden(t *testing.T) {
	for seed, want := range map[uint64]uint64{0: 0x4d55bf8307d8c9bb, 1: 0xe8774e063944f178, 0x0123456789abcdef: 0x7898f8335817d45d} {
		if got := hashing.Fingerprint(seed); got != want {
			t.Errorf("Fingerprint(%#x) = %#x, want %#x", seed, got, want)
		}
	}
	key := [16]byte([]byte("sixteen bytes ok"))
	if got, want := hashing.SipHashFromKey(key).Fingerprint(), uint64(0x57abaeb8dd397284); got != want {
		t.Errorf("the key's fingerprint is %#x, want %#x", got, want)
	}
}

// A fingerprint tells seeds apart, a seed from the key made of it, and says
// nothing of the seed's bits.
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
	rng := rand.New(rand.NewPCG(2, 12))
	var agree [64]int
	const trials = 4096
	for range trials {
		seed := rng.Uint64()
		for same := ^(hashing.Fingerprint(seed) ^ seed); same != 0; same &= same - 1 {
			agree[bits.TrailingZeros64(same)]++
		}
	}
	for bit, n := range agree {
		if rate, bound := float64(n)/trials, rateBound(0.5, trials); rate < 0.5-bound || rate > 0.5+bound {
			t.Errorf("bit %d of the fingerprint is that of the seed at a rate of %.3f", bit, rate)
		}
	}
}
