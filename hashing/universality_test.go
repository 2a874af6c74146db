package hashing_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/hashing"
)

// jointChiSquare draws a function per trial and returns the chi-square of the
// joint distribution of one bit of the hash of each input, and its degrees of
// freedom: k independent hashes make all 2^k combinations equally likely.
func jointChiSquare(trials, bit int, words []uint64, draw func(seed uint64) hasher) (x float64, df int) {
	counts := make([]int, 1<<len(words))
	for seed := range uint64(trials) {
		h := draw(seed)
		combination := 0
		for _, word := range words {
			combination = combination<<1 | int(h.Word(word)>>bit&1)
		}
		counts[combination]++
	}
	return chiSquare(counts), len(counts) - 1
}

// The documented independence holds, and where it ends as documented, the
// same check sees it end. The words are the hard ones: their exclusive or is
// zero, and they are the corners of a rectangle in two bytes.
func TestUniversality(t *testing.T) {
	heavy(t)
	h3 := func(seed uint64) hasher { return must(hashing.NewH3(seed, 8)) }
	tabulation := func(seed uint64) hasher { return must(hashing.NewTabulation(seed, 8)) }
	toeplitz := func(seed uint64) hasher { return must(hashing.NewToeplitz(seed, 36)) }
	polynomial := func(seed uint64) hasher { return hashing.NewPolynomial(seed) }
	widened := func(seed uint64) hasher { return widen{hashing.NewPolynomial(seed)} }
	rectangle := []uint64{0, 1, 0x100, 0x101}
	for _, c := range []struct {
		name  string
		draw  func(seed uint64) hasher
		bit   int
		words []uint64
		holds bool
	}{
		{"H3 is 3-universal", h3, 63, rectangle[:3], true},
		{"H3 is not 4-universal", h3, 63, rectangle, false},
		{"tabulation is 3-universal", tabulation, 0, rectangle[:3], true},
		{"tabulation is not 4-universal", tabulation, 0, rectangle, false},
		{"Toeplitz is pairwise independent but for zero", toeplitz, 31, rectangle[1:3], true},
		{"Toeplitz maps zero to zero", toeplitz, 31, rectangle[:2], false},
		{"the polynomial is 4-universal", polynomial, 60, rectangle, true},
		{"the polynomial is 4-universal in any bit", polynomial, 0, []uint64{0, 1, 2, 3}, true},
		{"the polynomial stays 4-universal when widened", widened, 63, rectangle, true},
	} {
		const trials = 1 << 13
		x, df := jointChiSquare(trials, c.bit, c.words, c.draw)
		low, high := chiSquareRange(df, 10)
		if holds := x >= low && x <= high; holds != c.holds {
			t.Errorf("%s: chi-square %.1f of %d degrees of freedom, range %.1f to %.1f", c.name, x, df, low, high)
		}
	}
}

// widen is a family finished by Word, as its documentation asks for.
type widen struct{ hasher }

func (w widen) Bytes(b []byte) uint64 { return uint64(hashing.Word(1, w.hasher.Bytes(b))) }
func (w widen) Word(x uint64) uint64  { return uint64(hashing.Word(1, w.hasher.Word(x))) }

// Pairs of inputs that differ little collide, in the bits that choose one of
// 64 rows, as often as they are guaranteed to and no oftener.
func TestCollisionRates(t *testing.T) {
	heavy(t)
	pairs := [][2][]byte{}
	base := counting(36)
	for _, change := range []func(b []byte){
		func(b []byte) { b[35] ^= 1 },                                         // the last bit
		func(b []byte) { b[0] ^= 0x80 },                                       // the first bit
		func(b []byte) { b[12], b[13] = b[13], b[12] },                        // neighbours swapped
		func(b []byte) { b[3]++; b[7]-- },                                     // the same sum
		func(b []byte) { copy(b[:16], base[16:32]); copy(b[16:], base[:16]) }, // halves swapped
	} {
		b := append([]byte(nil), base...)
		change(b)
		pairs = append(pairs, [2][]byte{base, b})
	}
	// The rows of a family that owes no uniform bits are those of its widened
	// hash.
	rows := func(h uint64, wide bool) uint64 {
		if !wide {
			h = uint64(hashing.Word(1, h))
		}
		return hashing.Row(h, 64)
	}
	const trials = 1 << 12
	bound := rateBound(1.0/64, trials)
	for _, f := range []struct {
		name string
		draw func(seed uint64) hasher
		wide bool
	}{
		{"H3", func(seed uint64) hasher { return must(hashing.NewH3(seed, 36)) }, true},
		{"Toeplitz", func(seed uint64) hasher { return must(hashing.NewToeplitz(seed, 36)) }, true},
		{"polynomial", func(seed uint64) hasher { return hashing.NewPolynomial(seed) }, false},
		{"SipHash", func(seed uint64) hasher { return hashing.NewSipHash(seed) }, true},
		{"Digest", func(seed uint64) hasher { return digestHasher(seed) }, true},
	} {
		collisions := make([]int, len(pairs))
		for seed := range uint64(trials) {
			h := f.draw(seed)
			for i, pair := range pairs {
				if rows(h.Bytes(pair[0]), f.wide) == rows(h.Bytes(pair[1]), f.wide) {
					collisions[i]++
				}
			}
		}
		for i := range pairs {
			if rate := float64(collisions[i]) / trials; math.Abs(rate-1.0/64) > bound {
				t.Errorf("%s: pair %d collides at a rate of %.4f, want %.4f ± %.4f", f.name, i, rate, 1.0/64, bound)
			}
		}
	}
	// The negative control: a sum of the bytes, times a random odd factor.
	collisions := 0
	for seed := range uint64(trials) {
		sum := func(b []byte) (s uint64) {
			for _, c := range b {
				s += uint64(c)
			}
			return s * (2*seed + 1)
		}
		if hashing.Row(sum(pairs[3][0]), 64) == hashing.Row(sum(pairs[3][1]), 64) {
			collisions++
		}
	}
	if rate := float64(collisions) / trials; math.Abs(rate-1.0/64) <= bound {
		t.Errorf("a sum of bytes passes at a rate of %.4f", rate)
	}
}

// digestHasher is Digest with a seed.
type digestHasher uint64

func (seed digestHasher) Bytes(b []byte) uint64 { return uint64(hashing.Digest(uint64(seed), b)) }
func (seed digestHasher) Word(x uint64) uint64  { return uint64(hashing.Word(uint64(seed), x)) }

// The hashes that claim 64 well-mixed bits avalanche with one seed throughout;
// tables and linear hashes do so over the choice of seed.
func TestFamiliesAvalanche(t *testing.T) {
	heavy(t)
	rng := rand.New(rand.NewPCG(1, 10))
	check := func(name string, n, trials int, hash func(trial int, b []byte) uint64) {
		t.Helper()
		worst, cells := worstAvalanche(rng, n, trials, 1, hash)
		if bound := biasBound(trials, cells); worst > bound {
			t.Errorf("%s: a bit flips at a rate %.3f from one half, bound %.3f", name, worst, bound)
		}
	}
	sip := hashing.NewSipHash(7)
	for _, n := range []int{1, 7, 8, 13, 40} {
		check("SipHash", n, 1024, func(trial int, b []byte) uint64 {
			if n == 1 {
				return hashing.NewSipHash(uint64(trial)).Bytes(b)
			}
			return sip.Bytes(b)
		})
	}
	word := func(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }
	polynomial := hashing.NewPolynomial(7)
	check("widened polynomial", 7, 4096, func(_ int, b []byte) uint64 { // words below 2^61−1
		return widen{polynomial}.Word(word(append(b[:7:7], 0)))
	})
	toeplitz := must(hashing.NewToeplitz(7, 36))
	check("widened Toeplitz", 36, 1024, func(_ int, b []byte) uint64 { return widen{toeplitz}.Bytes(b) })
	rabin := hashing.NewRabin(7)
	check("widened Rabin", 40, 1024, func(_ int, b []byte) uint64 { return widen{rabin}.Bytes(b) })
	for name, draw := range map[string]func(seed uint64) hasher{
		"H3":         func(seed uint64) hasher { return must(hashing.NewH3(seed, 8)) },
		"Tabulation": func(seed uint64) hasher { return must(hashing.NewTabulation(seed, 8)) },
	} {
		var h hasher
		drawn := -1
		check(name, 8, 1024, func(trial int, b []byte) uint64 {
			if trial != drawn {
				h, drawn = draw(uint64(trial)), trial
			}
			return h.Word(word(b))
		})
	}
	// With one seed a linear hash does not avalanche: each input bit flips
	// the same bits always. The check must see that.
	h3 := must(hashing.NewH3(7, 8))
	if worst, cells := worstAvalanche(rng, 8, 1024, 1,
		func(_ int, b []byte) uint64 { return h3.Word(word(b)) }); worst <= biasBound(1024, cells) {
		t.Errorf("H3 with one seed passes: %.3f", worst)
	}
}
