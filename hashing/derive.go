package hashing

// The derivations below turn one well-mixed 64-bit hash into what a synopsis needs. They have no branch that
// depends on the hash. Row uses its low half, Sampled the high half, and so should a bank, so that one hash
// gives a row together with a bank or a decision, independently. For a bank and a decision, take the second
// from Mix.

// Row maps the low 32 bits of h uniformly to [0, rows), rows ≤ 2^32, by multiply-shift: no row is favoured by
// more than rows/2^32. If rows is a power of two, a mask of the lowest bits is an instruction or two cheaper.
func Row(h uint64, rows uint64) uint64 {
	return uint64(uint32(h)) * rows >> 32
}

// Threshold returns the argument that makes [Sampled] true with probability
// p, to within 2^-33; p below 0 and NaN count as 0, and p above 1 as 1.
func Threshold(p float64) uint64 {
	switch {
	case !(p > 0):
		return 0
	case p >= 1:
		return 1 << 32
	}
	return uint64(p*(1<<32) + 0.5)
}

// Sampled decides from h's high 32 bits whether a packet is sampled, with the probability passed to Threshold.
// The answer is 1 or 0, for use as a mask or an index. A packet that is sampled at one probability is sampled
// at every higher one.
func Sampled(h, threshold uint64) uint64 {
	return (h>>32 - threshold) >> 63
}

// Mix returns a second hash of h, independent of h and of Mix with any other salt as far as a synopsis can
// tell. h must be well mixed itself; if it is not, use [Word].
func Mix(h, salt uint64) uint64 {
	return mix(h^key1, (salt*key4^key3)|1)
}
