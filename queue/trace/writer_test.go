package trace

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/hoplag/hoplag/hashing"
)

func TestWriterBytes(t *testing.T) {
	var b bytes.Buffer
	w := must(NewWriter(&b, hashing.LinkCooked2, 4))(t)
	for _, rec := range []Record{
		{1_700_000_000_123_456_789, hashing.LinkCooked2, 1514, []byte("longer than 4")},
		{0, hashing.LinkCooked2, 0, nil},
	} {
		if err := w.Write(rec); err != nil {
			t.Fatal(err)
		}
	}
	const want = "4d3cb2a1 0200 0400 00000000 00000000 04000000 14010000" +
		"00f15365 15cd5b07 04000000 ea050000 6c6f6e67" +
		"00000000 00000000 00000000 00000000"
	if got := hex.EncodeToString(b.Bytes()); got != strings.ReplaceAll(want, " ", "") {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestWriterRefuses(t *testing.T) {
	for _, snaplen := range []int{-1, 0, MaxFrame + 1} {
		if _, err := NewWriter(io.Discard, 1, snaplen); err == nil || !strings.Contains(err.Error(), "snap length") {
			t.Errorf("snap length %d: %v", snaplen, err)
		}
	}
	var b bytes.Buffer
	w := must(NewWriter(&b, 1, 96))(t)
	header := b.Len()
	for _, test := range []struct {
		rec Record
		say string
	}{
		{Record{1, 2, 1, []byte("x")}, "link type 2 in a file of link type 1"},
		{Record{-1, 1, 1, []byte("x")}, "time -1 ns"},
		{Record{NoTime, 1, 1, []byte("x")}, "time -9223372036854775808 ns"},
		{Record{1 << 32 * 1e9, 1, 1, []byte("x")}, "time 4294967296000000000 ns"},
		{Record{1, 1, 0, []byte("x")}, "length 0, want 1"},
	} {
		if err := w.Write(test.rec); err == nil || !strings.Contains(err.Error(), test.say) {
			t.Errorf("%v: %v, want it to say %q", test.rec, err, test.say)
		}
	}
	if b.Len() != header {
		t.Errorf("%d bytes written of packets that were refused", b.Len()-header)
	}
	if err := w.Write(Record{1<<32*1e9 - 1, 1, 1, []byte("x")}); err != nil {
		t.Errorf("the last time of the format: %v", err)
	}
}

// A failing writer fails once its budget of bytes is spent.
type failing struct{ left int }

var errFull = errors.New("disk full")

func (f *failing) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestWriterReportsFailure(t *testing.T) {
	for _, room := range []int{10, 30} {
		w, err := NewWriter(&failing{room}, 1, 96)
		if err == nil {
			err = w.Write(Record{1, 1, 1, []byte("x")})
		}
		if err != errFull || (w == nil) != (room < pcapHeaderSize) {
			t.Errorf("room for %d bytes: %v", room, err)
		}
	}
}

func TestWriteDoesNotAllocate(t *testing.T) {
	w := must(NewWriter(io.Discard, 1, 96))(t)
	rec := Record{1, 1, 1500, make([]byte, 1500)}
	w.Write(rec)
	if allocs := testing.AllocsPerRun(1000, func() { w.Write(rec) }); allocs != 0 {
		t.Errorf("%v allocations a packet", allocs)
	}
}
