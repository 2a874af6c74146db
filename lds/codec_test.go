package lds

import (
	"bytes"
	"encoding"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"strings"
	"testing"

	"github.com/hoplag/hoplag/estimate"
)

func encode(_ testing.TB, s encoding.BinaryMarshaler) []byte { return must(s.MarshalBinary()) }

// reseal replaces the checksum of a record that was tampered with.
func reseal(b []byte) []byte {
	body := b[:len(b)-4]
	sum := crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli))
	return append(body, byte(sum>>24), byte(sum>>16), byte(sum>>8), byte(sum))
}

func golden(t testing.TB) *Sketch {
	s := mustNew(t, Config{
		Identity: 0x0123456789abcdef, Rows: 2, Columns: 3, Spread: 2, Rates: [MaxRows]float64{1, 0.5},
		Tolerance: 0.25, SumBits: 40, DigestBits: 12,
	})
	s.Update(0xd000000000000000, 0xfedcba9876543210, -6)
	s.Update(0xd000000000000000, 0x0f1e2d3c4b5a6987, 15)
	s.SetInterval(7, -2)
	return s
}

// TestGoldenBytes: the flow's digest is 13/16 of 2^64, so home is column 2 of row 0, as 3 × 13/16 = 2 7/16, and
// column 1 of row 1, as 3 × 7/16 = 1 5/16. In both rows the packets go one column further, in row 0 around the
// end; row 1 sampled only the first. Sums are −6 + 15 and −6, digests the low 12 bits of the packets' sum.
func TestGoldenBytes(t *testing.T) {
	want := strings.Join(strings.Fields(`
		484c4453 05
		0123456789abcdef 0000000000000007 fffffffffffffffe 02 00000003 02
		3ff0000000000000 3fe0000000000000
		3fd0000000000000 0000000000000000 28 0c
		0000000009 00000002 0b97
		0000000000 00000000 0000
		0000000000 00000000 0000
		0000000000 00000000 0000
		0000000000 00000000 0000
		fffffffffa 00000001 0210
		d1beb52d
	`), "")
	got := hex.EncodeToString(encode(t, golden(t)))
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestRoundTrip(t *testing.T) {
	for name, c := range shapes() {
		c.Identity = 99
		up, _ := fill(t, c, packets(6, 500, 20))
		b := encode(t, up)
		var back Sketch
		if err := back.UnmarshalBinary(b); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if back.Config() != c {
			t.Errorf("%s: Config %+v, want %+v", name, back.Config(), c)
		}
		if !bytes.Equal(encode(t, &back), b) {
			t.Errorf("%s: encoded again, the bytes differ", name)
		}
		prefixed, err := up.AppendBinary([]byte("before"))
		if err != nil || !bytes.Equal(prefixed, append([]byte("before"), b...)) {
			t.Errorf("%s: AppendBinary does not append", name)
		}
		if want := 5 + 16 + 14 + 8*c.Rows + 8 + 8 + 2 + c.Rows*c.Columns*c.cellBytes() + 4; len(b) != want {
			t.Errorf("%s: %d bytes, want %d", name, len(b), want)
		}
	}
}

// malformed are records that must be refused, by what is wrong with them.
func malformed(t testing.TB) map[string][]byte {
	good := encode(t, golden(t))
	tampered := func(at int, with ...byte) []byte {
		b := bytes.Clone(good)
		copy(b[at:], with)
		return reseal(b)
	}
	const rows = 5 + 8 + 16
	const tolerance, cells = rows + 6 + 16, rows + 6 + 16 + 8 + 8 + 2
	return map[string][]byte{
		"magic":                tampered(0, 'X'),
		"version":              tampered(4, 3),
		"checksum":             append(bytes.Clone(good[:len(good)-1]), good[len(good)-1]^1),
		"no rows":              tampered(rows, 0),
		"255 rows":             tampered(rows, 255),
		"too many columns":     tampered(rows+1, 0xff, 0xff, 0xff, 0xff),
		"16 million columns":   tampered(rows+1, 1, 0, 0, 0),
		"spread over columns":  tampered(rows+5, 4),
		"tolerance minus zero": tampered(tolerance, 0x80, 0),
		"greatest delay":       tampered(tolerance+8, 0x80),
		"sum bits narrower":    tampered(tolerance+16, 39),
		"digest too wide":      tampered(cells+5+4, 0x10),
		"a byte more":          reseal(append(bytes.Clone(good), 0)),
	}
}

func TestMalformedIsRefused(t *testing.T) {
	bad, good := malformed(t), encode(t, golden(t))
	for n := range len(good) - 4 {
		bad[fmt.Sprint(n, " bytes")], bad[fmt.Sprint(n, " and a checksum")] = good[:n], reseal(append(bytes.Clone(good[:n]), 0, 0, 0, 0))
	}
	for name, b := range bad {
		s := golden(t)
		before := encode(t, s)
		if err := s.UnmarshalBinary(b); !errors.Is(err, estimate.ErrEncoding) {
			t.Errorf("%s: error %v", name, err)
		}
		if !bytes.Equal(encode(t, s), before) {
			t.Errorf("%s: the receiver changed", name)
		}
	}
}

func FuzzUnmarshal(f *testing.F) {
	f.Add(encode(f, golden(f)))
	for _, b := range malformed(f) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		// With the right checksum, so that decoding gets past it.
		if len(b) >= 4 {
			b = reseal(bytes.Clone(b))
		}
		var s Sketch
		if err := s.UnmarshalBinary(b); err != nil {
			if !errors.Is(err, estimate.ErrEncoding) {
				t.Errorf("error %v", err)
			}
			return
		}
		if !bytes.Equal(encode(t, &s), b) {
			t.Error("encoded again, the bytes differ")
		}
		s.Update(1, 2, 3)
		if _, err := Estimate(&s, &s, 1); err != nil && !errors.Is(err, estimate.ErrNoSamples) {
			t.Error(err)
		}
	})
}

func TestConfigIsValidated(t *testing.T) {
	with := func(change func(*Config)) Config { c := DefaultConfig; change(&c); return c }
	for want, c := range map[string]Config{
		"Rows is 0, want 1 to 8":           with(func(c *Config) { c.Rows = 0 }),
		"Rows is 9, want 1 to 8":           with(func(c *Config) { c.Rows = 9 }),
		"Columns is -1, want 1 to 4194304": with(func(c *Config) { c.Columns = -1 }),
		"Columns is 4194305":               with(func(c *Config) { c.Columns = maxColumns + 1 }),
		"Spread is 0, want 1 to 64":        with(func(c *Config) { c.Spread = 0 }),
		"Spread is 65, want 1 to 64":       with(func(c *Config) { c.Spread = 65 }),
		"Spread is 5, want 1 to 4":         with(func(c *Config) { c.Columns, c.Spread = 4, 5 }),
		"Rates[3] is 0, want":              with(func(c *Config) { c.Rates[3] = 0 }),
		"Rates[0] is 1.5, want":            with(func(c *Config) { c.Rates[0] = 1.5 }),
		"Rates[0] is NaN, want":            with(func(c *Config) { c.Rates[0] = math.NaN() }),
		"Rates[4] is 1, want 0 to 0":       with(func(c *Config) { c.Rates[4] = 1 }),
		"Tolerance is -0.1, want 0 to":     with(func(c *Config) { c.Tolerance = -0.1 }),
		"Tolerance is NaN, want 0 to":      with(func(c *Config) { c.Tolerance = math.NaN() }),
		"Tolerance is +Inf, want 0 to":     with(func(c *Config) { c.Tolerance = math.Inf(1) }),
		"SumBits is 0, want 1 to 64":       with(func(c *Config) { c.SumBits = 0 }),
		"DigestBits is 33, want 0 to 32":   with(func(c *Config) { c.DigestBits = 33 }),
	} {
		s, err := New(c)
		if s != nil || !errors.Is(err, estimate.ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	for _, c := range []TableConfig{
		{}, {Flows: 12, SumBits: 56}, {Flows: 8}, {Flows: 8, SumBits: 65}, {Flows: 8, SumBits: 1, DigestBits: 33},
	} {
		if _, err := NewTable(c); !errors.Is(err, estimate.ErrConfig) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
