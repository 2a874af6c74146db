package families

// H3 is the hash that switches compute in one clock: the exclusive or of one
// random 64-bit row per input bit that is set, and of a constant.
//
//   - Guarantee: over the choice of seed, 3-universal with 64 uniform bits:
//     the hashes of any three different inputs of one length are independent,
//     and two inputs agree on k given bits with probability 2^-k. Not
//     4-universal: the hashes of four inputs whose exclusive or is zero have
//     an exclusive or of zero.
//   - Key: 64 bits per input bit, and the constant.
//   - Gates: per output bit, an exclusive-or tree over the input bits whose row
//     has that bit set, half of them on average: 160 two-input gates, eight
//     levels, for a 40-byte header. In software, one table of 2 KiB per byte.
//   - Choose it to agree with a switch that hashes by H3 and can be loaded
//     with these rows (the hash of a single bit, less that of no bit, is its
//     row), or if you need the guarantee itself.
//   - Linear: a few hashes predict all others. It does not
//     resist crafted traffic.
//
// An H3 is read-only and safe for concurrent use.
type H3 struct {
	constant uint64
	tables   bytewise[uint64]
}

// NewH3 returns the H3 hash of inputs of up to width bytes, 8 to [MaxWidth],
// keyed from seed: its first key word is the constant, the following are the
// rows, that of the first byte's most significant bit first.
func NewH3(seed uint64, width int) (*H3, error) {
	if err := checkWidth("H3", width, 8); err != nil {
		return nil, err
	}
	k := newKeys(seed, familyH3)
	h := &H3{constant: k.next()}
	rows := make([]uint64, 8*width)
	for i := range rows {
		rows[i] = k.next()
	}
	h.tables = linear(width, func(i int) uint64 { return rows[i] })
	return h, nil
}

// Bytes returns the hash of b. As on wires, a missing byte is a byte of zero,
// and bytes beyond the width are not connected.
func (h *H3) Bytes(b []byte) uint64 { return h.tables.bytes(h.constant, b) }

// Word returns the hash of x's eight bytes, little-endian.
func (h *H3) Word(x uint64) uint64 { return h.tables.word(h.constant, x) }
