package families

// Tabulation is simple tabulation hashing: the exclusive or of one random
// word per input byte, looked up by position and value.
//
//   - Guarantee: over the choice of seed, 3-universal with 64 uniform bits,
//     also between inputs of different length, and beyond that: Chernoff-like
//     bounds on bucket loads hold for it although it is not 4-universal
//     (Pătraşcu and Thorup, The Power of Simple Tabulation Hashing, 2011).
//   - Key: 256 words of 64 bits per input byte.
//   - Gates: none; one memory of 2 KiB per byte position, read in parallel, and
//     an exclusive-or tree. A word costs 16 KiB, a 40-byte header 80 KiB.
//   - Choose it over words, when a guarantee on loads is wanted in software at
//     a few nanoseconds.
//   - It does not resist crafted traffic from someone who sees its effects.
//
// A Tabulation is read-only and safe for concurrent use.
type Tabulation struct {
	tables bytewise[uint64]
}

// NewTabulation returns the tabulation hash of inputs of up to width bytes, 8
// to [MaxWidth], keyed from seed: the key words fill the tables in order.
func NewTabulation(seed uint64, width int) (*Tabulation, error) {
	if err := checkWidth("tabulation", width, 8); err != nil {
		return nil, err
	}
	k := newKeys(seed, familyTabulation)
	t := make(bytewise[uint64], width)
	for i := range t {
		for v := range t[i] {
			t[i][v] = k.next()
		}
	}
	return &Tabulation{t}, nil
}

// Bytes returns the hash of b's first bytes, up to the width; further ones
// have no table.
func (t *Tabulation) Bytes(b []byte) uint64 { return t.tables.bytes(0, b) }

// Word returns the hash of x's eight bytes, little-endian.
func (t *Tabulation) Word(x uint64) uint64 { return t.tables.word(0, x) }
