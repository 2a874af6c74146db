package lda

import "math"

// Tuned returns the Config, which is valid, with the sampling for the interval after one
// in which the given numbers of packets were sent and lost. It tunes the first bank to
// those losses, with an allowance for chance, and the last one to a packet a cell: so the
// first interval of a congestion is not missed, and quantiles are known. Package control
// uses it.
func (c Config) Tuned(sent, lost uint64) Config {
	// The deviation of a number of losses is about its root. One loss more
	// keeps an interval without losses from being taken for a promise.
	banks, low := c.banks(), float64(lost)+2*math.Sqrt(float64(lost))+1
	c.tune(banks, low, float64(sent))
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
