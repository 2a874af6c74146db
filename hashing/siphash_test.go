package hashing_test

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/hashing"
)

// slowSipHash follows the paper's section 2: padding first, then c rounds per
// word, then d rounds.
func slowSipHash(key [16]byte, message []byte) uint64 {
	rotate := func(x uint64, by int) uint64 { return x<<by | x>>(64-by) }
	k0, k1 := binary.LittleEndian.Uint64(key[:8]), binary.LittleEndian.Uint64(key[8:])
	text := []byte("somepseudorandomlygeneratedbytes")
	var v [4]uint64
	for i := range v {
		v[i] = binary.BigEndian.Uint64(text[8*i:])
		if i%2 == 0 {
			v[i] ^= k0
		} else {
			v[i] ^= k1
		}
	}
	rounds := func(n int) {
		for range n {
			v[0] += v[1]
			v[2] += v[3]
			v[1] = rotate(v[1], 13)
			v[3] = rotate(v[3], 16)
			v[1] ^= v[0]
			v[3] ^= v[2]
			v[0] = rotate(v[0], 32)
			v[2] += v[1]
			v[0] += v[3]
			v[1] = rotate(v[1], 17)
			v[3] = rotate(v[3], 21)
			v[1] ^= v[2]
			v[3] ^= v[0]
			v[2] = rotate(v[2], 32)
		}
	}
	padded := append([]byte(nil), message...)
	for len(padded)%8 != 7 {
		padded = append(padded, 0)
	}
	padded = append(padded, byte(len(message)))
	for ; len(padded) > 0; padded = padded[8:] {
		m := binary.LittleEndian.Uint64(padded)
		v[3] ^= m
		rounds(2)
		v[0] ^= m
	}
	v[2] ^= 0xff
	rounds(4)
	return v[0] ^ v[1] ^ v[2] ^ v[3]
}

func TestSipHashMatchesSlow(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 8))
	for n := range 300 {
		key := [16]byte(randomBytes(rng, 16))
		message := randomBytes(rng, n)
		if got, want := hashing.SipHashFromKey(key).Bytes(message), slowSipHash(key, message); got != want {
			t.Errorf("length %d: %#x, want %#x", n, got, want)
		}
	}
	next := hashing.FamilyKeys(5, 6)
	var key [16]byte
	binary.LittleEndian.PutUint64(key[:8], next())
	binary.LittleEndian.PutUint64(key[8:], next())
	if got, want := hashing.NewSipHash(5).Fingerprint(), hashing.SipHashFromKey(key).Fingerprint(); got != want {
		t.Errorf("seed 5 gives the key %x, want %x", got, want)
	}
}

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
	var published struct {
		Out []string `json:"output_le_bytes"`
	}
	vectors(t, "siphash24", &published)
	for n, want := range published.Out {
		check(n, want)
	}
}

func TestSipHashIdentities(t *testing.T) {
	h := hashing.NewSipHash(7)
	if got, want := h.Bytes(counting(40)), uint64(0x40ff4c8051fd4fbe); got != want {
		t.Errorf("golden: %#x, want %#x", got, want)
	}
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
