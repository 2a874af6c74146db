package session

import (
	"bytes"
	"errors"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/internal/wire"
)

var (
	noKey Key
	key   = NewKey([16]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15})
)

func sample() Frame {
	return Frame{Kind: Part, Fingerprint: 0x0102030405060708, Session: 9, Interval: 10, Part: 1, Parts: 3, Payload: []byte{0xaa, 0xbb}}
}

// Without the key no frame can be changed: not by flipping a bit, even with the right checksum, not by cutting
// it short, and not with another key or none.
func TestTagsBite(t *testing.T) {
	f := sample()
	good := f.Append(nil, &key)
	check := func(what string, data []byte, want error) {
		t.Helper()
		got := Frame{Session: 77}
		if err := got.Parse(data, &key); !errors.Is(err, want) || got.Session != 77 {
			t.Errorf("%s: %v, %+v, want %v", what, err, got, want)
		}
	}
	other := NewKey([16]byte{1})
	check("another key", f.Append(nil, &other), ErrForged)
	check("no tag", f.Append(nil, &noKey), ErrForged)
	for i := range good {
		check("cut", good[:i], estimate.ErrEncoding)
	}
	for i := 7; i < len(good)-4; i++ {
		bad := bytes.Clone(good[:len(good)-4])
		bad[i] ^= 0x10
		check("changed", seal(bad), ErrForged)
	}
	var got Frame
	if err := got.Parse(good, &noKey); !errors.Is(err, estimate.ErrMismatch) {
		t.Errorf("a tag where there is no key: %v", err)
	}
}

func TestImpossibleFrames(t *testing.T) {
	for _, f := range []Frame{
		{Kind: 0}, {Kind: 9}, {Kind: Start, Interval: 1<<64 - 1}, {Kind: Start, Part: 1}, {Kind: End, Payload: []byte{1}},
		{Kind: Part}, {Kind: Part, Part: 3, Parts: 3}, {Kind: Start, ClockSet: true}, {Kind: Part, Parts: 1}, {Kind: Part + 1},
	} {
		got := Frame{Session: 77}
		if err := got.Parse(f.Append(nil, &noKey), &noKey); !errors.Is(err, estimate.ErrEncoding) || got.Session != 77 {
			t.Errorf("%+v: %v", f, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, frame := range []Frame{
		sample(), {Kind: Start, Session: 1, Interval: 1<<64 - 2}, {Kind: End, ClockSet: true, Fingerprint: 5},
	} {
		for _, k := range []*Key{&noKey, &key} {
			data := frame.Append([]byte("before"), k)[6:]
			if err := new(Frame).Parse(data, k); err != nil {
				f.Errorf("%+v: %v", frame, err)
			}
			f.Add(data)
		}
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, k := range []*Key{&noKey, &key} {
			for _, data := range [][]byte{data, seal(bytes.Clone(data))} {
				var got Frame
				err := got.Parse(data, k)
				if err == nil && !bytes.Equal(got.Append(nil, k), data) {
					t.Errorf("%x is read as %+v", data, got)
				}
				if err != nil && !errors.Is(err, estimate.ErrEncoding) && !errors.Is(err, estimate.ErrMismatch) && !errors.Is(err, ErrForged) {
					t.Errorf("%v", err)
				}
			}
		}
	})
}

// seal appends the checksum of a record.
func seal(b []byte) []byte { return wire.Seal(b, 0) }
