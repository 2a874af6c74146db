package families

import (
	"encoding/binary"
	"fmt"

	"github.com/hoplag/hoplag/hashing"
)

// Toeplitz is the hash that network adapters compute for receive-side scaling
// (RSS) and leave in the receive descriptor, where it costs nothing: for every
// input bit that is set, the exclusive or of the 32 key bits that begin at
// that bit's number.
//
//   - Guarantee: over the choice of a random key, universal: two different
//     inputs of one length agree on k given bits of the 32 with probability
//     2^-k. The input of all zeros always hashes to zero.
//   - Key: 32 bits more than the input; 40 bytes serve IPv6 with ports.
//   - Gates: as [H3], but the key is a shift register.
//   - Choose it to use the adapter's hash as flow identity, and pass it through
//     [hashing.Word]: it has 32 bits where the derivations of this package want 64,
//     and it is linear, so that sequential addresses leave patterns.
//   - It does not resist crafted traffic; the published keys least of all.
//
// A Toeplitz is read-only and safe for concurrent use.
type Toeplitz struct {
	tables bytewise[uint32]
}

// RSSKey is the key of Microsoft's RSS verification suite and the default of
// many adapters and drivers.
const RSSKey = "\x6d\x5a\x56\xda\x25\x5b\x0e\xc2\x41\x67\x25\x3d\x43\xa3\x8f\xb0\xd0\xca\x2b\xcb" +
	"\xae\x7b\x30\xb4\x77\xcb\x2d\xa3\x80\x30\xf2\x0c\x6a\x42\xb7\x3b\xbe\xac\x01\xfa"

// SymmetricRSSKey repeats 16 bits, so that both directions of a flow hash
// alike (Woo and Park, Scalable TCP Session Monitoring with Symmetric RSS,
// 2012). The price: the hash repeats 16 bits too, and tells no more than 65,536
// flows apart.
const SymmetricRSSKey = "\x6d\x5a\x6d\x5a\x6d\x5a\x6d\x5a\x6d\x5a\x6d\x5a\x6d\x5a\x6d\x5a\x6d\x5a\x6d\x5a" +
	"\x6d\x5a\x6d\x5a\x6d\x5a\x6d\x5a\x6d\x5a\x6d\x5a\x6d\x5a\x6d\x5a\x6d\x5a\x6d\x5a"

// toeplitzLeast is what a tuple needs: two IPv6 addresses and two ports.
const toeplitzLeast = 36

// NewToeplitz returns the Toeplitz hash of inputs of up to width bytes, 36 to
// [MaxWidth], with a key of width+4 bytes from seed: the key words' bytes,
// most significant first.
func NewToeplitz(seed uint64, width int) (*Toeplitz, error) {
	if err := checkWidth("Toeplitz", width, toeplitzLeast); err != nil {
		return nil, err
	}
	k := newKeys(seed, familyToeplitz)
	key := make([]byte, 0, width+4+8)
	for len(key) < width+4 {
		key = binary.BigEndian.AppendUint64(key, k.next())
	}
	return ToeplitzFromKey(key[:width+4])
}

// ToeplitzFromKey returns the Toeplitz hash with the key that an adapter was
// given, 40 to MaxWidth+4 bytes, such as [RSSKey], of inputs of up to four
// bytes less than the key.
func ToeplitzFromKey(key []byte) (*Toeplitz, error) {
	width := len(key) - 4
	if width < toeplitzLeast || width > MaxWidth {
		return nil, fmt.Errorf("families: Toeplitz key of %d bytes, want %d to %d", len(key), toeplitzLeast+4, MaxWidth+4)
	}
	padded := append(append([]byte(nil), key...), 0, 0, 0, 0)
	return &Toeplitz{linear(width, func(i int) uint32 {
		return uint32(binary.BigEndian.Uint64(padded[i/8:]) >> (32 - i%8))
	})}, nil
}

// Bytes returns the hash of b, 32 bits. As on wires, a missing byte is a byte
// of zero, and bytes beyond the width are not connected.
func (t *Toeplitz) Bytes(b []byte) uint64 { return uint64(t.tables.bytes(0, b)) }

// Word returns the hash of x's eight bytes, little-endian.
func (t *Toeplitz) Word(x uint64) uint64 { return uint64(t.tables.word(0, x)) }

// Tuple returns what an adapter that hashes addresses and ports computes for a
// TCP, UDP or SCTP packet of the flow: over 12 bytes for IPv4, 36 for IPv6.
func (t *Toeplitz) Tuple(tuple *hashing.Tuple) uint64 {
	var buf [36]byte
	n := addresses(&buf, tuple)
	binary.BigEndian.PutUint16(buf[n:], tuple.SrcPort)
	binary.BigEndian.PutUint16(buf[n+2:], tuple.DstPort)
	return t.Bytes(buf[:n+4])
}

// Addresses returns what an adapter that hashes addresses alone computes for a
// packet of the flow, as adapters do for fragments and for protocols without
// ports: over 8 bytes for IPv4, 32 for IPv6.
func (t *Toeplitz) Addresses(tuple *hashing.Tuple) uint64 {
	var buf [36]byte
	return t.Bytes(buf[:addresses(&buf, tuple)])
}

// addresses writes the tuple's addresses as they are on the wire and returns
// their number of bytes.
func addresses(buf *[36]byte, tuple *hashing.Tuple) int {
	if isIPv4(&tuple.Src) && isIPv4(&tuple.Dst) {
		copy(buf[0:4], tuple.Src[12:])
		copy(buf[4:8], tuple.Dst[12:])
		return 8
	}
	copy(buf[0:16], tuple.Src[:])
	copy(buf[16:32], tuple.Dst[:])
	return 32
}

// isIPv4 reports whether a is an IPv4-mapped address, ::ffff:0:0/96.
func isIPv4(a *[16]byte) bool {
	return binary.BigEndian.Uint64(a[:8]) == 0 && binary.BigEndian.Uint32(a[8:12]) == 0xffff
}
