package families

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/hoplag/hoplag/hashing"
)

// MaxWidth is the largest number of input bytes of an [H3] or [Toeplitz]: more than any header has, and few
// enough that their tables fit a processor's cache.
const MaxWidth = 256

// bytewise holds a table of 256 entries for every byte position of an input. A hash is the exclusive or of one
// entry from each: a linear family handles eight input bits at a time.
type bytewise[T uint32 | uint64] [][256]T

// linear returns the tables of the linear function that maps the input's bit number i, the first byte's most
// significant bit being 0, to row(i).
func linear[T uint32 | uint64](width int, row func(i int) T) bytewise[T] {
	t := make(bytewise[T], width)
	for i := range t {
		for v := 1; v < 256; v++ {
			lowest := bits.TrailingZeros8(uint8(v))
			t[i][v] = t[i][v&(v-1)] ^ row(8*i+7-lowest)
		}
	}
	return t
}

// bytes returns h changed by b; bytes beyond the last table do nothing.
func (t bytewise[T]) bytes(h T, b []byte) T {
	for i := range t[:min(len(t), len(b))] {
		h ^= t[i][b[i]]
	}
	return h
}

// H3 is the hash that switches compute in one clock: the exclusive or of one random 64-bit row per input bit
// that is set, and of a constant. To agree with a switch, load it with these rows: the hash of a single bit,
// less that of no bit, is its row. Over the choice of seed it is 3-universal, but not 4-universal: if the
// exclusive or of four inputs is zero, so is that of their hashes.
type H3 struct {
	constant uint64
	tables   bytewise[uint64]
}

// NewH3 returns the H3 hash of inputs of up to width bytes, 8 to [MaxWidth], keyed from seed; another width is
// an error. The first key word is the constant, and the following ones are the rows, beginning with that of the
// first byte's most significant bit.
func NewH3(seed uint64, width int) (*H3, error) {
	if width < 8 || width > MaxWidth {
		return nil, fmt.Errorf("families: H3 of %d input bytes, want 8 to %d", width, MaxWidth)
	}
	k := newKeys(seed)
	h := &H3{constant: k.next()}
	rows := make([]uint64, 8*width)
	for i := range rows {
		rows[i] = k.next()
	}
	h.tables = linear(width, func(i int) uint64 { return rows[i] })
	return h, nil
}

// Bytes returns the hash of b. As on wires, a missing byte counts as zero, and bytes beyond the width are not
// connected.
func (h *H3) Bytes(b []byte) uint64 { return h.tables.bytes(h.constant, b) }

// Toeplitz is the hash that network adapters compute for receive-side scaling (RSS) and leave in the receive
// descriptor: for every input bit that is set, the exclusive or of the 32 key bits that begin at that bit's
// number. Zeros always hash to zero.
type Toeplitz struct {
	tables bytewise[uint32]
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
	return &Toeplitz{linear(len(key)-4, func(i int) uint32 {
		return uint32(binary.BigEndian.Uint64(padded[i/8:]) >> (32 - i%8))
	})}, nil
}

// Bytes returns the hash of b, 32 bits. As on wires, a missing byte counts as zero, and bytes beyond the width
// are not connected.
func (t *Toeplitz) Bytes(b []byte) uint64 { return uint64(t.tables.bytes(0, b)) }

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
