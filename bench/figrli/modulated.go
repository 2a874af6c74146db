package figrli

import (
	"math/rand/v2"
	"slices"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/queue/trace"
)

// modulated is a Markov-modulated Poisson process: arrivals at 1.8 or 0.2
// times their rate, for 100 µs on average.
var modulated = kind{name: "modulated Poisson arrivals", slug: "modulated", make: func(load trace.Load, seed uint64) (queue.Source, error) {
	source, err := poisson.make(load, seed)
	return &modulation{Source: source, random: rand.New(rand.NewPCG(seed, 'm'))}, err
}}

// A modulation lets the time of a source pass 1.8 or 0.2 times as fast.
type modulation struct {
	queue.Source
	random      *rand.Rand
	fast        bool
	from, until float64 // of the source's time, at this speed
	begun       float64 // when that period began
}

// Next returns the source's next packet.
func (m *modulation) Next(p *queue.Packet) bool {
	ok := m.Source.Next(p)
	for float64(p.Time) >= m.until {
		m.begun += (m.until - m.from) / m.speed()
		m.fast, m.from = !m.fast, m.until
		m.until += m.random.ExpFloat64() * 100e3 * m.speed()
	}
	p.Time = int64(m.begun + (float64(p.Time)-m.from)/m.speed())
	p.Sent = p.Time
	return ok
}

func (m *modulation) speed() float64 {
	if m.fast {
		return 1.8
	}
	return 0.2
}

// paced are a hundred senders, each as regular as a clock.
var paced = kind{name: "paced senders", slug: "paced", make: func(load trace.Load, seed uint64) (queue.Source, error) {
	const bytes = 1000
	p := &pacing{next: make([]int64, 100), period: int64(100 * bytes * 8e9 / (load.Utilisation * float64(load.Rate))), bytes: bytes}
	random := rand.New(rand.NewPCG(seed, 'p'))
	for i := range p.next {
		p.next[i] = random.Int64N(p.period)
	}
	slices.Sort(p.next)
	return p, nil
}}

// A pacing has when the senders send next, in order from turn on.
type pacing struct {
	next   []int64
	period int64
	turn   int
	bytes  int32
}

// Next returns the next packet.
func (p *pacing) Next(packet *queue.Packet) bool {
	now := p.next[p.turn]
	*packet = queue.Packet{Flow: hashing.Flow(hashing.Mix(uint64(p.turn), 1)), Sent: now, Time: now, Bytes: p.bytes}
	p.next[p.turn] += p.period
	p.turn = (p.turn + 1) % len(p.next)
	return true
}
