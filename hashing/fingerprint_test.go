package hashing_test

import (
	"encoding/binary"
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

// A fingerprint tells seeds apart, and a seed from the key made of it.
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
