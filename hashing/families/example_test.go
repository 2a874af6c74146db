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

// A switch that hashes by H3: its controller programs the rows that the seed
// gives, and the point in Go agrees with it.
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

// The hash in a receive descriptor, recomputed: the first packet of the
// published verification suite.
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

// A switch with a CRC engine whose polynomial can be set. A CRC's usual
// polynomials are no good: they have factors.
func ExampleRabinFromPolynomial() {
	r, err := families.RabinFromPolynomial(64, 0x1b) // x^64+x^4+x^3+x+1
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("packet %016x\n", uint64(hashing.Word(7, r.Bytes(header))))
	_, err = families.RabinFromPolynomial(32, 0x1edc6f41) // CRC-32C's
	fmt.Println(err)
	// Output:
	// packet 8366f3550a8de814
	// families: Rabin polynomial x^32+0x1edc6f41 is reducible, it has a factor of degree 1
}

// A synopsis held to the letter of LDA's analysis, which asks for hashes that
// are 4-universal.
func ExamplePolynomial() {
	p := families.NewPolynomial(7)
	fmt.Printf("packet %016x\n", uint64(hashing.Word(7, p.Bytes(header))))
	// Output:
	// packet e71f37aec4d0a759
}

// Loads of cells that are bounded by a proof.
func ExampleTabulation() {
	t, err := families.NewTabulation(7, hashing.TupleSize)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("flow %016x\n", t.Bytes(tuple.Append(nil)))
	// Output:
	// flow 2fc98d3e35646a24
}
