package lost

// A Memory holds the packets that a point sent last, in 16 bytes each. It grows with their number. It is not
// safe for concurrent use.
type Memory struct {
	ring []Remembered
	at   int // the next one
	most int
	keep int64
}

// A Remembered packet was sent.
type Remembered struct {
	ID    uint64
	stamp uint64 // the time, above the bit that says whether ID is a number
}

// Sent returns the time stamp.
func (r *Remembered) Sent() int64 { return int64(r.stamp) >> 1 }

// Number reports whether the ID is a number, not a hash.
func (r *Remembered) Number() bool { return r.stamp&1 != 0 }

// leastRing is the first size of a ring.
const leastRing = 256

// NewMemory returns a Memory of at least the last keep nanoseconds, unless these have more than most packets.
func NewMemory(most int, keep int64) *Memory { return &Memory{most: most, keep: keep} }

// Update records that a packet was sent. Its id is its hash, or a number.
func (m *Memory) Update(id uint64, number bool, t int64) {
	if m.at == len(m.ring) {
		m.wrap(t)
	}
	stamp := uint64(t) << 1
	if number {
		stamp |= 1
	}
	m.ring[m.at] = Remembered{id, stamp}
	m.at++
}

// wrap makes room for the next packet, which is sent at time t.
func (m *Memory) wrap(t int64) {
	n := len(m.ring)
	if n == 0 || n < m.most && t-m.ring[n-(n+3)/4].Sent() < m.keep/4 { // by the latest rate
		m.ring = append(m.ring, make([]Remembered, max(1, min(max(leastRing, n/8), m.most-n)))...)
		return
	}
	m.at = 0
}

// Copy copies what is remembered, from place i on and in no particular order, to dst, and returns how many it
// copied. Call it for one part after another, so that a lock need not be held for long.
func (m *Memory) Copy(dst []Remembered, i int) int {
	if i >= len(m.ring) {
		return 0
	}
	return copy(dst, m.ring[i:])
}
