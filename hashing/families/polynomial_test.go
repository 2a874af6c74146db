package families

import (
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
)

var prime = big.NewInt(1<<61 - 1)

// slowHorner evaluates a polynomial in arbitrary precision, highest
// coefficient first.
func slowHorner(coefficients []uint64, x *big.Int) uint64 {
	h := new(big.Int)
	for _, c := range coefficients {
		h.Mul(h, x).Add(h, new(big.Int).SetUint64(c)).Mod(h, prime)
	}
	return h.Uint64()
}

func slowPolynomialKeys(seed uint64) (coefficients []uint64, base uint64) {
	next := familyKeys(seed, familyPolynomial)
	for len(coefficients) < 5 {
		if v := next() % (1 << 61); v != 1<<61-1 {
			coefficients = append(coefficients, v)
		}
	}
	return coefficients[:4], coefficients[4]
}

// slowPolynomial cuts the message into numbers of seven little-endian bytes,
// the last of one to seven, and evaluates the polynomial with the length and
// these as coefficients at the base, and the secret polynomial there.
func slowPolynomial(seed uint64, message []byte) uint64 {
	coefficients, base := slowPolynomialKeys(seed)
	numbers := []uint64{uint64(len(message))}
	for chunk := range slices.Chunk(message, 7) {
		var v uint64
		for i, c := range chunk {
			v += uint64(c) << (8 * i)
		}
		numbers = append(numbers, v)
	}
	if len(message) == 0 {
		numbers = append(numbers, 0)
	}
	condensed := slowHorner(numbers, new(big.Int).SetUint64(base))
	return slowHorner(coefficients, new(big.Int).SetUint64(condensed))
}

func TestPolynomialMatchesSlow(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 7))
	for n := range 200 {
		seed := rng.Uint64()
		p := NewPolynomial(seed)
		message := randomBytes(rng, n)
		if n%5 == 0 { // the largest numbers
			for i := range message {
				message[i] = 0xff
			}
		}
		if got, want := p.Bytes(message), slowPolynomial(seed, message); got != want {
			t.Errorf("length %d: %d, want %d", n, got, want)
		}
		coefficients, _ := slowPolynomialKeys(seed)
		for _, x := range []uint64{0, 1, 1<<61 - 2, 1<<61 - 1, 1 << 61, 1<<64 - 1, rng.Uint64()} {
			if got, want := p.Word(x), slowHorner(coefficients, new(big.Int).SetUint64(x)); got != want {
				t.Errorf("seed %#x: Word(%d) = %d, want %d", seed, x, got, want)
			}
		}
	}
}

func TestPolynomialPublished(t *testing.T) {
	var published struct {
		Words []struct {
			Base  string
			Words []string
			H     string
		}
		Mulmod []struct {
			A, B    string
			Product string `json:"ab_mod"`
		}
		Horner []struct {
			Coefficients []string `json:"coeffs_high_to_low"`
			Pairs        []struct{ X, H string }
		} `json:"kwise_horner"`
	}
	vectors(t, "poly_mod_2_61_minus_1", &published)
	number := func(s string) uint64 {
		t.Helper()
		v, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	numbers := func(list []string) (v []uint64) {
		for _, s := range list {
			v = append(v, number(s))
		}
		return v
	}
	for _, v := range published.Mulmod {
		if got := canonical61(multiply61(number(v.A), number(v.B))); got != number(v.Product) {
			t.Errorf("%s·%s = %d, want %s", v.A, v.B, got, v.Product)
		}
	}
	for _, v := range published.Words {
		if got := horner61(numbers(v.Words), number(v.Base)); got != number(v.H) {
			t.Errorf("words %v at %s: %d, want %s", v.Words, v.Base, got, v.H)
		}
	}
	for _, v := range published.Horner {
		for _, pair := range v.Pairs {
			if got := horner61(numbers(v.Coefficients), number(pair.X)); got != number(pair.H) {
				t.Errorf("coefficients %v at %s: %d, want %s", v.Coefficients, pair.X, got, pair.H)
			}
		}
	}
}
