package families_test

import (
	"fmt"
	"net/netip"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/hashing/families"
)

var tuple = hashing.MakeTuple(6, netip.MustParseAddrPort("66.9.149.187:2794"), netip.MustParseAddrPort("161.142.100.80:1766"))

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
