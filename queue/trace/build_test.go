package trace

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"testing"
)

// A byteOrder is what both of encoding/binary's orders are.
type byteOrder interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

var byteOrders = []byteOrder{binary.LittleEndian, binary.BigEndian}

// words appends 32-bit words.
func words(o byteOrder, b []byte, values ...uint32) []byte {
	for _, v := range values {
		b = o.AppendUint32(b, v)
	}
	return b
}

// pcapFileHead builds a pcap header.
func pcapFileHead(o byteOrder, magic, link uint32) []byte {
	b := words(o, nil, magic)
	b = o.AppendUint16(b, 2)
	b = o.AppendUint16(b, 4)
	return words(o, b, 0, 0, 65535, link)
}

// pcapRecord appends a pcap record.
func pcapRecord(o byteOrder, b []byte, seconds, fraction, length uint32, frame string) []byte {
	return append(words(o, b, seconds, fraction, uint32(len(frame)), length), frame...)
}

// ngBlock appends a pcapng block around a body, which it pads.
func ngBlock(o byteOrder, b []byte, kind uint32, body []byte) []byte {
	body = pad(body)
	length := uint32(len(body) + 12)
	return words(o, append(words(o, b, kind, length), body...), length)
}

func pad(b []byte) []byte {
	return append(b, make([]byte, -len(b)&3)...)
}

func ngSection(o byteOrder, b []byte, options ...byte) []byte {
	body := words(o, nil, 0x1a2b3c4d)
	body = o.AppendUint16(body, 1)
	body = o.AppendUint16(body, 0)
	body = o.AppendUint64(body, 1<<64-1)
	return ngBlock(o, b, 0x0a0d0d0a, append(body, options...))
}

func ngIface(o byteOrder, b []byte, link uint16, snaplen uint32, options ...byte) []byte {
	body := o.AppendUint16(nil, link)
	body = o.AppendUint16(body, 0)
	return ngBlock(o, b, 1, append(words(o, body, snaplen), options...))
}

func ngOption(o byteOrder, code uint16, value ...byte) []byte {
	b := o.AppendUint16(nil, code)
	b = o.AppendUint16(b, uint16(len(value)))
	return pad(append(b, value...))
}

func ngEnhanced(o byteOrder, b []byte, iface uint32, time uint64, length uint32, frame string, options ...byte) []byte {
	body := words(o, nil, iface, uint32(time>>32), uint32(time), uint32(len(frame)), length)
	return ngBlock(o, b, 6, append(pad(append(body, frame...)), options...))
}

func ngObsolete(o byteOrder, b []byte, iface uint16, time uint64, length uint32, frame string) []byte {
	body := o.AppendUint16(nil, iface)
	body = o.AppendUint16(body, 0xffff) // drops unknown
	body = words(o, body, uint32(time>>32), uint32(time), uint32(len(frame)), length)
	return ngBlock(o, b, 2, append(body, frame...))
}

func ngSimple(o byteOrder, b []byte, length uint32, frame string) []byte {
	return ngBlock(o, b, 3, append(words(o, nil, length), frame...))
}

// zip compresses parts into one gzip member each.
func zip(t testing.TB, parts ...[]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	for _, part := range parts {
		z := gzip.NewWriter(&b)
		if _, err := z.Write(part); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// read returns all records of src, with Frames of their own, and what ended them: nil at a clean end. A Frame's
// capacity ends with it, so that appending to it does not write over the packets to come.
func read(src io.Reader) ([]Record, error) {
	r, err := NewReader(src)
	if err != nil {
		return nil, err
	}
	var recs []Record
	for {
		rec, err := r.Next()
		if err == io.EOF {
			return recs, nil
		}
		if err != nil {
			return recs, err
		}
		if cap(rec.Frame) != len(rec.Frame) {
			return recs, fmt.Errorf("a frame of %d bytes has a capacity of %d", len(rec.Frame), cap(rec.Frame))
		}
		rec.Frame = slices.Clone(rec.Frame)
		recs = append(recs, rec)
	}
}

func same(a, b Record) bool {
	return a.Time == b.Time && a.Link == b.Link && a.Length == b.Length && bytes.Equal(a.Frame, b.Frame)
}

// check compares records.
func check(t *testing.T, got, want []Record) {
	t.Helper()
	if !slices.EqualFunc(got, want, same) {
		t.Errorf("records\n got %v\nwant %v", got, want)
	}
}
