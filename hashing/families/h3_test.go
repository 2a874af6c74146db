package families

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
)

// slowH3 is H3 as a switch computes it, bit by bit.
func slowH3(seed uint64, width int, message []byte) uint64 {
	next := familyKeys(seed, familyH3)
	hash := next()
	for i := range 8 * width {
		row := next()
		if i/8 < len(message) && message[i/8]>>(7-i%8)&1 == 1 {
			hash ^= row
		}
	}
	return hash
}

func TestH3MatchesSlow(t *testing.T) {
	matchesSlow(t, slowH3, func(seed uint64, width int) hasher { return must(NewH3(seed, width)) })
}

// matchesSlow holds a family of inputs up to a width to its slow reference.
func matchesSlow(t *testing.T, slow func(seed uint64, width int, message []byte) uint64, draw func(seed uint64, width int) hasher) {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 4))
	for _, width := range []int{8, 13, 40} {
		seed := rng.Uint64()
		h := draw(seed, width)
		for n := range width + 10 {
			message := randomBytes(rng, n)
			if got, want := h.Bytes(message), slow(seed, width, message); got != want {
				t.Errorf("width %d, length %d: %#x, want %#x", width, n, got, want)
			}
		}
	}
}

func TestH3Linear(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 4))
	h := must(NewH3(1, 8))
	for range 100 {
		a, b := rng.Uint64(), rng.Uint64()
		if got, want := h.Word(a^b), h.Word(a)^h.Word(b)^h.Word(0); got != want {
			t.Fatalf("Word(%#x^%#x) = %#x, want %#x", a, b, got, want)
		}
	}
}

func slowTabulation(seed uint64, width int, message []byte) uint64 {
	next := familyKeys(seed, familyTabulation)
	var hash uint64
	for i := range width {
		for value := range 256 {
			entry := next()
			if i < len(message) && int(message[i]) == value {
				hash ^= entry
			}
		}
	}
	return hash
}

func TestTabulationMatchesSlow(t *testing.T) {
	matchesSlow(t, slowTabulation, func(seed uint64, width int) hasher { return must(NewTabulation(seed, width)) })
}

func keysAt(state uint64) func() uint64 {
	k := keys(state)
	return k.next
}

// The key material is SplitMix64, so that others can compute it.
func TestKeys(t *testing.T) {
	next := keysAt(42)
	for i, want := range []uint64{0xbdd732262feb6e95, 0x28efe333b266f103, 0x47526757130f9f52} {
		if got := next(); got != want {
			t.Errorf("key word %d from 42 is %#x, want %#x", i, got, want)
		}
	}
	var published []struct {
		Seed string
		Out  []string
	}
	vectors(t, "splitmix64", &published)
	for _, v := range published {
		next := keysAt(must(strconv.ParseUint(v.Seed, 16, 64)))
		for i, out := range v.Out {
			if got := fmt.Sprintf("%016x", next()); got != out {
				t.Errorf("seed %s, word %d: %s, want %s", v.Seed, i, got, out)
			}
		}
	}
}
