package lda

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// golden is of two cells, a digest of 12 bits and sums of 20. The format does not change.
var golden = struct {
	config Config
	hex    string
}{
	Config{Identity: 0x0102030405060708, Banks: [maxBanks]Bank{{Rows: 2, Shift: 1}}, SumBits: 20, DigestBits: 12},
	"484c444102" + // magic, version
		"0102030405060708" + "14" + "0c" + "01" + "01" + "01" + // identity, sums, digest, banks, log2 of rows, shift
		"0000000000000001" + // not sampled
		"00000001" + "0444" + "0fffff" + // row 0: one packet, digest, sum
		"00000002" + "0223" + "000007" + // row 1: two
		"8be75f20",
}

func goldenState(t testing.TB) *Aggregator {
	a := mustNewFor(t, golden.config)
	a.Update(0x1222_3444_0000_0000, -1) // row 0
	a.Update(0x1222_3111_0000_0001, 3)
	a.Update(0x1222_3112_0000_0003, 4)
	a.Update(0x8000_0000_0000_0000, 5) // not sampled
	return a
}

func TestGolden(t *testing.T) {
	got, err := goldenState(t).MarshalBinary()
	if err != nil || hex.EncodeToString(got) != golden.hex {
		t.Errorf("encoding %x, %v\nwant     %s", got, err, golden.hex)
	}
	if want := golden.config.EncodedSize(); len(got) != want {
		t.Errorf("%d bytes, EncodedSize says %d", len(got), want)
	}
	var back Aggregator
	if err := back.UnmarshalBinary(got); err != nil {
		t.Fatal(err)
	}
	assertSame(t, "decoded", &back, goldenState(t))
	if back.Config() != golden.config {
		t.Errorf("decoded Config %+v, want %+v", back.Config(), golden.config)
	}
	// The paper's size: 1,024 counters of 72 bits.
	paper := Config{Banks: [maxBanks]Bank{{Rows: 1024}}, SumBits: 40}
	if cells := paper.EncodedSize() - (&Config{Banks: [maxBanks]Bank{{Rows: 1}}, SumBits: 40}).EncodedSize(); cells != 1023*9 {
		t.Errorf("1,023 cells take %d bytes, want 9 each", cells)
	}
}

// reseal gives bytes the checksum that they should have, if they have one.
func reseal(data []byte) []byte {
	if len(data) < 4 {
		return data
	}
	body := data[:len(data)-4]
	return binary.BigEndian.AppendUint32(bytes.Clone(body), crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
}

// malformed are changes to the golden encoding that make it wrong, and what the error says.
var malformed = []struct {
	name   string
	change func([]byte) []byte
	want   string
}{
	{"empty", func(b []byte) []byte { return nil }, "too short"},
	{"magic", func(b []byte) []byte { b[0] = 'X'; return reseal(b) }, "magic"},
	{"version", func(b []byte) []byte { b[4] = 3; return reseal(b) }, "version"},
	{"checksum", func(b []byte) []byte { b[20]++; return b }, "checksum"},
	{"sum bits", func(b []byte) []byte { b[13] = 0; return reseal(b) }, "SumBits"},
	{"digest bits", func(b []byte) []byte { b[14] = 33; return reseal(b) }, "DigestBits"},
	{"no bank", func(b []byte) []byte { b[15] = 0; return reseal(b) }, "Banks[0]"},
	{"five banks", func(b []byte) []byte { b[15] = 5; return reseal(b) }, "5 banks"},
	{"rows", func(b []byte) []byte { b[16] = 25; return reseal(b) }, "Rows"},
	{"rows beyond counting", func(b []byte) []byte { b[16] = 255; return reseal(b) }, "Rows"},
	{"more rows than bytes", func(b []byte) []byte { b[16] = 24; return reseal(b) }, "bytes, want"},
	{"shift", func(b []byte) []byte { b[17] = 40; return reseal(b) }, "Shift"},
	{"unsampled", func(b []byte) []byte { b[18] = 1; return reseal(b) }, "not sampled"},
	{"wide digest", func(b []byte) []byte { b[30] |= 0x10; return reseal(b) }, "wider"},
	{"wide sum", func(b []byte) []byte { b[32] |= 0x10; return reseal(b) }, "wider"},
	{"longer", func(b []byte) []byte { return reseal(append(b, 0)) }, "bytes, want"},
}

func TestMalformed(t *testing.T) {
	good, _ := hex.DecodeString(golden.hex)
	check := func(name string, data []byte, want string) {
		a := mustNewFor(t, twoBanks(3))
		a.Update(77, 8)
		before, _ := a.MarshalBinary()
		err := a.UnmarshalBinary(data)
		if !errors.Is(err, estimate.ErrEncoding) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want ErrEncoding that says %q", name, err, want)
		}
		if after, _ := a.MarshalBinary(); !bytes.Equal(before, after) {
			t.Errorf("%s: the receiver changed", name)
		}
	}
	for _, m := range malformed {
		check(m.name, m.change(bytes.Clone(good)), m.want)
	}
	for n := range good {
		check("truncated", good[:n], "")
		check("truncated and sealed again", reseal(good[:n]), "")
	}
}

// Unsampled packets are counted in cells of 32 bits that must not overflow when counting goes on after decoding.
func TestUnsampledIsSpread(t *testing.T) {
	a := mustNewFor(t, golden.config)
	a.setUnsampled(1 << 35)
	for range 100 {
		a.Update(1<<63, 1)
	}
	if n := a.unsampledCount(); n != 1<<35+100 {
		t.Errorf("%d, want 2^35 + 100", n)
	}
}

func FuzzUnmarshal(f *testing.F) {
	good, _ := hex.DecodeString(golden.hex)
	f.Add(good)
	for _, m := range malformed {
		f.Add(m.change(bytes.Clone(good)))
	}
	for n := range good {
		f.Add(good[:n])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, data := range [][]byte{data, reseal(data)} {
			var a Aggregator
			if err := a.UnmarshalBinary(data); err != nil {
				if !errors.Is(err, estimate.ErrEncoding) {
					t.Fatalf("%v does not wrap ErrEncoding", err)
				}
				continue
			}
			again, err := a.MarshalBinary()
			if err != nil || !bytes.Equal(again, data) {
				t.Fatalf("decoded and encoded again: %x, %v, was %x", again, err, data)
			}
			a.Update(hashing.Packet(len(data)), 1)
		}
	})
}
