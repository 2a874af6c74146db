package families

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/hoplag/hoplag/hashing"
)

// MaxWidth is the largest number of input bytes of a [Toeplitz]: more than any header has, and few enough that its
// tables fit a processor's cache.
const MaxWidth = 256

// Toeplitz is the hash that network adapters compute for receive-side scaling (RSS) and leave in the receive
// descriptor: for every input bit that is set, the exclusive or of the 32 key bits that begin at that bit's
// number. Zeros always hash to zero.
type Toeplitz struct {
	// A table of 256 entries for every byte position of an input: the hash is the exclusive or of one entry from each.
	tables [][256]uint32
}

// RSSKey is the key of Microsoft's RSS verification suite and the default of many adapters and drivers.
const RSSKey = "\x6d\x5a\x56\xda\x25\x5b\x0e\xc2\x41\x67\x25\x3d\x43\xa3\x8f\xb0\xd0\xca\x2b\xcb" +
	"\xae\x7b\x30\xb4\x77\xcb\x2d\xa3\x80\x30\xf2\x0c\x6a\x42\xb7\x3b\xbe\xac\x01\xfa"

// ToeplitzFromKey returns the Toeplitz hash with the key that an adapter was given, 40 to MaxWidth+4 bytes,
// such as [RSSKey], of inputs of up to four bytes less than the key. A key of another length is an error.
func ToeplitzFromKey(key []byte) (*Toeplitz, error) {
	const least = 36 + 4 // what a tuple needs: two IPv6 addresses and two ports
	if len(key) < least || len(key) > MaxWidth+4 {
		return nil, fmt.Errorf("families: Toeplitz key of %d bytes, want %d to %d", len(key), least, MaxWidth+4)
	}
	padded := append(append([]byte(nil), key...), 0, 0, 0, 0)
	tables := make([][256]uint32, len(key)-4)
	for i := range tables {
		for v := 1; v < 256; v++ {
			bit := bits.LeadingZeros8(uint8(v & -v)) // of the byte's, the most significant being 0
			tables[i][v] = tables[i][v&(v-1)] ^ uint32(binary.BigEndian.Uint64(padded[i:])>>(32-bit))
		}
	}
	return &Toeplitz{tables}, nil
}

// Bytes returns the hash of b, 32 bits. As on wires, a missing byte counts as zero, and bytes beyond the width
// are not connected.
func (t *Toeplitz) Bytes(b []byte) uint64 {
	h := uint32(0)
	for i := range t.tables[:min(len(t.tables), len(b))] {
		h ^= t.tables[i][b[i]]
	}
	return uint64(h)
}

// Tuple returns what an adapter that hashes addresses and ports computes for a TCP, UDP or SCTP packet of the
// flow: over 12 bytes for IPv4, 36 for IPv6.
func (t *Toeplitz) Tuple(tuple *hashing.Tuple) uint64 {
	var buf [36]byte
	b := appendAddresses(buf[:0], tuple)
	b = binary.BigEndian.AppendUint16(b, tuple.SrcPort)
	return t.Bytes(binary.BigEndian.AppendUint16(b, tuple.DstPort))
}

// Addresses returns what an adapter that hashes addresses alone computes for a packet of the flow, as adapters
// do for fragments and for protocols without ports: over 8 bytes for IPv4, 32 for IPv6.
func (t *Toeplitz) Addresses(tuple *hashing.Tuple) uint64 {
	var buf [36]byte
	return t.Bytes(appendAddresses(buf[:0], tuple))
}

// appendAddresses appends the tuple's addresses as they are on the wire.
func appendAddresses(b []byte, tuple *hashing.Tuple) []byte {
	src, dst := tuple.Source().Addr(), tuple.Destination().Addr()
	if src.Is4() && dst.Is4() {
		return append(append(b, tuple.Src[12:]...), tuple.Dst[12:]...)
	}
	return append(append(b, tuple.Src[:]...), tuple.Dst[:]...)
}
