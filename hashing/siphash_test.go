package hashing_test

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/hoplag/hoplag/hashing"
)

// Package bench/peers holds it to another implementation.
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
	data, err := os.ReadFile(filepath.Join(dataDir, "vectors.json"))
	if err != nil {
		t.Skipf("only these: the published vectors do not ship: %v", err)
	}
	var published struct {
		SipHash struct {
			Out []string `json:"output_le_bytes"`
		} `json:"siphash24"`
	}
	if err := json.Unmarshal(data, &published); err != nil {
		t.Fatal(err)
	}
	for n, want := range published.SipHash.Out {
		check(n, want)
	}
}

func TestSipHashIdentities(t *testing.T) {
	h := hashing.SipHashFromKey([16]byte(counting(16)))
	const x = 0x0123456789abcdef
	if got, want := h.Word(x), h.Bytes(binary.LittleEndian.AppendUint64(nil, x)); got != want {
		t.Errorf("Word %#x, its bytes %#x", got, want)
	}
	tuple := mustTuple(6, "10.0.0.1:80", "10.0.0.2:1234")
	if got, want := uint64(h.Flow(&tuple)), h.Bytes(tuple.Append(nil)); got != want {
		t.Errorf("Flow %#x, its bytes %#x", got, want)
	}
	if got, want := uint64(h.Packet(counting(40))), h.Bytes(counting(40)); got != want {
		t.Errorf("Packet %#x, its bytes %#x", got, want)
	}
}
