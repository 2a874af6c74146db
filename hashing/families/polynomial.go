package families

import (
	"encoding/binary"
	"math/bits"
)

// Polynomial is a random polynomial of degree 3 over the integers modulo the
// prime 2^61−1, evaluated at the input. LDA's analysis asks for this and no more.
//
// Over the choice of seed it is 4-universal with 61 bits (uniform to within
// 2^-60): the hashes of any four words that differ modulo 2^61−1 are
// independent. Bytes are first condensed by a second random polynomial, so that
// n bytes collide with probability at most (n/7+2)/2^61 and are 4-universal
// otherwise.
type Polynomial struct {
	coefficients [4]uint64 // of x³, x², x, 1
	base         uint64
}

// NewPolynomial returns the polynomial hash keyed from seed: the key words'
// low 61 bits, skipping those that equal 2^61−1, are the coefficients of x³,
// x², x and 1, and the base.
func NewPolynomial(seed uint64) *Polynomial {
	k := newKeys(seed, familyPolynomial)
	draw := func() uint64 {
		for {
			if v := k.next() & prime61; v != prime61 {
				return v
			}
		}
	}
	p := new(Polynomial)
	for i := range p.coefficients {
		p.coefficients[i] = draw()
	}
	p.base = draw()
	return p
}

// Bytes returns the hash of b, 0 to 2^61−2.
func (p *Polynomial) Bytes(b []byte) uint64 {
	const size = 7 // the bytes that fit one number below 2^61-1
	// The length leads, so that zeros at the beginning and the end count.
	h := uint64(len(b))
	for len(b) > size {
		h = multiply61(h, p.base) + binary.LittleEndian.Uint64(b)&(1<<(8*size)-1)
		b = b[size:]
	}
	var last uint64
	for i, c := range b {
		last |= uint64(c) << (8 * i)
	}
	return p.Word(canonical61(multiply61(h, p.base) + last))
}

// Word returns the hash of x mod 2^61−1, 0 to 2^61−2.
func (p *Polynomial) Word(x uint64) uint64 {
	return horner61(p.coefficients[:], x)
}

// horner61 evaluates at x mod 2^61-1 the polynomial with the given
// coefficients, the highest power's first.
func horner61(coefficients []uint64, x uint64) uint64 {
	x = x&prime61 + x>>61
	var h uint64
	for _, c := range coefficients {
		h = multiply61(h, x) + c
	}
	return canonical61(h)
}

const prime61 = 1<<61 - 1

// multiply61 returns a number below 2^61+8 that is congruent to a·b modulo
// 2^61-1, for factors below 2^62+2^60, the bound of the sum of a product and a
// coefficient. 2^61 counts as 1, so the product's high bits are added to its
// low ones, twice.
func multiply61(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	s := hi<<3 | lo>>61
	s += lo & prime61
	return s&prime61 + s>>61
}

// canonical61 returns x mod 2^61-1.
func canonical61(x uint64) uint64 {
	x = x&prime61 + x>>61
	if x >= prime61 {
		x -= prime61
	}
	return x
}
