package families

import "github.com/hoplag/hoplag/hashing"

// keys is a SplitMix64 generator: the key material of every family is drawn
// from it, 64 bits at a time in the order that the family documents, so that
// a controller can compute what to program into hardware.
type keys uint64

// The family numbers keep two families with the same seed apart. 6 is that of
// hashing.SipHash.
const (
	familyH3 = iota + 1
	familyTabulation
	familyToeplitz
	familyRabin
	familyPolynomial
)

func newKeys(seed, family uint64) keys {
	const zero = 0xbb67ae8584caa73b // which Mix would turn into 0, for every family
	if seed == zero {
		return keys(family)
	}
	return keys(hashing.Mix(seed, family))
}

func (k *keys) next() uint64 {
	*k += 0x9e3779b97f4a7c15
	z := uint64(*k)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
