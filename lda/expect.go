package lda

import "math"

// An expectation says what to expect of an interval.
type expectation struct {
	sample float64 // packets in usable cells
	usable float64 // cells that are usable and not empty
	alone  float64 // packets alone in their cell at both points

	received float64 // packets
	surely   float64 // number of standard deviations below the average
}

// Expect returns how many packets of an interval are in usable cells on average, if the share loss of them is
// lost at random, and how many are alone in their cell, so that they give quantiles. It is exact for random
// hashes: a packet that arrives is in the sample if no lost packet is in its cell, so a bank of m rows that
// samples p of the packets adds
//
//	E[S] = pR·(1 − p/m)^L
//
// which eq. (2) bounds from below, and which is greatest at p = m/L. The standard error of the mean is then
// about σ·√((1 − S/R)/S).
func (c *Config) Expect(packets, loss float64) (sample, alone float64) {
	e := c.expect(packets, loss, 0)
	return e.sample, e.alone
}

// expect is Expect if the cells that survive are few, by so many standard deviations.
func (c *Config) expect(packets, loss, surely float64) expectation {
	lost, received := packets*loss, packets-packets*loss
	e := expectation{received: received, surely: surely}
	var sample, usable float64 // variances
	for j, b := range c.Banks[:c.banks()] {
		p, m := c.rate(j), float64(b.Rows)
		// ln of the probability that a packet is not in a given cell. For one cell that takes all of them it is
		// close enough to -∞, and still gives 0 times 0.
		avoid := max(math.Log1p(-p/m), -math.MaxFloat64)
		unspoilt, density := math.Exp(lost*avoid), p*received/m
		used := unspoilt * -math.Expm1(received*avoid)
		e.sample += p * received * unspoilt
		e.usable += m * used
		e.alone += p * received * math.Exp(max(packets-1, 0)*avoid)
		sample += m * unspoilt * ((1-unspoilt)*density*density + density*(1-p))
		usable += m * used * (1 - used)
	}
	e.sample = max(0, e.sample-surely*math.Sqrt(sample))
	e.usable = max(0, e.usable-surely*math.Sqrt(usable))
	return e
}

// meanError returns the standard error to expect of the mean delay, relative to it, for delays whose deviation
// is variation times their mean. It is infinite if there will be fewer than two usable cells.
func (e *expectation) meanError(variation float64) float64 {
	if !(e.usable >= 2) {
		return math.Inf(1)
	}
	unseen := max(0, 1-e.sample/e.received)
	// The deviation is itself an estimate, whose relative standard error is 1/√(2(M−1)) from M cells and delays with
	// light tails.
	deviation := math.Sqrt((1 + variation*variation) / (2 * (e.usable - 1)))
	return variation * math.Sqrt(unseen/e.sample) * (1 + e.surely*deviation)
}
