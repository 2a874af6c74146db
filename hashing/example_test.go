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
