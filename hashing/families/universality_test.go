package families

import "testing"

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
	h3 := func(seed uint64) hasher { return must(NewH3(seed, 8)) }
	toeplitz := func(seed uint64) hasher { return toeplitzOf(seed, 36) }
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
		{"Toeplitz is pairwise independent but for zero", toeplitz, 31, rectangle[1:3], true},
		{"Toeplitz maps zero to zero", toeplitz, 31, rectangle[:2], false},
	} {
		const trials = 1 << 13
		x, df := jointChiSquare(trials, c.bit, c.words, c.draw)
		low, high := bounds[df][0], bounds[df][1]
		if holds := x >= low && x <= high; holds != c.holds {
			t.Errorf("%s: chi-square %.1f of %d degrees of freedom, range %.1f to %.1f", c.name, x, df, low, high)
		}
	}
}

// bounds of a chi-square statistic by its degrees of freedom: each has a
// probability of about 10^-7 beyond it (3 and 7 degrees of freedom).
var bounds = map[int][2]float64{3: {0.0004, 35}, 7: {0.08, 45}, 15: {1.2, 62}}

func chiSquare(counts []int) (x float64) {
	total := 0
	for _, n := range counts {
		total += n
	}
	expected := float64(total) / float64(len(counts))
	for _, n := range counts {
		x += (float64(n) - expected) * (float64(n) - expected) / expected
	}
	return x
}
