package trace

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// A Law is a family of delay distributions.
type Law uint8

// The laws.
const (
	// Even is uniform between Mean-Spread and Mean+Spread, or constant if
	// Spread is 0.
	Even Law = iota
	// Weibull has P(X ≤ x) = 1-exp(-(x/scale)^Shape). Delays in a backbone
	// router were found to follow it with shapes of 0.6 to 0.8.
	Weibull
	// Pareto has P(X ≤ x) = 1-(x/scale)^-Shape from scale up. LDA was
	// evaluated with shapes of 3 to 5: the variance is finite, the tail heavy.
	Pareto
	laws
)

// A DelaysConfig describes independent delays. The scale of Weibull and Pareto
// follows from the mean, as in section IV of the LDA paper, where the mean is
// 200 ns.
type DelaysConfig struct {
	Law    Law
	Mean   float64 // ns, above 0, at most 10^15
	Shape  float64 // of Weibull, 0.1 to 100; of Pareto, above 1, at most 100; otherwise 0
	Spread float64 // of Even, ns, 0 to Mean; otherwise 0
	Seed   uint64
}

// Delays draws independent delays. It is for a single user and has no locks.
type Delays struct {
	config DelaysConfig
	scale  float64 // of Weibull and Pareto, ns
	random *rand.PCG
	part   float64 // fraction of a ns owed by Next
}

// NewDelays returns a sequence of delays. The error wraps
// [estimate.ErrConfig].
func NewDelays(c DelaysConfig) (*Delays, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	d := &Delays{config: c, random: generator(c.Seed, 'd')}
	switch c.Law {
	case Weibull:
		d.scale = c.Mean / math.Gamma(1+1/c.Shape)
	case Pareto:
		d.scale = paretoOf(c.Mean, c.Shape).scale
	}
	return d, nil
}

func (c DelaysConfig) validate() error {
	low, high := 0.0, 0.0 // of Shape
	switch c.Law {
	case Weibull:
		low, high = 0.1, 100
	case Pareto:
		low, high = math.Nextafter(1, 2), 100
	}
	switch {
	case c.Law >= laws:
		return invalid("Law", c.Law, "Even, Weibull or Pareto")
	case !(c.Mean > 0 && c.Mean <= 1e15):
		return invalid("Mean", c.Mean, "over 0 and at most 10^15")
	case !(c.Spread >= 0 && c.Spread <= c.Mean) || c.Law != Even && c.Spread != 0:
		return invalid("Spread", c.Spread, "0 to the mean, and 0 with a shape")
	case !(c.Shape >= low && c.Shape <= high):
		return invalid("Shape", c.Shape, fmt.Sprintf("%v to %v", low, high))
	}
	return nil
}

// Draw returns the next delay in ns, unrounded.
func (d *Delays) Draw() float64 {
	if d.config.Law == Even && d.config.Spread == 0 {
		return d.config.Mean
	}
	return d.Quantile(uniform(d.random))
}

// Next returns the next delay in whole ns. It adds what rounding down leaves
// to the next delay, so that a sum of delays is exact to 1 ns.
func (d *Delays) Next() int64 {
	x := d.Draw() + d.part
	whole := math.Floor(x)
	d.part = x - whole
	return int64(whole)
}

// Quantile returns the delay in ns that is not exceeded with probability u,
// for u above 0 and below 1.
func (d *Delays) Quantile(u float64) float64 {
	switch d.config.Law {
	case Weibull:
		return d.scale * math.Pow(-math.Log1p(-u), 1/d.config.Shape)
	case Pareto:
		return pareto{d.scale, d.config.Shape}.exceeded(1 - u)
	}
	return d.config.Mean + d.config.Spread*(2*u-1)
}
