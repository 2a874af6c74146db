package trace

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/hoplag/hoplag/queue"
)

// An OnOffConfig describes senders that alternate between sending at a constant rate and silence, both for
// Pareto-distributed times. With shapes below 2 their sum is bursty on every time scale (self-similar with
// Hurst parameter (3-shape)/2). The length of the silences follows from the load.
type OnOffConfig struct {
	Load     Load
	Sizes    Mix
	Senders  int     // 1 to 2^20; each is one flow
	Peak     int64   // rate of one sender while on, bits per second, 1 to 10^15
	On       float64 // mean time on, ns, at least a thousandth of a packet's time at Peak
	OnShape  float64 // of the Pareto distribution of the time on, above 1
	OffShape float64 // of the time off, above 1
	Seed     uint64
}

type onOff struct {
	labels  labels
	sizes   sizer
	random  *rand.PCG
	on, off pareto
	perByte float64 // ns at the peak rate
	senders []sender
	agenda  agenda // when each sends next
}

type sender struct {
	until float64 // when its time on ends, ns since start
	bytes int32   // of its next packet
}

// NewOnOff returns an endless source of on–off senders, in their stationary state from the start. It takes
// about 70 bytes a sender, allocates nothing later, and is not safe for concurrent use. The error wraps
// [estimate.ErrConfig].
func NewOnOff(c OnOffConfig) (queue.Source, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	share := c.share()
	s := &onOff{
		labels:  labels{seed: c.Seed},
		sizes:   newSizer(c.Sizes, c.Seed),
		random:  generator(c.Seed, 'o'),
		on:      paretoOf(c.On, c.OnShape),
		off:     paretoOf(c.off(share), c.OffShape),
		perByte: 8e9 / float64(c.Peak),
		senders: make([]sender, c.Senders),
	}
	// A packet observed at a random moment is more often a long one.
	biased := c.Sizes
	for i := range biased {
		biased[i].Weight *= float64(biased[i].Bytes)
	}
	begun := newSizer(biased, ^c.Seed)
	for i := range s.senders {
		now := 0.0
		if uniform(s.random) >= share {
			now = s.off.residual(s.random)
			s.senders[i].until = now + s.on.draw(s.random)
		} else {
			s.senders[i].until = s.on.residual(s.random)
		}
		s.senders[i].bytes = begun.draw()
		at := s.schedule(&s.senders[i], now, uniform(s.random))
		s.agenda.Push(event{at: at, who: int32(i)})
	}
	return s, nil
}

// share returns the fraction of the time that a sender is on.
func (c OnOffConfig) share() float64 {
	return c.Load.Utilisation * float64(c.Load.Rate) / (float64(c.Senders) * float64(c.Peak))
}

// off returns the mean time that a sender is silent, ns.
func (c OnOffConfig) off(share float64) float64 { return c.On * (1/share - 1) }

func (c OnOffConfig) validate() error {
	if err := c.Load.validate(); err != nil {
		return err
	}
	if err := c.Sizes.validate(); err != nil {
		return err
	}
	share := c.share()
	switch least := c.Sizes.Mean() * 8e6 / float64(c.Peak); {
	case c.Senders < 1 || c.Senders > 1<<20:
		return invalid("Senders", c.Senders, "1 to 2^20")
	case c.Peak < 1 || c.Peak > 1e15:
		return invalid("Peak", c.Peak, "1 to 10^15")
	case !(c.On >= least && c.On < maxGap):
		return invalid("On", c.On, fmt.Sprintf("at least a thousandth of a packet's time at the peak rate, %v ns, and below 10^15", least))
	case !(min(c.OnShape, c.OffShape) > 1 && max(c.OnShape, c.OffShape) < math.Inf(1)):
		return invalid("OnShape and OffShape", [2]float64{c.OnShape, c.OffShape}, "over 1")
	case !(share < 1):
		return invalid("Senders", c.Senders, fmt.Sprintf("more, or a higher Peak: they would have to be on for %.3g of the time", share))
	case !(c.off(share) < maxGap):
		return invalid("Senders", c.Senders, fmt.Sprintf("fewer, or less time on: they would be silent for %.3g ns at a time", c.off(share)))
	}
	return nil
}

// schedule returns when a sender sends its next packet: when it has been on, from now, for as long as this
// share of the packet takes at the peak rate. What is left of a time on carries over to the next, so that no
// packet is cut short and the mean rate is exact.
func (s *onOff) schedule(from *sender, now, share float64) float64 {
	need := float64(from.bytes) * s.perByte * share
	for now+need > from.until {
		need -= from.until - now
		now = from.until + s.off.draw(s.random)
		from.until = now + s.on.draw(s.random)
	}
	return now + need
}

// Next implements [queue.Source]; it always returns true.
func (s *onOff) Next(p *queue.Packet) bool {
	next := s.agenda[0]
	from := &s.senders[next.who]
	s.labels.fill(p, int64(next.at), uint64(next.who), from.bytes)
	from.bytes = s.sizes.draw()
	s.agenda.Replace(event{at: s.schedule(from, next.at, 1), who: next.who})
	return true
}
