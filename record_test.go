package hoplag

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// small is a Config of small records.
func small() Config {
	c := Config{Key: "k", Flows: 10}
	c.Cells.Banks[0].Rows, c.Cells.SumBits, c.Cells.DigestBits = 64, 64, 16
	return c.withDefaults()
}

// someRecord has packets of both directions.
func someRecord(c *Config) record {
	r := record{session: 77, after: -3, through: 9, forth: newTally(c), back: newTally(c)}
	for i := range uint64(100) {
		e := entry{packet: hashing.Word(1, i), flow: hashing.Flow(i % 5), time: int64(i)}
		r.forth.add([]entry{e})
		r.back.add([]entry{e, e})
	}
	return r
}

func TestRecordSurvivesTheWire(t *testing.T) {
	c := small()
	seal := newSealer(c)
	want := someRecord(&c)
	data := seal.record(want)
	got, err := seal.decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if got.session != want.session || got.after != want.after || got.through != want.through {
		t.Errorf("got %+v", got)
	}
	for i, pair := range [][2]*tally{{want.forth, got.forth}, {want.back, got.back}} {
		if a, b := pair[0].packets(), pair[1].packets(); a != b {
			t.Errorf("direction %d: %d packets, want %d", i, b, a)
		}
		a, _ := pair[0].flows.MarshalBinary()
		b, _ := pair[1].flows.MarshalBinary()
		if !bytes.Equal(a, b) {
			t.Errorf("direction %d: flows differ", i)
		}
	}
	if !bytes.Equal(seal.record(got), data) {
		t.Error("encoded again it is another record")
	}
}

// Every change of a bit and every cut is refused, and so is another key.
func TestRecordsAreSealed(t *testing.T) {
	c := small()
	seal := newSealer(c)
	data := seal.record(someRecord(&c))
	for i := range data {
		for _, bit := range []byte{1, 0x80} {
			bad := slices.Clone(data)
			bad[i] ^= bit
			if _, err := seal.decode(bad); err == nil {
				t.Fatalf("bit %#x of byte %d may be changed", bit, i)
			}
		}
	}
	for n := range data {
		if _, err := seal.decode(data[:n]); err == nil {
			t.Fatalf("%d bytes of %d are enough", n, len(data))
		}
	}
	c.Key = "K"
	other := newSealer(c)
	if _, err := other.decode(data); !errors.Is(err, estimate.ErrMismatch) {
		t.Errorf("another key: %v", err)
	}
	// The right identity, which is no secret, without the key.
	forger := other
	forger.identity = seal.identity
	if _, err := seal.decode(forger.record(record{through: 1})); !errors.Is(err, ErrForged) {
		t.Errorf("a forged record: %v", err)
	}
}

// Points that count differently are told what differs.
func TestRecordsOfAnotherConfig(t *testing.T) {
	c := small()
	seal := newSealer(c)
	for name, change := range map[string]func(*Config){
		"Cut":   func(c *Config) { c.Cut = time.Second },
		"Cells": func(c *Config) { c.Cells.Banks[0].Rows = 128 },
		"Bits":  func(c *Config) { c.Cells.Banks[0].Shift = 1 },
		"Flows": func(c *Config) { c.Flows = 100 },
	} {
		o := small()
		change(&o)
		other := newSealer(o)
		if _, err := seal.decode(other.record(someRecord(&o))); !errors.Is(err, estimate.ErrMismatch) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Who does not ask for flows can do with a point that knows them.
	none := small()
	none.Flows = 0
	plain := newSealer(none)
	if r, err := plain.decode(seal.record(someRecord(&c))); err != nil || r.forth.packets() != 100 {
		t.Errorf("without flows: %v", err)
	}
}

// Whoever has the key can still send nonsense, by mistake: it is an error, and
// takes no more memory than a record.
func TestSignedNonsense(t *testing.T) {
	c := small()
	seal := newSealer(c)
	good := seal.record(someRecord(&c))
	body := good[:len(good)-tagSize-4] // without the checksum
	const sizesAt = 5 + 8 + 4*8
	for name, change := range map[string]func([]byte) []byte{
		"a cut that ends before it begins": func(b []byte) []byte {
			binary.BigEndian.PutUint64(b[5+8+3*8:], uint64(1)<<63)
			return b
		},
		"a size of four gigabytes": func(b []byte) []byte {
			binary.BigEndian.PutUint32(b[sizesAt:], 1<<32-1)
			return b
		},
		"a size too small":     func(b []byte) []byte { b[sizesAt+3]--; return b },
		"no sizes":             func(b []byte) []byte { return b[:sizesAt] },
		"nothing compressed":   func(b []byte) []byte { return b[:sizesAt+16] },
		"half of it":           func(b []byte) []byte { return b[:len(b)/2] },
		"bytes that are left":  func(b []byte) []byte { clear(b[sizesAt+8 : sizesAt+16]); return b },
		"a wrong compression":  func(b []byte) []byte { b[sizesAt+16] ^= 0xff; return b },
		"other people's magic": func(b []byte) []byte { b[0]++; return b },
	} {
		bad := seal.seal(change(slices.Clone(body)))
		if _, err := seal.decode(bad); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// No bytes make a decoder panic or take what is not signed.
func FuzzDecode(f *testing.F) {
	c := small()
	seal := newSealer(c)
	p := &Point{config: c, clock: newTimeline(), seal: seal}
	p.history.limit = 1 << 20
	record := seal.record(someRecord(&c))
	p.history.add(stored{77, 9, 0, record})
	q := newRequest(position{77, 3})
	request := seal.request(q)
	reply, err := p.Answer(request)
	if err != nil {
		f.Fatal(err)
	}
	for _, message := range [][]byte{record, request, reply, nil} {
		f.Add(message, false)
		f.Add(message[:max(0, len(message)-tagSize-4)], true)
	}
	f.Fuzz(func(t *testing.T, data []byte, sign bool) {
		if sign {
			data = seal.seal(slices.Clone(data)) // by someone who has the key
		}
		if r, err := seal.decode(data); err == nil && !bytes.Equal(seal.record(r), data) && !sign {
			t.Error("a record has two encodings")
		}
		p.Answer(data)
		seal.reply(q, data)
		pairing := newPairing(c)
		if pairing.take(first, data) == nil {
			pairing.take(second, record)
			pairing.next()
		}
	})
}
