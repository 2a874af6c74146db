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

// someTallies have packets of both directions.
func someTallies(c *Config) [2]*tally {
	all := [2]*tally{newTally(c), newTally(c)}
	for i := range uint64(100) {
		e := entry{packet: hashing.Word(1, i), flow: hashing.Flow(i % 5), time: int64(i)}
		all[forth].add([]entry{e})
		all[back].add([]entry{e, e})
	}
	return all
}

func (s *sealer) someRecord() []byte { return s.record(77, -3, 9, someTallies(&s.config)) }

// unpack is what a part of a record counted.
func (s *sealer) unpack(p part) *tally {
	t := newTally(&s.config)
	t.addPart(p)
	return t
}

func TestRecordSurvivesTheWire(t *testing.T) {
	seal := newSealer(small())
	want := someTallies(&seal.config)
	data := seal.someRecord()
	got, err := seal.decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if got.session != 77 || got.after != -3 || got.through != 9 {
		t.Errorf("got %+v", got)
	}
	var tallies [2]*tally
	for i, p := range got.parts {
		tallies[i] = seal.unpack(p)
		a, _ := want[i].all.MarshalBinary()
		b, _ := tallies[i].all.MarshalBinary()
		if !bytes.Equal(a, b) {
			t.Errorf("direction %d: packets differ", i)
		}
		a, _ = want[i].flows.MarshalBinary()
		b, _ = tallies[i].flows.MarshalBinary()
		if !bytes.Equal(a, b) {
			t.Errorf("direction %d: flows differ", i)
		}
	}
	if !bytes.Equal(seal.record(77, -3, 9, tallies), data) {
		t.Error("encoded again it is another record")
	}
}

// Every change of a bit and every cut is refused, and so is another key.
func TestRecordsAreSealed(t *testing.T) {
	c := small()
	seal := newSealer(c)
	data := seal.someRecord()
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
	if _, err := seal.decode(forger.record(1, 0, 1, [2]*tally{})); !errors.Is(err, ErrForged) {
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
		if _, err := seal.decode(other.someRecord()); !errors.Is(err, estimate.ErrMismatch) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Who does not ask for flows can do with a point that knows them.
	none := small()
	none.Flows = 0
	plain := newSealer(none)
	if r, err := plain.decode(seal.someRecord()); err != nil || plain.unpack(r.parts[forth]).all.Packets() != 100 {
		t.Errorf("without flows: %v", err)
	}
}

// Whoever has the key can still send nonsense, by mistake: it is an error, and
// takes no more memory than a record.
func TestSignedNonsense(t *testing.T) {
	c := small()
	seal := newSealer(c)
	good := seal.someRecord()
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
	record := seal.someRecord()
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
		if r, err := seal.decode(data); err == nil {
			again := seal.record(r.session, r.after, r.through, [2]*tally{seal.unpack(r.parts[forth]), seal.unpack(r.parts[back])})
			if !sign && !bytes.Equal(again, data) {
				t.Error("a record has two encodings")
			}
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
