package lost

import (
	"sync"

	"github.com/hoplag/hoplag/hashing"
)

// A Memory holds the packets that a point sent last, in 16 bytes each. It grows with their number. Lock it for
// Update; Offer locks it for some packets at a time, so that nobody waits for long.
type Memory struct {
	sync.Mutex
	ring []remembered
	at   int // the next one
	most int
	keep int64
}

// A remembered packet was sent.
type remembered struct {
	id    uint64
	stamp uint64 // the time, above the bit that says whether id is a number
}

func (r *remembered) sent() int64 { return int64(r.stamp) >> 1 }

// NewMemory returns a Memory of at least the last keep nanoseconds, unless these have more than most packets.
func NewMemory(most int, keep int64) *Memory { return &Memory{most: most, keep: keep} }

// Update records that a packet was sent at time t, in nanoseconds. Its id is its hash, or a number.
func (m *Memory) Update(id uint64, number bool, t int64) {
	if m.at == len(m.ring) {
		m.wrap(t)
	}
	stamp := uint64(t) << 1
	if number {
		stamp |= 1
	}
	m.ring[m.at] = remembered{id, stamp}
	m.at++
}

// wrap makes room for the next packet, which is sent at time t.
func (m *Memory) wrap(t int64) {
	n := len(m.ring)
	if n == 0 || n < m.most && t-m.ring[n-(n+3)/4].sent() < m.keep/4 { // by the latest rate
		m.ring = append(m.ring, make([]remembered, max(1, min(max(256, n/8), m.most-n)))...)
		return
	}
	m.at = 0
}

// Offer offers a Finder what is remembered. Ids that are numbers are hashed with hash.
func (m *Memory) Offer(f *Finder, hash func(number uint64) hashing.Packet) {
	var part [512]remembered
	for i, n := 0, len(part); n == len(part); i += n {
		m.Lock()
		n = copy(part[:], m.ring[min(i, len(m.ring)):])
		m.Unlock()
		for j := range part[:n] {
			r := &part[j]
			if p := hashing.Packet(r.id); f.wants(r.sent()) {
				if r.stamp&1 != 0 {
					p = hash(r.id)
				}
				f.Offer(p, r.id, r.sent())
			}
		}
	}
}
