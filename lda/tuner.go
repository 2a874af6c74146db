package lda

import (
	"math"

	"github.com/hoplag/hoplag/estimate"
)

// A Tuner chooses the sampling of the next interval by the losses of the last. It
// has no state. Package control uses it.
type Tuner struct {
	// Config has everything but the shifts. It is used until losses are known.
	Config Config

	// Quantiles keeps the last bank thin, with about one packet to a cell,
	// whatever the losses.
	Quantiles bool
}

// congestion is one over the share of lost packets for which the deepest bank is tuned.
const congestion = 4

// Validate reports what is out of range. The error wraps [estimate.ErrConfig].
func (t *Tuner) Validate() error {
	if err := t.Config.Validate(); err != nil {
		return err
	}
	if t.Quantiles && t.Config.banks() < 2 {
		return estimate.Invalid("lda", "Quantiles", true, "false with one bank")
	}
	return nil
}

// Next returns the Config for the interval after one in which the given numbers of
// packets were sent and lost. It tunes the first bank to those losses, with an
// allowance for chance, and the last one that is not for quantiles to the loss of a
// quarter of the packets, so that the first interval of a congestion is not missed.
// If the Tuner is not valid, Next returns its Config.
func (t Tuner) Next(sent, lost uint64) Config {
	c := t.Config
	if t.Validate() != nil {
		return c
	}
	// The deviation of a number of losses is about its root. One loss more
	// keeps an interval without losses from being taken for a promise.
	all, low := float64(sent), float64(lost)+2*math.Sqrt(float64(lost))+1
	banks := c.banks()
	if t.Quantiles {
		last := &c.Banks[banks-1]
		c.tune(banks-1, low, all/congestion)
		last.Shift = max(shiftFor(last.Rows, all), c.Banks[banks-2].Shift+1)
	} else {
		c.tune(banks, low, all/congestion)
	}
	for j := range banks {
		c.Banks[j].Shift = min(c.Banks[j].Shift, maxShift-c.DigestBits-uint8(banks-1-j))
	}
	return c
}

// tune tunes the first n banks to numbers of lost packets from low to high, each to
// as many times more than the one before.
func (c *Config) tune(n int, low, high float64) {
	low = max(low, 1)
	for j := range n {
		lost := low * math.Pow(max(1, high/low), float64(j)/float64(max(1, n-1)))
		c.Banks[j].Shift = shiftFor(c.Banks[j].Rows, lost)
		if j > 0 {
			c.Banks[j].Shift = max(c.Banks[j].Shift, c.Banks[j-1].Shift+1)
		}
	}
}

// shiftFor returns the sampling shift that gives a bank of the given rows the
// greatest effective sample when lost packets are lost: p = m/L, or the nearest
// power of two below, which costs little of the sample, gains usable cells, and
// errs on the side that does less harm.
func shiftFor(rows int, lost float64) (shift uint8) {
	for shift < maxShift && math.Ldexp(1, -int(shift)) > float64(rows)/lost {
		shift++
	}
	return shift
}
