package hashing_test

import (
	"encoding/binary"
	"encoding/hex"
	"testing"

	"github.com/hoplag/hoplag/hashing"
)

// Package bench/peers compares it with another implementation.
func TestSipHashPublished(t *testing.T) {
	h := hashing.SipHashFromKey([16]byte(counting(16)))
	check := func(n int, want string) {
		t.Helper()
		if got := hex.EncodeToString(binary.LittleEndian.AppendUint64(nil, h.Bytes(counting(n)))); got != want {
			t.Errorf("length %d: %s, want %s", n, got, want)
		}
	}
	check(0, "310e0edd47db6f72")
	check(1, "fd67dc93c539f874")
	check(2, "5a4fa9d909806c0d")
	check(15, "e545be4961ca29a1") // the paper's appendix A
}

func TestSipHashIdentities(t *testing.T) {
	h := hashing.SipHashFromKey([16]byte(counting(16)))
	tuple := mustTuple(6, "10.0.0.1:80", "10.0.0.2:1234")
	for name, pair := range map[string][2]uint64{
		"Word":   {h.Word(0x0123456789abcdef), h.Bytes(binary.LittleEndian.AppendUint64(nil, 0x0123456789abcdef))},
		"Flow":   {uint64(h.Flow(&tuple)), h.Bytes(tuple.Append(nil))},
		"Packet": {uint64(h.Packet(counting(40))), h.Bytes(counting(40))},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s is %#x, of its bytes %#x", name, pair[0], pair[1])
		}
	}
}
