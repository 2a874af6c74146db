package hashing_test

import (
	"encoding/binary"
	"math"
	"math/bits"
	"testing"

	"github.com/hoplag/hoplag/hashing"
)

// Row i begins at i·2^32/rows, rounded up: each row gets its share of the 2^32 values to within one, whatever
// is in the high half.
func TestRowExact(t *testing.T) {
	for _, rows := range []uint64{1, 2, 3, 7, 1000, 17500, 455334, 1<<31 + 1, 1 << 32} {
		for _, i := range []uint64{0, 1, rows / 3, rows - 1} {
			first, high := (i<<32+rows-1)/rows, i*0x9e3779b9<<32
			if got := hashing.Row(high|first, rows); i < rows && got != i {
				t.Errorf("Row(%d, %d) = %d, want %d", first, rows, got, i)
			}
			if first > 0 && i < rows && hashing.Row(high|(first-1), rows) != i-1 {
				t.Errorf("row %d of %d begins before %d", i, rows, first)
			}
		}
	}
}

func TestThreshold(t *testing.T) {
	for _, c := range []struct {
		p    float64
		want uint64
	}{
		{math.NaN(), 0}, {math.Inf(-1), 0}, {-1, 0}, {0, 0}, {0x1p-34, 0}, {0x1p-33, 1}, {0x1p-32, 1},
		{0.25, 1 << 30}, {0.5, 1 << 31}, {1 - 0x1p-32, 1<<32 - 1}, {1 - 0x1p-40, 1 << 32}, {1, 1 << 32}, {2, 1 << 32}, {math.Inf(1), 1 << 32},
	} {
		if got := hashing.Threshold(c.p); got != c.want {
			t.Errorf("Threshold(%v) = %d, want %d", c.p, got, c.want)
		}
	}
}

func TestSampledExact(t *testing.T) {
	for _, threshold := range []uint64{0, 1, 2, 1 << 30, 1 << 31, 1<<32 - 1, 1 << 32} {
		for _, high := range []uint64{0, 1, 1<<30 - 1, 1 << 30, 1<<31 - 1, 1 << 31, 1<<32 - 2, 1<<32 - 1} {
			if got := hashing.Sampled(high<<32|high, threshold); (got == 1) != (high < threshold) || got > 1 {
				t.Errorf("Sampled(%#x, %d) = %d", high<<32|high, threshold, got)
			}
		}
	}
}

// Two values that a synopsis derives from one identity must be independent: chi-square of their joint
// distribution, over digests of a counter. The negative controls are pairs that the documentation warns of.
func TestDerivationsIndependent(t *testing.T) {
	heavy(t)
	row := func(h uint64) int { return int(hashing.Row(h, 32)) }
	odd := func(h uint64) int { return int(hashing.Row(h, 30)) } // not a power of two
	bank := func(h uint64) int { return min(bits.LeadingZeros64(h), 3) }
	quarter := hashing.Threshold(0.25)
	sampled := func(h uint64) int { return int(hashing.Sampled(h, quarter)) }
	mixed := func(salt uint64, f func(uint64) int) func(uint64) int {
		return func(h uint64) int { return f(hashing.Mix(h, salt)) }
	}
	// A flow, and its packet that is hashed with the flow's own seed.
	tuple := func(h uint64) hashing.Tuple { return tupleOf(binary.BigEndian.AppendUint64(make([]byte, 29), h)) }
	flow := func(h uint64) int { t := tuple(h); return row(uint64(t.Flow(7))) }
	packet := func(h uint64) int { t := tuple(h); return row(uint64(hashing.Digest(7, t.Append(nil)))) }
	uniform := func(n int) []float64 {
		p := make([]float64, n)
		for i := range p {
			p[i] = 1 / float64(n)
		}
		return p
	}
	banks := []float64{1. / 2, 1. / 4, 1. / 8, 1. / 8}
	quarters := []float64{0.75, 0.25}
	cases := []struct {
		name   string
		f, g   func(uint64) int
		pf, pg []float64
		holds  bool
	}{
		{"row and bank", row, bank, uniform(32), banks, true},
		{"row of 30 and bank", odd, bank, uniform(30), banks, true},
		{"row and sample", row, sampled, uniform(32), quarters, true},
		{"row and mixed row", row, mixed(1, row), uniform(32), uniform(32), true},
		{"rows of two salts", mixed(0, row), mixed(1, row), uniform(32), uniform(32), true},
		{"rows of 30 of two salts", mixed(2, odd), mixed(3, odd), uniform(30), uniform(30), true},
		{"bank and mixed bank", bank, mixed(1, bank), banks, banks, true},
		{"sample and mixed bank", sampled, mixed(1, bank), quarters, banks, true},
		{"row and mixed bank", row, mixed(1, bank), uniform(32), banks, true},
		{"flow and packet", flow, packet, uniform(32), uniform(32), true},
		{"sample and bank of one hash", sampled, bank, quarters, banks, false},
		{"row with itself", row, row, uniform(32), uniform(32), false},
		{"row and row of 30 of one hash", row, odd, uniform(32), uniform(30), false},
	}
	const n = 1 << 17
	for _, c := range cases {
		counts := make([][]int, len(c.pf))
		for i := range counts {
			counts[i] = make([]int, len(c.pg))
		}
		for i := range uint64(n) {
			h := uint64(hashing.Word(7, i))
			counts[c.f(h)][c.g(h)]++
		}
		x := 0.0
		for i, p := range c.pf {
			for j, q := range c.pg {
				expected := n * p * q
				x += (float64(counts[i][j]) - expected) * (float64(counts[i][j]) - expected) / expected
			}
		}
		df := len(c.pf)*len(c.pg) - 1
		low, high := chiSquareRange(df, len(cases))
		if holds := x >= low && x <= high; holds != c.holds {
			t.Errorf("%s: chi-square %.0f of %d degrees of freedom, range %.0f to %.0f, want inside: %v", c.name, x, df, low, high, c.holds)
		}
	}
}
