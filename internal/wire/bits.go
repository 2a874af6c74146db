package wire

import "encoding/binary"

// A BitWriter appends fields of any number of bits, one after another, the highest bit of each first.
type BitWriter struct {
	dst  []byte
	word uint64 // bits that are not in dst yet, the first one highest
	used int    // how many
}

// NewBitWriter returns a BitWriter that appends to dst.
func NewBitWriter(dst []byte) BitWriter { return BitWriter{dst: dst} }

// Put appends the low bits of v, 0 to 64 of them. The other bits of v must be 0.
func (w *BitWriter) Put(v uint64, bits int) {
	if over := w.used + bits - 64; over <= 0 {
		w.word |= v << -over
		w.used += bits
	} else {
		w.dst = binary.BigEndian.AppendUint64(w.dst, w.word|v>>over)
		w.word, w.used = v<<(64-over), over
	}
}

// Bytes pads the last byte with zeros and returns the extended dst.
func (w *BitWriter) Bytes() []byte {
	return binary.BigEndian.AppendUint64(w.dst, w.word)[:len(w.dst)+BytesOf(uint8(w.used))]
}

// BitPadding is how many bytes after a field Bits may look at.
const BitPadding = 8

// Bits returns the field of 0 to 64 bits that begins at bit number first of data; the highest bit of the first
// byte is number 0. At least BitPadding bytes, of any content, must follow the field.
func Bits(data []byte, first, bits int) uint64 {
	at, skip := first>>3, uint(first)&7
	v := binary.BigEndian.Uint64(data[at:]) << skip
	if bits > 64-7 {
		v |= uint64(data[at+8]) >> (8 - skip)
	}
	return v >> uint(64-bits) // Go's shift by 64 gives 0
}

// Zigzag maps numbers near 0 to small numbers that are not negative.
func Zigzag(v int64) uint64 { return uint64(v)<<1 ^ uint64(v>>63) }

// Unzigzag undoes Zigzag.
func Unzigzag(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }
