package lds

import (
	"bytes"
	"encoding/hex"
	"errors"
	"testing"

	"github.com/hoplag/hoplag/estimate"
)

func sparse(t testing.TB, s *Sketch) []byte {
	t.Helper()
	b, err := s.AppendSparse(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The sparse record holds what the full one does.
func TestSparseIsTheSketch(t *testing.T) {
	for name, c := range shapes() {
		for _, n := range []int{0, 1, 40, 3000} {
			up, _ := fill(t, c, packets(7, n, 20))
			back, _ := fill(t, c, packets(8, 50, 5)) // is replaced
			if err := back.UnmarshalSparse(sparse(t, up)); err != nil || !bytes.Equal(encode(t, back), encode(t, up)) {
				t.Errorf("%s, %d packets: %v", name, n, err)
			}
		}
	}
}

// A thousand flows in the default sketch take a small part of the full record,
// and an empty one its Config.
func TestSparseIsSmall(t *testing.T) {
	up, _ := fill(t, DefaultConfig, packets(9, 20_000, 1000))
	if got, full := len(sparse(t, up)), len(encode(t, up)); got > full/25 {
		t.Errorf("%d bytes of %d", got, full)
	}
	if got := len(sparse(t, mustNew(t, DefaultConfig))); got > 90 {
		t.Errorf("%d bytes for nothing", got)
	}
}

func TestSparseGolden(t *testing.T) {
	got := hex.EncodeToString(sparse(t, golden(t)))
	const want = "484c44430301234567" + "89abcdef" + "0000000000000007" + "fffffffffffffffe" +
		"0200000003023ff00000000000003fe00000000000003fd00000000000000000000000000000280c01" +
		"0006" + "0000000009" + "0b97" + "000000000c30" + "0403" + "fffffffffa" + "0210" + "000000000bb8"
	if got[:len(got)-8] != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestSparseRefuses(t *testing.T) {
	good := sparse(t, golden(t))
	s := golden(t)
	before := encode(t, s)
	for n := range good {
		if err := s.UnmarshalSparse(good[:n]); !errors.Is(err, estimate.ErrEncoding) {
			t.Errorf("%d bytes of %d: %v", n, len(good), err)
		}
	}
	other := mustNew(t, shapes()["plain"])
	if err := other.UnmarshalSparse(good); !errors.Is(err, estimate.ErrMismatch) {
		t.Errorf("another Config: %v", err)
	}
	cells := len(good) - 4 - 2*15
	for name, b := range map[string][]byte{
		"a cell beyond the last":  append(append(bytes.Clone(good[:cells]), 6, 1), good[cells+2:]...),
		"a varint that is longer": append(append(bytes.Clone(good[:cells]), 0x80, 0, 6), good[cells+2:]...),
	} {
		if err := s.UnmarshalSparse(reseal(b)); !errors.Is(err, estimate.ErrEncoding) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !bytes.Equal(encode(t, s), before) {
		t.Error("a refused record changed the sketch")
	}
}

func FuzzUnmarshalSparse(f *testing.F) {
	f.Add(sparse(f, golden(f)))
	f.Fuzz(func(t *testing.T, b []byte) {
		s := golden(t)
		before := encode(t, s)
		if len(b) > 4 {
			b = reseal(b)
		}
		switch err := s.UnmarshalSparse(b); {
		case err != nil && !bytes.Equal(encode(t, s), before):
			t.Error("a refused record changed the sketch")
		case err == nil && !bytes.Equal(sparse(t, s), b):
			t.Errorf("%x is read and written differently", b)
		}
	})
}
