package hashing_test

import (
	"fmt"

	"github.com/hoplag/hoplag/hashing"
)

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
