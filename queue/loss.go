package queue

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// A LossConfig describes random loss.
type LossConfig struct {
	Probability float64 // fraction of packets lost, 0 to 1
	// Burst is the mean length of a loss episode, in packets. The lengths of episodes and of the runs between
	// them are exponential, rounded to whole packets (that is, geometric), which makes a Gilbert channel. An
	// episode loses every packet. Burst is at least 1, and large enough that the runs between episodes average
	// at least one packet: Burst ≥ Probability/(1-Probability). 0 means that packets are lost independently.
	Burst float64
}

func (c LossConfig) validate() error {
	if !(c.Probability >= 0 && c.Probability <= 1) {
		return invalid("Loss.Probability", c.Probability, "0 to 1")
	}
	if c.Burst == 0 {
		return nil
	}
	if !(c.Burst >= 1 && c.Burst <= 1e9) {
		return invalid("Loss.Burst", c.Burst, "0 or 1 to 10^9")
	}
	const rounding = 1e-12
	if !(c.Burst*(1-c.Probability) >= c.Probability*(1-rounding)) {
		return invalid("Loss.Burst", c.Burst,
			fmt.Sprintf("at least %v for a probability of %v", c.Probability/(1-c.Probability), c.Probability))
	}
	return nil
}

// A Loss decides which packets are lost. It draws one number for a run of packets, not one for each packet. It
// is not safe for concurrent use.
type Loss struct {
	random *rand.PCG
	keep   float64 // ln of the probability that a run of passing packets goes on
	lose   float64 // ln of the probability that an episode goes on
	burst  bool
	never  bool
	always bool
	left   uint64 // packets left in this run
	losing bool   // this run is an episode
}

// NewLoss returns a loss process, such as of a wire behind a link. The error wraps [estimate.ErrConfig].
func NewLoss(c LossConfig, seed uint64) (*Loss, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	l := &Loss{never: c.Probability == 0, always: c.Probability == 1}
	if l.never || l.always {
		return l, nil
	}
	l.random = generator(seed, 'L')
	if c.Burst == 0 {
		l.keep = math.Log1p(-c.Probability)
		l.left = l.run(l.keep) - 1
		return l, nil
	}
	l.burst = true
	l.lose = math.Log1p(-1 / c.Burst)
	l.keep = math.Log1p(-min(1, c.Probability/(c.Burst*(1-c.Probability))))
	// A geometric run has no memory, so starting a new run equals starting in the middle of one: the process is
	// stationary from the first packet.
	l.losing = uniform(l.random) < c.Probability
	l.left = l.length()
	return l, nil
}

// Drop decides about the next packet.
func (l *Loss) Drop() bool {
	switch {
	case l.never:
		return false
	case l.always:
		return true
	case !l.burst:
		if l.left > 0 {
			l.left--
			return false
		}
		l.left = l.run(l.keep) - 1
		return true
	}
	if l.left == 0 {
		l.losing = !l.losing
		l.left = l.length()
	}
	l.left--
	return l.losing
}

// length draws the length of a new run.
func (l *Loss) length() uint64 {
	if l.losing {
		return l.run(l.lose)
	}
	return l.run(l.keep)
}

// run draws a geometric length, at least 1, of a run that goes on with probability exp(ln): an exponential,
// rounded up.
func (l *Loss) run(ln float64) uint64 {
	if math.IsInf(ln, -1) {
		return 1 // log1p(-1): never goes on
	}
	return uint64(min(1+math.Floor(math.Log(uniform(l.random))/ln), 1<<62))
}
