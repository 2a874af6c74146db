package lds

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

func mustNewSimple(t testing.TB, c SimpleConfig) *Simple {
	t.Helper()
	s, err := NewSimple(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSimpleIsFigures2And3 holds SDS to its pseudocode over maps.
func TestSimpleIsFigures2And3(t *testing.T) {
	for _, c := range []SimpleConfig{
		{Rows: 4, Columns: 37, SumBits: 48}, {Rows: 1, Columns: 5, SumBits: 33}, {Rows: 7, Columns: 1000, SumBits: 64},
	} {
		s := mustNewSimple(t, c)
		slow := &slowSketch{Config: Config{Columns: c.Columns}}
		type cell struct{ S, N int64 }
		cells := map[[2]int]cell{}
		for _, p := range packets(51, 3000, 100) {
			delay := p.delay - 100000 // some negative
			s.Update(p.flow, delay)
			for i := range c.Rows {
				at := [2]int{i, slow.home(i, p.flow)}
				cells[at] = cell{cells[at].S + delay, cells[at].N + 1}
			}
		}
		for i := range uint64(100) {
			f := hashing.Flow(hashing.Word(1, i))
			least := cell{N: math.MaxInt64}
			for i := range c.Rows {
				if x := cells[[2]int{i, slow.home(i, f)}]; x.N < least.N {
					least = x
				}
			}
			got, err := s.Estimate(f)
			if least.N == 0 {
				if !errors.Is(err, estimate.ErrNoSamples) {
					t.Errorf("%+v, %v of a flow that was not there", got, err)
				}
			} else if err != nil || got.N != uint64(least.N) || got.Mean != float64(least.S)/float64(least.N) {
				t.Errorf("%+v, %v, want %+v", got, err, least)
			}
		}
	}
}

// TestSimpleIsLDS: with a spread of 1, no loss and no tolerance, the difference
// of two sketches is an SDS of the delays (section 2.3.1).
func TestSimpleIsLDS(t *testing.T) {
	c := shapes()["plain"]
	c.Tolerance = 0
	stream := packets(52, 3000, 500)
	up, down := fill(t, c, stream)
	s := mustNewSimple(t, SimpleConfig{Rows: c.Rows, Columns: c.Columns, SumBits: 48})
	for _, p := range stream {
		s.Update(p.flow, p.delay)
	}
	same := 0
	for _, p := range stream {
		a, errA := Estimate(up, down, p.flow)
		b, errB := s.Estimate(p.flow)
		if errA != nil || errB != nil || a.N != b.N {
			t.Fatalf("%+v, %v; %+v, %v", a, errA, b, errB)
		}
		// More than one cell may be least loaded; then LDS takes them all.
		if a.Selected == 1 {
			same++
			if math.Abs(a.Mean-b.Mean) > 1e-9*b.Mean {
				t.Errorf("%v, %v", a.Mean, b.Mean)
			}
		}
	}
	if same == 0 {
		t.Error("nothing was compared")
	}
}

func TestSimpleMergeAndReset(t *testing.T) {
	c := SimpleConfig{Rows: 3, Columns: 50, SumBits: 40}
	whole, a, b := mustNewSimple(t, c), mustNewSimple(t, c), mustNewSimple(t, c)
	for i, p := range packets(53, 1000, 80) {
		whole.Update(p.flow, p.delay)
		[]*Simple{a, b}[i%2].Update(p.flow, p.delay)
	}
	if err := a.Merge(b); err != nil || !bytes.Equal(encode(t, a), encode(t, whole)) {
		t.Errorf("merged shards are not one: %v", err)
	}
	a.Reset()
	if !bytes.Equal(encode(t, a), encode(t, mustNewSimple(t, c))) {
		t.Error("Reset leaves something")
	}
	c.Identity++
	if err := a.Merge(mustNewSimple(t, c)); !errors.Is(err, estimate.ErrMismatch) {
		t.Error(err)
	}
}

// A sum is as wide as Config says before it is encoded, too.
func TestSimpleSumsWrap(t *testing.T) {
	for _, step := range []struct{ delay, want int64 }{{1<<18 - 1, 1<<18 - 1}, {-1 << 18, -1 << 18}, {1 << 18, -1 << 18}} {
		s := mustNewSimple(t, SimpleConfig{Rows: 2, Columns: 3, SumBits: 20})
		s.Update(7, step.delay)
		s.Update(7, step.delay) // 2^19 is one more than a sum of 20 bits holds
		before, err := s.Estimate(7)
		if err != nil || before.Mean != float64(step.want) {
			t.Errorf("delays of %d: %+v, %v, want %d", step.delay, before, err, step.want)
		}
		var back Simple
		if err := back.UnmarshalBinary(encode(t, s)); err != nil {
			t.Fatal(err)
		}
		if after, err := back.Estimate(7); err != nil || after != before {
			t.Errorf("delays of %d: %+v, %v after encoding, %+v before", step.delay, after, err, before)
		}
	}
}

func simpleGolden(t testing.TB) *Simple {
	s := mustNewSimple(t, SimpleConfig{Identity: 0x0123456789abcdef, Rows: 2, Columns: 3, SumBits: 20})
	s.Update(0xd000000000000000, -5)
	s.Update(0xd000000000000000, 2)
	return s
}

func TestSimpleGoldenBytes(t *testing.T) {
	want := strings.Join(strings.Fields(`
		48534453 02 0123456789abcdef 02 00000003 14
		000000 00000000  000000 00000000  0ffffd 00000002
		000000 00000000  0ffffd 00000002  000000 00000000
	`), "")
	got := hex.EncodeToString(encode(t, simpleGolden(t)))
	if got[:len(got)-8] != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	var back Simple
	if err := back.UnmarshalBinary(encode(t, simpleGolden(t))); err != nil {
		t.Fatal(err)
	}
	if r, err := back.Estimate(0xd000000000000000); err != nil || r != (SimpleResult{Mean: -1.5, N: 2}) {
		t.Errorf("%+v, %v", r, err)
	}
}

func simpleMalformed(t testing.TB) map[string][]byte {
	good := encode(t, simpleGolden(t))
	tampered := func(at int, with ...byte) []byte {
		b := bytes.Clone(good)
		copy(b[at:], with)
		return reseal(b)
	}
	return map[string][]byte{
		"empty":        nil,
		"magic":        tampered(1, 'L'),
		"version":      tampered(4, 0),
		"checksum":     append(bytes.Clone(good[:len(good)-1]), good[len(good)-1]^1),
		"no rows":      tampered(13, 0),
		"rows":         tampered(13, 200),
		"no columns":   tampered(14, 0, 0, 0, 0),
		"columns":      tampered(14, 0xff, 0xff, 0xff, 0xff),
		"more columns": tampered(14, 1, 0, 0, 0),
		"no bits":      tampered(18, 0),
		"bits":         tampered(18, 65),
		"fewer bits":   tampered(18, 19),
		"sum too wide": tampered(19, 0x10),
		"a byte more":  reseal(append(bytes.Clone(good), 0)),
		"a byte less":  reseal(bytes.Clone(good[:len(good)-1])),
		"LDS, not SDS": encode(t, golden(t)),
	}
}

func TestSimpleMalformedIsRefused(t *testing.T) {
	records := simpleMalformed(t)
	good := encode(t, simpleGolden(t))
	for n := range good {
		records[string(good[:n])] = good[:n]
		if n < len(good)-4 {
			records["sealed "+string(good[:n])] = reseal(append(bytes.Clone(good[:n]), 0, 0, 0, 0))
		}
	}
	for name, b := range records {
		s := simpleGolden(t)
		if err := s.UnmarshalBinary(b); !errors.Is(err, estimate.ErrEncoding) {
			t.Errorf("%q: error %v", name, err)
		}
		if !bytes.Equal(encode(t, s), good) {
			t.Errorf("%q: the receiver changed", name)
		}
	}
}

func FuzzSimpleUnmarshal(f *testing.F) {
	f.Add(encode(f, simpleGolden(f)))
	for _, b := range simpleMalformed(f) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= 4 {
			b = reseal(bytes.Clone(b))
		}
		var s Simple
		if err := s.UnmarshalBinary(b); err != nil {
			if !errors.Is(err, estimate.ErrEncoding) {
				t.Errorf("error %v", err)
			}
		} else if !bytes.Equal(encode(t, &s), b) {
			t.Error("encoded again, the bytes differ")
		}
	})
}

func TestSimpleConfigIsValidated(t *testing.T) {
	for want, c := range map[string]SimpleConfig{
		"Rows is 0":          {Columns: 1, SumBits: 40},
		"Rows is 9":          {Rows: 9, Columns: 1, SumBits: 40},
		"Columns is 0":       {Rows: 1, SumBits: 40},
		"Columns is 4194305": {Rows: 1, Columns: maxColumns + 1, SumBits: 40},
		"SumBits is 0":       {Rows: 1, Columns: 1},
		"SumBits is 65":      {Rows: 1, Columns: 1, SumBits: 65},
	} {
		if _, err := NewSimple(c); !errors.Is(err, estimate.ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	if _, err := NewSimple(DefaultSimpleConfig); err != nil {
		t.Error(err)
	}
}

func TestSimpleHasPacketsSizesAndTurns(t *testing.T) {
	c := SimpleConfig{Rows: 3, Columns: 70, SumBits: 40}
	r, err := NewSimpleRotation(c)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 500 {
		r.Active().Update(hashing.Flow(hashing.Word(1, uint64(i%7))), 5)
	}
	done, err := r.Rotate()
	if err != nil {
		t.Fatal(err)
	}
	if n := done.Packets(hashing.Flow(hashing.Word(1, 3))); n < 71 || n > 500 {
		t.Errorf("%d packets, want 71 or some more", n)
	}
	if n := done.Packets(12345); n > 500 {
		t.Errorf("%d packets of a flow that was not there", n)
	}
	if got := len(encode(t, done)); got != c.EncodedSize() {
		t.Errorf("%d bytes, want %d", got, c.EncodedSize())
	}
	if err := r.Release(done); err != nil || done.Packets(hashing.Flow(hashing.Word(1, 3))) != 0 {
		t.Errorf("not empty after its release: %v", err)
	}
}
