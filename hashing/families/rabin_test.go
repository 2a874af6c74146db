package families

import (
	"encoding/hex"
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
)

// slowRabin divides polynomials over GF(2) bit by bit: the message after a
// leading one, as one long number.
func slowRabin(degree int, low uint64, message []byte) uint64 {
	divisor := new(big.Int).SetUint64(low)
	divisor.SetBit(divisor, degree, 1)
	dividend := new(big.Int).SetBytes(append([]byte{1}, message...))
	return remainderGF2(dividend, divisor).Uint64()
}

func remainderGF2(dividend, divisor *big.Int) *big.Int {
	r := new(big.Int).Set(dividend)
	for r.BitLen() >= divisor.BitLen() {
		r.Xor(r, new(big.Int).Lsh(divisor, uint(r.BitLen()-divisor.BitLen())))
	}
	return r
}

var rabinPolynomials = []struct {
	degree int
	low    uint64
}{
	{8, 0x1b}, {9, 0x11}, {31, 9}, {53, 0x1da3358b4dc173}, {61, 0x27}, {63, 3}, {63, 0x3fe6b8a5bf378d83}, {64, 0x1b},
}

func TestRabinMatchesSlow(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 6))
	for _, p := range rabinPolynomials {
		r, err := RabinFromPolynomial(p.degree, p.low)
		if err != nil {
			t.Error(err)
			continue
		}
		for n := range 70 {
			message := randomBytes(rng, n)
			if got, want := r.Bytes(message), slowRabin(p.degree, p.low, message); got != want {
				t.Errorf("degree %d, length %d: %#x, want %#x", p.degree, n, got, want)
			}
		}
	}
}

func TestIrreducibleByTrialDivision(t *testing.T) {
	for degree := 8; degree <= 12; degree++ {
		irreducible := 0
		for low := range uint64(1) << degree {
			p := big.NewInt(int64(1<<degree | low))
			want := 0
			for d := int64(2); d < 1<<(degree/2+1); d++ {
				divisor := big.NewInt(d)
				if remainderGF2(p, divisor).Sign() == 0 {
					want = divisor.BitLen() - 1
					break
				}
			}
			if got := smallestFactor(degree, low); got != want {
				t.Fatalf("x^%d+%#x: smallest factor of degree %d, want %d", degree, low, got, want)
			}
			if want == 0 {
				irreducible++
			}
		}
		// Gauss's formula counts them.
		want := map[int]int{8: 30, 9: 56, 10: 99, 11: 186, 12: 335}[degree]
		if irreducible != want {
			t.Errorf("degree %d: %d irreducible polynomials, want %d", degree, irreducible, want)
		}
	}
}

func TestRabinRejects(t *testing.T) {
	for _, bad := range []struct {
		degree int
		low    uint64
		want   string
	}{
		{7, 3, "degree 7, want 8 to 64"},
		{65, 3, "degree 65, want 8 to 64"},
		{-1, 3, "degree -1, want 8 to 64"},
		{63, 1<<63 | 3, "leave x^63 out"},
		{64, 0xbfe6b8a5bf378d83, "reducible"},
		{32, 0x1edc6f41, "reducible, it has a factor of degree 1"},
		{41, 0x3af4b284899 &^ (1 << 41), "reducible"},
		{64, 0, "reducible, it has a factor of degree 1"},
		{16, 0x15, "reducible"},
	} {
		r, err := RabinFromPolynomial(bad.degree, bad.low)
		if err == nil || r != nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("degree %d, %#x: error %v, want one with %q", bad.degree, bad.low, err, bad.want)
		}
	}
}

func TestRabinPublished(t *testing.T) {
	var published struct {
		Messages []string `json:"messages_hex"`
		Polys    map[string]struct {
			Poly         string
			Degree       int
			Irreducible  bool
			Fingerprints []string `json:"fingerprints_with_leading_1bit"`
			Plain        []string `json:"fingerprints"`
		}
		Restic map[string]bool `json:"restic_tests"`
	}
	vectors(t, "rabin", &published)
	lower := func(poly string) (int, uint64) {
		p, ok := new(big.Int).SetString(poly, 0)
		if !ok {
			t.Fatalf("polynomial %q", poly)
		}
		degree := p.BitLen() - 1
		return degree, p.SetBit(p, degree, 0).Uint64()
	}
	for name, p := range published.Polys {
		degree, low := lower(p.Poly)
		if degree != p.Degree {
			t.Errorf("%s: degree %d, published %d", name, degree, p.Degree)
		}
		r, err := RabinFromPolynomial(degree, low)
		if (err == nil) != p.Irreducible {
			t.Errorf("%s: error %v, published irreducible: %v", name, err, p.Irreducible)
		}
		if err != nil {
			continue
		}
		for i, message := range published.Messages {
			b := must(hex.DecodeString(message))
			if got := fmt.Sprintf("%x", r.Bytes(b)); got != p.Fingerprints[i] {
				t.Errorf("%s, message %s: %s, want %s", name, message, got, p.Fingerprints[i])
			}
			// Zeros of that length leave the leading bit alone.
			if got := fmt.Sprintf("%x", r.Bytes(b)^r.Bytes(make([]byte, len(b)))); got != p.Plain[i] {
				t.Errorf("%s, message %s without a leading bit: %s, want %s", name, message, got, p.Plain[i])
			}
		}
	}
	for statement, holds := range published.Restic {
		poly, _, _ := strings.Cut(statement, " ")
		degree, low := lower(poly)
		if _, err := RabinFromPolynomial(degree, low); (err == nil) != holds {
			t.Errorf("%s is published as %v; error %v", statement, holds, err)
		}
	}
}
