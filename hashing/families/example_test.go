package families_test

import (
	"fmt"
	"net/netip"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/hashing/families"
)

var (
	header = []byte("20 bytes of IP header and 20 of TCP ...")
	tuple  = hashing.MakeTuple(6, netip.MustParseAddrPort("66.9.149.187:2794"), netip.MustParseAddrPort("161.142.100.80:1766"))
)

// A switch that hashes with H3: its controller programs the rows that the seed gives, and a point in Go agrees
// with it.
func ExampleH3() {
	h3, err := families.NewH3(7, 40)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("packet %016x\n", hashing.Packet(h3.Bytes(header)))
	// Output:
	// packet cebf82ec157610f3
}

// The hash in a receive descriptor, recomputed: the first packet of the published verification suite.
func ExampleToeplitz() {
	rss, err := families.ToeplitzFromKey([]byte(families.RSSKey))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("with ports %08x, without %08x\n", rss.Tuple(&tuple), rss.Addresses(&tuple))
	flow := hashing.Flow(hashing.Word(7, rss.Tuple(&tuple))) // 64 bits, for a synopsis
	fmt.Printf("flow %016x\n", uint64(flow))
	// Output:
	// with ports 51ccc178, without 323e8fc2
	// flow 58602cb7a9468822
}
