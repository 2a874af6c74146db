package trace

import (
	"math"
	"math/rand/v2"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/queue"
)

// A PoissonConfig describes packets that arrive independently of each other.
type PoissonConfig struct {
	Load  Load
	Sizes Mix
	Flows int // number of flows, 1 to 2^31-1; each packet is of any of them
	Seed  uint64
}

type poisson struct {
	labels labels
	sizes  sizer
	random *rand.PCG
	flows  uint64
	gap    float64 // mean, ns
	time   int64
	part   float64 // of a ns, beyond time
}

// NewPoisson returns an endless source of Poisson arrivals. It allocates nothing later, and is not safe for
// concurrent use. The error wraps [estimate.ErrConfig].
func NewPoisson(c PoissonConfig) (queue.Source, error) {
	if err := c.Load.validate(); err != nil {
		return nil, err
	}
	if err := c.Sizes.validate(); err != nil {
		return nil, err
	}
	if c.Flows < 1 || c.Flows > math.MaxInt32 {
		return nil, invalid("Flows", c.Flows, "1 to 2^31-1")
	}
	return &poisson{
		labels: labels{seed: c.Seed},
		sizes:  newSizer(c.Sizes, c.Seed),
		random: generator(c.Seed, 'p'),
		flows:  uint64(c.Flows),
		gap:    c.Sizes.Mean() / c.Load.bytesPerNS(),
	}, nil
}

// Next implements [queue.Source]; it always returns true.
func (s *poisson) Next(p *queue.Packet) bool {
	s.part += s.gap * exponential(s.random)
	whole := math.Floor(s.part)
	s.time += int64(whole)
	s.part -= whole
	s.labels.fill(p, s.time, hashing.Row(s.random.Uint64(), s.flows), s.sizes.draw())
	return true
}
