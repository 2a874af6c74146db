package families

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"github.com/hoplag/hoplag/hashing"
)

func randomBytes(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestFamiliesReject(t *testing.T) {
	for _, width := range []int{7, MaxWidth + 1} {
		if _, err := NewH3(1, width); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%d input bytes, want 8 to 256", width)) {
			t.Errorf("H3 of %d bytes: %v", width, err)
		}
	}
	for _, n := range []int{0, 39, MaxWidth + 5} {
		want := fmt.Sprintf("key of %d bytes, want 40 to 260", n)
		if _, err := ToeplitzFromKey(make([]byte, n)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Toeplitz with a key of %d bytes: %v", n, err)
		}
	}
}

func TestNoAllocations(t *testing.T) {
	tuple := hashing.MakeTuple(6, netip.MustParseAddrPort("10.0.0.1:80"), netip.MustParseAddrPort("[2001:db8::1]:1234"))
	h3, toeplitz, message, sink := must(NewH3(1, 64)), must(ToeplitzFromKey([]byte(RSSKey))), make([]byte, 64), uint64(0)
	if n := testing.AllocsPerRun(100, func() {
		sink += h3.Bytes(message) + toeplitz.Bytes(message) + toeplitz.Tuple(&tuple) + toeplitz.Addresses(&tuple)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// slowH3 is H3 as a switch computes it, bit by bit.
func slowH3(seed uint64, width int, message []byte) uint64 {
	k := newKeys(seed)
	hash := k.next()
	for i := range 8 * width {
		row := k.next()
		if i/8 < len(message) && message[i/8]>>(7-i%8)&1 == 1 {
			hash ^= row
		}
	}
	return hash
}

func TestH3MatchesSlow(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 4))
	for _, width := range []int{8, 13, 40} {
		seed := rng.Uint64()
		h := must(NewH3(seed, width))
		for n := range width + 10 {
			message := randomBytes(rng, n)
			if got, want := h.Bytes(message), slowH3(seed, width, message); got != want {
				t.Errorf("width %d, length %d: %#x, want %#x", width, n, got, want)
			}
		}
	}
}

// The key material is SplitMix64, so that others can compute it.
func TestKeys(t *testing.T) {
	k := keys(42)
	for i, want := range []uint64{0xbdd732262feb6e95, 0x28efe333b266f103, 0x47526757130f9f52} {
		if got := k.next(); got != want {
			t.Errorf("key word %d from 42 is %#x, want %#x", i, got, want)
		}
	}
}

// slowToeplitz shifts the key one bit per input bit.
func slowToeplitz(key, message []byte) uint64 {
	var hash uint32
	bit := func(i int) uint32 { return uint32(key[i/8] >> (7 - i%8) & 1) }
	var window uint32
	for i := range 32 {
		window = window<<1 | bit(i)
	}
	for i := range 8 * min(len(message), len(key)-4) {
		if message[i/8]>>(7-i%8)&1 == 1 {
			hash ^= window
		}
		if i+32 < 8*len(key) {
			window = window<<1 | bit(i+32)
		}
	}
	return uint64(hash)
}

func TestToeplitzMatchesSlow(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 5))
	for _, size := range []int{40, 52, 68, 260} {
		key := randomBytes(rng, size)
		h := must(ToeplitzFromKey(key))
		for n := range size + 4 {
			message := randomBytes(rng, n)
			if got, want := h.Bytes(message), slowToeplitz(key, message); got != want {
				t.Errorf("key of %d bytes, length %d: %#x, want %#x", size, n, got, want)
			}
		}
	}
}

// Hashes of the published verification suite.
func TestToeplitzRSS(t *testing.T) {
	h := must(ToeplitzFromKey([]byte(RSSKey)))
	for _, v := range []struct {
		src, dst         string
		addresses, tuple uint64
	}{
		{"66.9.149.187:2794", "161.142.100.80:1766", 0x323e8fc2, 0x51ccc178},
		{"199.92.111.2:14230", "65.69.140.83:4739", 0xd718262a, 0xc626b0ea},
		{"[3ffe:2501:200:1fff::7]:2794", "[3ffe:2501:200:3::1]:1766", 0x2cc18cd5, 0x40207d3d},
	} {
		tuple := hashing.MakeTuple(6, netip.MustParseAddrPort(v.src), netip.MustParseAddrPort(v.dst))
		if addresses, all := h.Addresses(&tuple), h.Tuple(&tuple); addresses != v.addresses || all != v.tuple {
			t.Errorf("%s to %s: %#x and %#x, want %#x and %#x", v.src, v.dst, addresses, all, v.addresses, v.tuple)
		}
	}
}

// A tuple with a single IPv4-mapped address is an IPv6 tuple: no packet has it, but it must not be truncated.
func TestToeplitzMixedFamilies(t *testing.T) {
	h := must(ToeplitzFromKey([]byte(RSSKey)))
	tuple := hashing.MakeTuple(6, netip.MustParseAddrPort("10.0.0.1:80"), netip.MustParseAddrPort("[2001:db8::1]:1234"))
	if got, want := h.Addresses(&tuple), slowToeplitz([]byte(RSSKey), tuple.Append(nil)[:32]); got != want {
		t.Errorf("%#x, want %#x", got, want)
	}
}
