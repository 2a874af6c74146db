package families

import (
	"fmt"
	"math/bits"
)

// bytewise holds a table of 256 entries for every byte position of an input.
// A hash is the exclusive or of one entry from each: of a linear family, this
// is eight input bits at a time.
type bytewise[T uint32 | uint64] [][256]T

// linear returns the tables of the linear function that maps the input's bit
// number i, the first byte's most significant bit being 0, to row(i).
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
	for i := range t {
		if i >= len(b) {
			break
		}
		h ^= t[i][b[i]]
	}
	return h
}

// word is bytes of x's eight bytes, little-endian.
func (t bytewise[T]) word(h T, x uint64) T {
	first := t[:8]
	for i := range first {
		h ^= first[i][byte(x)]
		x >>= 8
	}
	return h
}

// checkWidth reports why width, in bytes, is invalid for the input of a
// family.
func checkWidth(family string, width, least int) error {
	if width < least || width > MaxWidth {
		return fmt.Errorf("families: %s of %d input bytes, want %d to %d", family, width, least, MaxWidth)
	}
	return nil
}

// MaxWidth is the largest number of input bytes that [H3], [Tabulation] and
// [Toeplitz] can be made for: more than any header, and their tables still
// fit a processor's cache.
const MaxWidth = 256
