package families

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
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

// vectors reads the published known answers, which do not ship with the project: a few of each are inline in
// the tests.
func vectors(t *testing.T, into any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "data", "vectors.json"))
	if err != nil {
		t.Skipf("no published vectors here: %v", err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
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
	var published struct {
		SplitMix64 []struct {
			Seed string
			Out  []string
		}
	}
	vectors(t, &published)
	for _, v := range published.SplitMix64 {
		k := keys(must(strconv.ParseUint(v.Seed, 16, 64)))
		for i, out := range v.Out {
			if got := fmt.Sprintf("%016x", k.next()); got != out {
				t.Errorf("seed %s, word %d: %s, want %s", v.Seed, i, got, out)
			}
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

func TestToeplitzRSS(t *testing.T) {
	type vector struct {
		Src, Dst     string
		Sport, Dport uint16
		Addresses    string `json:"hash_2tuple"`
		Tuple        string `json:"hash_4tuple"`
	}
	h := must(ToeplitzFromKey([]byte(RSSKey)))
	check := func(v vector) {
		t.Helper()
		src, dst := netip.MustParseAddr(v.Src), netip.MustParseAddr(v.Dst)
		tuple := hashing.MakeTuple(6, netip.AddrPortFrom(src, v.Sport), netip.AddrPortFrom(dst, v.Dport))
		if got := fmt.Sprintf("%08x", h.Addresses(&tuple)); got != v.Addresses {
			t.Errorf("%s to %s: %s, want %s", v.Src, v.Dst, got, v.Addresses)
		}
		if got := fmt.Sprintf("%08x", h.Tuple(&tuple)); got != v.Tuple {
			t.Errorf("%s:%d to %s:%d: %s, want %s", v.Src, v.Sport, v.Dst, v.Dport, got, v.Tuple)
		}
	}
	check(vector{"66.9.149.187", "161.142.100.80", 2794, 1766, "323e8fc2", "51ccc178"})
	check(vector{"199.92.111.2", "65.69.140.83", 14230, 4739, "d718262a", "c626b0ea"})
	check(vector{"3ffe:2501:200:1fff::7", "3ffe:2501:200:3::1", 2794, 1766, "2cc18cd5", "40207d3d"})

	var all struct {
		Toeplitz struct {
			Key     string
			Vectors []vector
		} `json:"rss_toeplitz"`
	}
	vectors(t, &all)
	published := all.Toeplitz
	if published.Key != fmt.Sprintf("%x", RSSKey) {
		t.Errorf("RSSKey is %x, published %s", RSSKey, published.Key)
	}
	for _, v := range published.Vectors {
		check(v)
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
