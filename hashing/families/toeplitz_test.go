package families

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/hoplag/hoplag/hashing"
)

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

func TestToeplitzFromSeed(t *testing.T) {
	next := familyKeys(9, familyToeplitz)
	var key []byte
	for range 6 {
		key = binary.BigEndian.AppendUint64(key, next())
	}
	message := counting(37)
	if got, want := must(NewToeplitz(9, 37)).Bytes(message), slowToeplitz(key[:41], message); got != want {
		t.Errorf("%#x, want %#x", got, want)
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

	var published struct {
		Key     string
		Vectors []vector
	}
	vectors(t, "rss_toeplitz", &published)
	if published.Key != fmt.Sprintf("%x", RSSKey) {
		t.Errorf("RSSKey is %x, published %s", RSSKey, published.Key)
	}
	for _, v := range published.Vectors {
		check(v)
	}
}

func TestToeplitzSymmetric(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 5))
	symmetric := must(ToeplitzFromKey([]byte(SymmetricRSSKey)))
	ordinary := must(ToeplitzFromKey([]byte(RSSKey)))
	differ := 0
	for i := range 100 {
		tuple := hashing.Tuple{Src: [16]byte(randomBytes(rng, 16)), Dst: [16]byte(randomBytes(rng, 16)), SrcPort: uint16(i), DstPort: 80}
		if i%2 == 0 { // IPv4
			tuple.Src = netip.AddrFrom4([4]byte(tuple.Src[:4])).As16()
			tuple.Dst = netip.AddrFrom4([4]byte(tuple.Dst[:4])).As16()
		}
		reversed := tuple.Reverse()
		if symmetric.Tuple(&tuple) != symmetric.Tuple(&reversed) || symmetric.Addresses(&tuple) != symmetric.Addresses(&reversed) {
			t.Errorf("%v: the directions differ", tuple)
		}
		if ordinary.Tuple(&tuple) != ordinary.Tuple(&reversed) {
			differ++
		}
		if h := symmetric.Tuple(&tuple); h>>16 != h&0xffff {
			t.Errorf("%#x does not repeat its 16 bits, as documented", h)
		}
	}
	if differ < 99 {
		t.Errorf("with the ordinary key only %d of 100 differ: the check sees nothing", differ)
	}
}

// A tuple with one IPv4-mapped address is an IPv6 tuple: no packet has it, but
// it must not be cut short.
func TestToeplitzMixedFamilies(t *testing.T) {
	h := must(ToeplitzFromKey([]byte(RSSKey)))
	tuple := hashing.MakeTuple(6, netip.MustParseAddrPort("10.0.0.1:80"), netip.MustParseAddrPort("[2001:db8::1]:1234"))
	if got, want := h.Addresses(&tuple), slowToeplitz([]byte(RSSKey), tuple.Append(nil)[:32]); got != want {
		t.Errorf("%#x, want %#x", got, want)
	}
}
