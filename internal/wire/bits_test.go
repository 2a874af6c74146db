package wire

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// Fields of any width are written and read as their binary digits, one after another.
func TestBitsAgainstDigits(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		w := NewBitWriter([]byte{0xff})
		var want strings.Builder
		var values []uint64
		var widths []int
		for range r.IntN(30) {
			width := r.IntN(65)
			v := r.Uint64() & (1<<width - 1)
			w.Put(v, width)
			if width > 0 {
				fmt.Fprintf(&want, "%0*b", width, v)
			}
			values, widths = append(values, v), append(widths, width)
		}
		data := w.Bytes()
		var got strings.Builder
		for _, b := range data[1:] {
			fmt.Fprintf(&got, "%08b", b)
		}
		for want.Len()%8 != 0 {
			want.WriteByte('0')
		}
		if data[0] != 0xff || got.String() != want.String() {
			t.Fatalf("wrote %s, want %s", got.String(), want.String())
		}
		padded, at := append(data, make([]byte, BitPadding)...), 8
		for i, width := range widths {
			if v := Bits(padded, at, width); v != values[i] {
				t.Fatalf("read %#x of %d bits at %d, want %#x", v, width, at, values[i])
			}
			at += width
		}
	}
}

func TestZigzag(t *testing.T) {
	for v, want := range map[int64]uint64{0: 0, -1: 1, 1: 2, -2: 3, 1<<63 - 1: 1<<64 - 2, -1 << 63: 1<<64 - 1} {
		if got := Zigzag(v); got != want || Unzigzag(got) != v {
			t.Errorf("zigzag of %d is %d, and that of %d", v, got, Unzigzag(got))
		}
	}
}
