package lda

import (
	"math"

	"github.com/hoplag/hoplag/estimate"
)

// An Expectation says what to expect of an interval.
type Expectation struct {
	Loss   float64 // share of them lost, 0 to 1
	Sample float64 // effective sample size: packets in usable cells
	Usable float64 // cells that are usable and not empty
	Alone  float64 // packets alone in their cell at both points: samples for quantiles

	received float64 // packets
	surely   float64 // number of standard deviations below the average
}

// Expect returns what an interval gives on average if the share loss of its packets is lost at random. It is
// exact for random hashes: a packet that arrives is in the sample if no lost packet is in its cell, so a bank
// of m rows that samples p of the packets adds
//
//	E[S] = pR·(1 − p/m)^L
//
// which eq. (2) bounds from below, and which is greatest at p = m/L.
func (c *Config) Expect(packets, loss float64) Expectation { return c.expect(packets, loss, 0) }

// expect is Expect if the cells that survive are few, by so many standard deviations.
func (c *Config) expect(packets, loss, surely float64) Expectation {
	lost, received := packets*loss, packets-packets*loss
	e := Expectation{Loss: loss, received: received, surely: surely}
	var sample, usable, single float64 // variances
	for j, b := range c.Banks[:c.banks()] {
		p, m := c.rate(j), float64(b.Rows)
		// ln of the probability that a packet is not in a given cell. For one cell that takes all of them it is
		// close enough to -∞, and still gives 0 times 0.
		avoid := max(math.Log1p(-p/m), -math.MaxFloat64)
		unspoilt, density := math.Exp(lost*avoid), p*received/m
		used := unspoilt * -math.Expm1(received*avoid)
		e.Sample += p * received * unspoilt
		e.Usable += m * used
		alone := p * received * math.Exp(max(packets-1, 0)*avoid)
		e.Alone += alone
		sample += m * unspoilt * ((1-unspoilt)*density*density + density*(1-p))
		usable += m * used * (1 - used)
		single += alone * max(0, 1-alone/m)
	}
	e.Sample = max(0, e.Sample-surely*math.Sqrt(sample))
	e.Usable = max(0, e.Usable-surely*math.Sqrt(usable))
	e.Alone = max(0, e.Alone-surely*math.Sqrt(single))
	return e
}

// rate returns the share of the packets that bank j samples (p).
func (c *Config) rate(j int) float64 {
	p := math.Ldexp(1, -int(c.Banks[j].Shift))
	if j+1 < c.banks() {
		p -= math.Ldexp(1, -int(c.Banks[j+1].Shift))
	}
	return p
}

// sampledRate returns the share of the packets that all banks together sample.
func (c *Config) sampledRate() float64 { return math.Ldexp(1, -int(c.Banks[0].Shift)) }

// MeanError returns the half width to expect of the interval of the mean delay with the given confidence by the
// central limit theorem, relative to the mean, for delays whose deviation is variation times their mean. It is
// infinite if there will be fewer than two usable cells.
func (e Expectation) MeanError(variation, confidence float64) float64 {
	if !(e.Usable >= 2) {
		return math.Inf(1)
	}
	unseen := max(0, 1-e.Sample/e.received)
	width := estimate.StudentQuantile((1+confidence)/2, math.Floor(e.Usable)-1) * variation * math.Sqrt(unseen/e.Sample)
	// The deviation behind the width is itself an estimate.
	return width * (1 + e.surely*e.deviationError()*math.Sqrt(1+variation*variation))
}

// deviationError returns the standard error to expect of the deviation, relative to it, for delays with light
// tails: 1/√(2(M−1)) from M usable cells. Heavy tails add their excess kurtosis over the packets in a cell,
// inside the root. It is infinite if there will be fewer than two usable cells.
func (e Expectation) deviationError() float64 {
	if !(e.Usable >= 2) {
		return math.Inf(1)
	}
	return 1 / math.Sqrt(2*(e.Usable-1))
}
