package hashing

// What the tests of this package, which stand outside it, look at inside.
var Split = split

// FamilyKeys is the key generator of a family.
func FamilyKeys(seed, family uint64) func() uint64 {
	k := newKeys(seed, family)
	return k.next
}
