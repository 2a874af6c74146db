package rli_test

import (
	"math/rand/v2"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/queue"
)

// A modulated source sends Poisson packets of the Internet's mix of sizes, at
// 1.8 or 0.2 times the rate on average, changing after 100 µs on average.
type modulated struct {
	random     *rand.Rand
	now, until float64
	gap        float64
	fast       bool
}

func newModulated(utilisation float64, seed uint64) *modulated {
	const bytes = (7*64 + 4*570 + 1518) / 12.0
	return &modulated{random: rand.New(rand.NewPCG(seed, 1)), gap: bytes * 8e9 / linkRate / utilisation}
}

func (m *modulated) Next(p *queue.Packet) bool {
	for {
		gap := m.gap / 0.2
		if m.fast {
			gap = m.gap / 1.8
		}
		next := m.now + m.random.ExpFloat64()*gap
		if next <= m.until {
			m.now = next
			break
		}
		m.now, m.fast = m.until, !m.fast
		m.until += m.random.ExpFloat64() * 100e3
	}
	sizes := [...]int32{64, 64, 64, 64, 64, 64, 64, 570, 570, 570, 570, 1518}
	*p = queue.Packet{Time: int64(m.now), Flow: hashing.Flow(hashing.Mix(m.random.Uint64N(1000), 1)), Bytes: sizes[m.random.IntN(12)]}
	return true
}
