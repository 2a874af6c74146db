package families

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// Rabin is a Rabin fingerprint: the message, after a leading 1 bit, as a
// polynomial over GF(2), first byte most significant, modulo an irreducible
// polynomial. The leading bit makes zeros at the beginning count.
//
// Use it to reproduce a CRC engine with a random polynomial, or where
// fingerprints must be combined or rolled. CRC-32C itself is not one: its
// polynomial has the factor x+1.
//
// Over a random choice among the irreducible polynomials of degree d, two
// messages of up to n bits agree with probability at most about n/2^d. That is
// all: d bits that identify, and are not uniform. Messages shorter than d bits
// are their own fingerprints.
type Rabin struct {
	top   int         // the shift that brings the topmost byte down: degree - 8
	mask  uint64      // the state's bits
	carry [256]uint64 // carry[v] = v·x^degree mod the polynomial
}

// NewRabin returns the fingerprint by a polynomial of degree 64: the first
// irreducible one with the key words' bits as its coefficients and the
// constant coefficient set.
func NewRabin(seed uint64) *Rabin {
	k := newKeys(seed, familyRabin)
	for {
		low := k.next() | 1
		if smallestFactor(64, low) == 0 {
			return newRabin(64, low)
		}
	}
}

// RabinFromPolynomial returns the fingerprint by the polynomial of the given
// degree, 8 to 64, whose lower coefficients are low, that of x^i at bit i:
// x^64+x^4+x^3+x+1 is (64, 0x1b). A reducible polynomial is an error.
func RabinFromPolynomial(degree int, low uint64) (*Rabin, error) {
	if degree < 8 || degree > 64 {
		return nil, fmt.Errorf("families: Rabin polynomial of degree %d, want 8 to 64", degree)
	}
	if low>>degree != 0 {
		return nil, fmt.Errorf("families: Rabin polynomial's lower coefficients %#x exceed %d bits; leave x^%d out", low, degree, degree)
	}
	if f := smallestFactor(degree, low); f != 0 {
		return nil, fmt.Errorf("families: Rabin polynomial x^%d+%#x is reducible, it has a factor of degree %d", degree, low, f)
	}
	return newRabin(degree, low), nil
}

func newRabin(degree int, low uint64) *Rabin {
	f := field{degree, low}
	r := &Rabin{top: degree - 8, mask: f.mask()}
	for v := range r.carry {
		// v·x^degree is v with zeros fed in after it.
		state := uint64(v)
		for range degree {
			state = f.shift(state)
		}
		r.carry[v] = state
	}
	return r
}

// Bytes returns the fingerprint of b, as many bits as the degree.
func (r *Rabin) Bytes(b []byte) uint64 {
	state := uint64(1)
	for _, c := range b {
		state = (state<<8&r.mask | uint64(c)) ^ r.carry[byte(state>>r.top)]
	}
	return state
}

// Word returns the fingerprint of x's eight bytes, little-endian.
func (r *Rabin) Word(x uint64) uint64 {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], x)
	return r.Bytes(b[:])
}

// A field holds a polynomial over GF(2), x^degree+low, modulo which others are
// reduced. It is a proper field if the polynomial is irreducible.
type field struct {
	degree int
	low    uint64
}

func (f field) mask() uint64 { return ^uint64(0) >> (64 - f.degree) }

// shift returns a·x.
func (f field) shift(a uint64) uint64 {
	overflow := a >> (f.degree - 1) & 1
	return a<<1&f.mask() ^ f.low&-overflow
}

// square returns a².
func (f field) square(a uint64) uint64 {
	var product uint64
	for i := f.degree - 1; i >= 0; i-- {
		product = f.shift(product) ^ a&-(a>>i&1)
	}
	return product
}

// smallestFactor returns the degree of the smallest proper factor of the
// polynomial x^degree+low, or 0 if it is irreducible. The product of all
// irreducible polynomials whose degree divides i is x^(2^i)-x (Ben-Or,
// Probabilistic Algorithms in Finite Fields, 1981).
func smallestFactor(degree int, low uint64) int {
	f := field{degree, low}
	power := uint64(2) // x
	for i := 1; i <= degree/2; i++ {
		power = f.square(power)
		if f.sharesFactor(power ^ 2) {
			return i
		}
	}
	return 0
}

// sharesFactor reports whether a, of smaller degree, and f's polynomial have a
// common factor, by Euclid's algorithm.
func (f field) sharesFactor(a uint64) bool {
	if a == 0 {
		return true
	}
	if a == 1 {
		return false
	}
	// f's polynomial mod a, whose leading term needs a 65th bit.
	g := field{bits.Len64(a) - 1, a ^ 1<<(bits.Len64(a)-1)}
	power := uint64(1)
	for range f.degree {
		power = g.shift(power)
	}
	b := power ^ remainder(f.low, a)
	for b != 0 {
		a, b = b, remainder(a, b)
	}
	return a != 1
}

// remainder returns a mod b over GF(2), b ≠ 0.
func remainder(a, b uint64) uint64 {
	for bits.Len64(a) >= bits.Len64(b) {
		a ^= b << (bits.Len64(a) - bits.Len64(b))
	}
	return a
}
