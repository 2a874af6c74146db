package hashing_test

import (
	"fmt"
	"net/netip"

	"github.com/hoplag/hoplag/hashing"
)

// One digest chooses a row, and by its other half a sample, without a second hash.
func ExampleDigest() {
	h := uint64(hashing.Digest(7, []byte("the bytes of a packet that do not change")))
	fmt.Printf("digest %016x, row %d of 1000, sampled %d\n", h, hashing.Row(h, 1000), hashing.Sampled(h, hashing.Threshold(0.1)))
	// Output:
	// digest 0e2eced41fffd017, row 124 of 1000, sampled 1
}

func ExampleTuple_Flow() {
	tuple := hashing.MakeTuple(6, netip.MustParseAddrPort("10.0.0.1:40000"), netip.MustParseAddrPort("192.0.2.7:443"))
	mapped := hashing.MakeTuple(6, netip.MustParseAddrPort("[::ffff:10.0.0.1]:40000"), netip.MustParseAddrPort("192.0.2.7:443"))
	reverse := tuple.Reverse()
	fmt.Println(tuple.Flow(7) == mapped.Flow(7), tuple.Flow(7) == reverse.Flow(7))
	// Output:
	// true false
}

// Where packets may be crafted, a secret key identifies packets and flows.
func ExampleSipHash() {
	key := [16]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} // from crypto/rand, the same at both points
	h := hashing.SipHashFromKey(key)
	tuple := hashing.MakeTuple(6, netip.MustParseAddrPort("10.0.0.1:40000"), netip.MustParseAddrPort("192.0.2.7:443"))
	fmt.Printf("flow %016x\n", uint64(h.Flow(&tuple)))
	fmt.Printf("packet %016x\n", uint64(h.Packet([]byte("the bytes of a packet that do not change"))))
	// Output:
	// flow c23d264fc44de11b
	// packet bd7f753a999659d9
}

// A packet before and after a router that decremented its TTL, updated its header checksum and forwarded it in
// a VLAN: both points agree on it.
func ExampleFrame() {
	const (
		before = "\x02\x00\x00\x00\x00\x02\x02\x00\x00\x00\x00\x01\x08\x00" +
			"\x45\x00\x00\x1d\x00\x01\x40\x00\x40\x11\xb6\xc3\xc0\x00\x02\x01\xc0\x00\x02\x0a" +
			"\x9c\x40\x00\x35\x00\x09\x00\x00h"
		after = "\x02\x00\x00\x00\x00\x04\x02\x00\x00\x00\x00\x03\x81\x00\x00\x07\x08\x00" +
			"\x45\x00\x00\x1d\x00\x01\x40\x00\x3f\x11\xb7\xc3\xc0\x00\x02\x01\xc0\x00\x02\x0a" +
			"\x9c\x40\x00\x35\x00\x09\x00\x00h"
		seed = 1
	)
	var f hashing.Frame // used for every frame of a point
	for _, frame := range []string{before, after} {
		if err := f.Parse(hashing.LinkEthernet, []byte(frame)); err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(f.Tuple.Source(), "→", f.Tuple.Destination(), f.Length, "bytes")
		fmt.Printf("flow %016x packet %016x\n", f.Tuple.Flow(seed), f.Digest(seed))
	}
	// Output:
	// 192.0.2.1:40000 → 192.0.2.10:53 29 bytes
	// flow 21209ac9f336ae08 packet ba511f3fa8d71b04
	// 192.0.2.1:40000 → 192.0.2.10:53 29 bytes
	// flow 21209ac9f336ae08 packet ba511f3fa8d71b04
}
