package lda

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// The packed form of goldenState, about time 2.
const goldenPacked = "0102030405060708" + "14" + "0c" + "01" + "01" + "01" + // Config
	"0000000000000002" + "0000000000000001" + // about, not sampled
	"c000000000000000" + "02" + "03" + // both cells; counts of 2 bits, sums of 3
	// 01 · 0x444 · −1 − 2, zigzag 5, 101: 0101 0001 0001 0010 1
	// 10 · 0x223 · 7 − 4, zigzag 6, 110:                       100 0100 0100 0111 10
	"5112c44780"

func TestGoldenPacked(t *testing.T) {
	a := goldenState(t)
	got := a.AppendPacked(nil, 2)
	if hex.EncodeToString(got) != goldenPacked {
		t.Errorf("packed %x\nwant   %s", got, goldenPacked)
	}
	b := mustNewFor(t, golden.config)
	if err := b.AddPacked(got); err != nil {
		t.Fatal(err)
	}
	assertSame(t, "unpacked", b, a)
}

// slowUnpack reads a packed form bit by bit, as text, above all readable.
func slowUnpack(c *Config, data []byte) (cells []cell, unsampled uint64) {
	head := 8 + 3 + 2*c.banks()
	about, unsampled := binary.BigEndian.Uint64(data[head:]), binary.BigEndian.Uint64(data[head+8:])
	var text strings.Builder
	for _, b := range data[head+16:] {
		for bit := 7; bit >= 0; bit-- {
			text.WriteByte('0' + b>>bit&1)
		}
	}
	rest := text.String()
	take := func(bits int) (v uint64) {
		for _, bit := range rest[:bits] {
			v = 2*v + uint64(bit-'0')
		}
		rest = rest[bits:]
		return v
	}
	for left := c.cells(); left > 0; left -= 64 {
		which := take(64)
		var counts, sums int
		if which != 0 {
			counts, sums = int(take(8)), int(take(8))
		}
		for i := range min(64, left) {
			var of cell
			if which>>(63-i)&1 == 1 {
				count, digest, zigzag := take(counts), take(int(c.DigestBits)), take(sums)
				off := int64(zigzag / 2)
				if zigzag%2 == 1 {
					off = -off - 1
				}
				sum := uint64(off) + count*about
				if c.SumBits < 64 {
					sum %= 1 << c.SumBits
				}
				of = cell{sum: sum, tally: digest<<32 + count}
			}
			cells = append(cells, of)
		}
		rest = rest[len(rest)%8:]
	}
	return cells, unsampled
}

// assertUnpacked checks that an aggregator has what slowUnpack reads.
func assertUnpacked(t *testing.T, a *Aggregator, data []byte) {
	t.Helper()
	c := a.Config()
	cells, unsampled := slowUnpack(&c, data)
	if unsampled != a.unsampledCount() || !slices.Equal(cells, a.cells[:len(cells)]) {
		t.Fatalf("%+v: %d packets not sampled in cells %+v, want %d in %+v", c, a.unsampledCount(), a.cells, unsampled, cells)
	}
}

// crowd has packets at all times, some of them copies, in banks of every size.
func crowd(t testing.TB, c Config, seed uint64, packets int) *Aggregator {
	a := mustNewFor(t, c)
	r := rand.New(rand.NewPCG(seed, 1))
	for range packets {
		p, at := hashing.Packet(r.Uint64()>>r.IntN(20)), int64(1e18)+r.Int64N(1e8)
		if r.IntN(100) == 0 {
			at = int64(r.Uint64())
		}
		for range 1 + r.IntN(2)*r.IntN(4) {
			a.Update(p, at)
		}
	}
	return a
}

// Whatever the widths, times and loads, what is unpacked is what was packed and what slowUnpack reads, and adding it is merging.
func TestPackedAgainstBits(t *testing.T) {
	all := append(configs(), golden.config,
		Config{Banks: [maxBanks]Bank{{Rows: 128}}, SumBits: 64, DigestBits: 32},
		Config{Banks: [maxBanks]Bank{{Rows: 1}, {Rows: 64, Shift: 1}}, SumBits: 1})
	for _, c := range all {
		for seed, packets := range []int{0, 1, 30, 1000, 50000} {
			a := crowd(t, c, uint64(seed), packets)
			for _, about := range []int64{1e18, 0, -5, math.MaxInt64} {
				prefix := []byte("kept")
				data := a.AppendPacked(prefix, about)
				if !bytes.HasPrefix(data, prefix) {
					t.Fatal("the prefix is gone")
				}
				data = data[len(prefix):]
				b := mustNewFor(t, c)
				if err := b.AddPacked(data); err != nil {
					t.Fatal(err)
				}
				assertUnpacked(t, b, data)
				assertSame(t, "unpacked", b, a)
			}
			b, c := crowd(t, c, 9, 100), crowd(t, c, 9, 100)
			if err := b.AddPacked(a.AppendPacked(nil, 1e18)); err != nil {
				t.Fatal(err)
			}
			c.Merge(a)
			assertSame(t, "added", b, c)
		}
	}
}

// badPacked are changes to the golden packed form that make it wrong.
var badPacked = []struct {
	name   string
	change func([]byte) []byte
	is     error
}{
	{"empty", func(b []byte) []byte { return nil }, estimate.ErrEncoding},
	{"another Config", func(b []byte) []byte { b[8]++; return b }, estimate.ErrMismatch},
	{"unsampled", func(b []byte) []byte { b[21] = 1; return b }, estimate.ErrEncoding},
	{"a third cell", func(b []byte) []byte { b[29] |= 0x20; return b }, estimate.ErrEncoding},
	{"wide counts", func(b []byte) []byte { b[37] = 33; return append(b, make([]byte, 64)...) }, estimate.ErrEncoding},
	{"wide sums", func(b []byte) []byte { b[38] = 21; return append(b, make([]byte, 64)...) }, estimate.ErrEncoding},
	{"filled up with ones", func(b []byte) []byte { b[43] |= 1; return b }, estimate.ErrEncoding},
	{"longer", func(b []byte) []byte { return append(b, 0) }, estimate.ErrEncoding},
}

func TestBadPacked(t *testing.T) {
	good, _ := hex.DecodeString(goldenPacked)
	check := func(name string, a *Aggregator, data []byte, is error) {
		before, _ := a.MarshalBinary()
		err := a.AddPacked(data)
		if after, _ := a.MarshalBinary(); !errors.Is(err, is) || !bytes.Equal(before, after) {
			t.Errorf("%s: %v, want %v and no change", name, err, is)
		}
	}
	for _, bad := range badPacked {
		check(bad.name, goldenState(t), bad.change(bytes.Clone(good)), bad.is)
	}
	for n := range good {
		check("cut", goldenState(t), good[:n:n], estimate.ErrEncoding)
	}
	many := crowd(t, DefaultConfig, 1, 1000).AppendPacked(nil, 1e18)
	check("its end is missing", crowd(t, DefaultConfig, 2, 1000), many[:len(many)-1], estimate.ErrEncoding)
	many[10]++
	check("more banks than may be", mustNewFor(t, DefaultConfig), many, estimate.ErrEncoding)
}

func FuzzAddPacked(f *testing.F) {
	good, _ := hex.DecodeString(goldenPacked)
	f.Add(good)
	for _, bad := range badPacked {
		f.Add(bad.change(bytes.Clone(good)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		a := mustNewFor(t, golden.config)
		if err := a.AddPacked(data); err != nil {
			if !errors.Is(err, estimate.ErrEncoding) && !errors.Is(err, estimate.ErrMismatch) {
				t.Fatalf("%v wraps neither ErrEncoding nor ErrMismatch", err)
			}
			assertSame(t, "refused", a, mustNewFor(t, golden.config))
			return
		}
		assertUnpacked(t, a, data)
		b := mustNewFor(t, golden.config)
		if err := b.AddPacked(a.AppendPacked(nil, 2)); err != nil {
			t.Fatal(err)
		}
		assertSame(t, "packed again", b, a)
	})
}
