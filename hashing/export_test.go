package hashing

// What the tests of this package, which stand outside it, look at inside.

const (
	FamilyH3         = familyH3
	FamilyTabulation = familyTabulation
	FamilyToeplitz   = familyToeplitz
	FamilyPolynomial = familyPolynomial
	FamilyRabin      = familyRabin
	FamilySipHash    = familySipHash
)

var (
	Multiply61     = multiply61
	Canonical61    = canonical61
	Horner61       = horner61
	SmallestFactor = smallestFactor
	Split          = split
)

// KeysAt is the key generator started at state.
func KeysAt(state uint64) func() uint64 {
	k := keys(state)
	return k.next
}

// FamilyKeys is the key generator of a family.
func FamilyKeys(seed, family uint64) func() uint64 {
	k := newKeys(seed, family)
	return k.next
}

// Base is the base by which Bytes condenses.
func (p *Polynomial) Base() uint64 { return p.base }
