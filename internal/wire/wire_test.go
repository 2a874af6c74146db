package wire

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/hoplag/hoplag/estimate"
)

// record is a record with one field of each width.
func record() []byte {
	b := Begin(nil, "TEST", 3)
	b = append(b, 0x01)
	b = AppendUint(b, 0x0203, 2)
	b = AppendUint(b, 0xff04050607, 4) // the ff is above the width
	b = AppendUint(b, 0x08090a0b0c, 5)
	b = AppendUint(b, 0x0d0e0f1011121314, 8)
	return Seal(b, 0)
}

func TestEveryFlippedBitAndTruncationIsRefused(t *testing.T) {
	good := record()
	for i := range good {
		for bit := range 8 {
			bad := append([]byte(nil), good...)
			bad[i] ^= 1 << bit
			if _, err := Open(bad, "TEST", 3); !errors.Is(err, estimate.ErrEncoding) {
				t.Errorf("byte %d, bit %d flipped: %v", i, bit, err)
			}
		}
		if _, err := Open(good[:i], "TEST", 3); !errors.Is(err, estimate.ErrEncoding) {
			t.Errorf("cut to %d bytes: %v", i, err)
		}
	}
}

// Whatever the bytes, a record is what Begin and Seal make of its body, and no sequence of reads gives more
// than the body has.
func FuzzOpen(f *testing.F) {
	f.Add(record(), []byte{8, 1, 2, 4})
	f.Add(record()[:Overhead], []byte{1})
	f.Add(record(), []byte{127, 4})
	f.Add([]byte{}, []byte{})
	f.Add(Seal(Begin(nil, "TEST", 3), 0), []byte{0, 255})
	f.Fuzz(func(t *testing.T, data, reads []byte) {
		r, err := Open(data, "TEST", 3)
		if err != nil {
			if !errors.Is(err, estimate.ErrEncoding) {
				t.Errorf("error %v", err)
			}
			// A sealed record of the same bytes is read all the same.
			data = Seal(append(Begin(nil, "TEST", 3), data...), 0)
			if r, err = Open(data, "TEST", 3); err != nil {
				t.Fatal(err)
			}
		}
		var body []byte
		left := r.Len()
		for _, n := range reads {
			b := r.Bytes(int(int8(n)))
			left -= len(b)
			body = append(body, b...)
		}
		if err := r.Close(); err == nil {
			if got := Seal(append(Begin(nil, "TEST", 3), body...), 0); !bytes.Equal(got, data) {
				t.Errorf("%x was read from %x", got, data)
			}
		} else if !errors.Is(err, estimate.ErrEncoding) || left < 0 {
			t.Errorf("error %v, %d bytes left", err, left)
		}
	})
}

// A field of some bits is read as it was appended, and one with excess bits is refused.
func TestBits(t *testing.T) {
	for bits := range uint8(65) {
		want := uint64(0xfedcba9876543210) & (1<<bits - 1)
		r := Reader{b: AppendBits(nil, 0xfedcba9876543210, bits)}
		if len(r.b) != BytesOf(bits) || r.Expect(int64(BytesOf(bits))) != nil {
			t.Errorf("%d bits in %d bytes", bits, len(r.b))
		}
		if got := r.Bits(bits); got != want || r.Close() != nil {
			t.Errorf("%d bits: %x, want %x, %v", bits, got, want, r.Close())
		}
		if bits%8 == 0 {
			continue
		}
		over := Reader{b: AppendUint(nil, 1<<bits, BytesOf(bits))}
		over.Bits(bits)
		if err := over.Close(); !errors.Is(err, estimate.ErrEncoding) {
			t.Errorf("a bit beyond %d: %v", bits, err)
		}
	}
	r := Reader{b: make([]byte, 3)}
	if err := r.Expect(2); !errors.Is(err, estimate.ErrEncoding) {
		t.Errorf("3 bytes for 2: %v", err)
	}
}

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
