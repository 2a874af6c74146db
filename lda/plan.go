package lda

import (
	"fmt"
	"math"

	"github.com/hoplag/hoplag/estimate"
)

// A Demand describes the traffic to expect in an interval whose ends no packet crosses, and what you want to know of it. For an
// [Accumulator], some bank must have more rows than packets that it samples are on their way at once.
type Demand struct {
	Packets float64 // in an interval: 1 to 10^12
	Loss    float64 // the greatest share of them that may be lost, 0 to 0.9

	// Burst is the average number of packets lost one after another: 0 or 1 if they are lost independently. The
	// longer bursts are, the more the number of lost packets varies from interval to interval.
	Burst float64

	// MeanError is the greatest standard error of the mean delay that you accept, relative to the mean, as
	// [Result] has it. Variation is the deviation of the delays divided by their mean, as far as you know it: 1
	// for exponential delays, 1.8 for Weibull delays of shape 0.6.
	MeanError float64 // over 0
	Variation float64 // over 0

	Quantiles bool // add a thin bank that gives quantiles
}

const (
	planRows = 16   // fewest rows of a planned bank
	thinRows = 2048 // 700 samples and more: a p99 takes 368

	// keptBy is how many standard deviations intervals may be below the average: 95 of 100
	// keep a plan's promise.
	keptBy = 1.6448536
)

// Plan returns the Config with the fewest cells that meets a demand in 95 of 100 intervals, and of those with as
// many the one whose mean is sharpest. It has one bank, and one more for quantiles: where fewer packets are lost
// than the demand says, the mean is sharper still. Identity is 0, sums have 64 bits and digests 16; change these
// as you like. [Result.MeanInterval], which also allows for rare slow packets that were not seen, is wider than
// MeanError, several times where few packets are seen. [Config.Expect] tells what else to expect.
//
// The error wraps [estimate.ErrConfig], also if no Config can meet the demand.
func Plan(d Demand) (c Config, err error) {
	if err := d.validate(); err != nil {
		return c, err
	}
	for rows := planRows; rows <= 1<<20; rows *= 2 {
		least, found := d.MeanError, false
		for shift := range uint8(maxShift) {
			planned := Config{SumBits: 64, DigestBits: 16}
			planned.Banks[0] = Bank{Rows: rows, Shift: shift}
			ok := !d.Quantiles || d.addThin(&planned)
			e := d.atLeast(&planned)
			if error := e.meanError(d.Variation, keptBy); ok && error <= least {
				c, least, found = planned, error, true
			}
		}
		if found {
			return c, nil
		}
	}
	const reach = "lda: %w: MeanError is %v, not within reach at Packets %v, Loss %v, Variation %v, Quantiles %v"
	return c, fmt.Errorf(reach, estimate.ErrConfig, d.MeanError, d.Packets, d.Loss, d.Variation, d.Quantiles)
}

// atLeast returns what the promised share of intervals gives: the number of lost
// packets, and with it that of spoilt cells, is high by as many standard deviations.
func (d *Demand) atLeast(c *Config) expectation {
	lost := d.Packets * d.Loss
	lost = min(lost+keptBy*math.Sqrt(lost*(2*max(d.Burst, 1)-1)), d.Packets)
	return c.expect(d.Packets, lost/d.Packets)
}

func (d *Demand) validate() error {
	for _, f := range []struct {
		name string
		got  float64
		ok   bool
		want string
	}{
		{"Packets", d.Packets, d.Packets >= 1 && d.Packets <= 1e12, "1 to 1e12"},
		{"Loss", d.Loss, d.Loss >= 0 && d.Loss <= 0.9, "0 to 0.9"},
		{"MeanError", d.MeanError, d.MeanError > 0, "over 0"},
		{"Burst", d.Burst, d.Burst == 0 || d.Burst >= 1 && d.Burst <= d.Packets, "0, or 1 to Packets"},
		{"Variation", d.Variation, d.Variation > 0 && d.Variation < math.Inf(1), "over 0"},
	} {
		if !f.ok {
			return estimate.Invalid("lda", f.name, f.got, f.want)
		}
	}
	return nil
}

// addThin adds the bank for quantiles, with about one packet a cell. Where hardly as many pass
// as it has rows, it takes half of what the first bank would.
func (d *Demand) addThin(c *Config) bool {
	least := c.Banks[0].Shift + 1
	shift := uint8(max(0, math.Round(math.Log2(d.Packets/thinRows))))
	if d.Packets < 2*thinRows {
		shift = max(shift, least)
	}
	c.Banks[1] = Bank{Rows: thinRows, Shift: shift}
	return shift >= least && shift <= maxShift-c.DigestBits
}

// An expectation says what to expect of an interval.
type expectation struct {
	sample   float64 // packets in usable cells
	usable   float64 // cells that are usable and not empty
	alone    float64 // packets alone in their cell at both points
	received float64
}

// Expect returns how many packets of an interval are in usable cells on average, if the share loss of them is lost at random, and
// how many are alone in their cell, so that they give quantiles. It is exact for random hashes: a bank of m rows that samples p of
// the packets adds pR·(1 − p/m)^L, with R received and L lost, which eq. (2) bounds from below and which is greatest at p = m/L.
func (c *Config) Expect(packets, loss float64) (sample, alone float64) {
	e := c.expect(packets, loss)
	return e.sample, e.alone
}

// expect is Expect, and what else a plan rests on.
func (c *Config) expect(packets, loss float64) expectation {
	lost, received := packets*loss, packets-packets*loss
	e := expectation{received: received}
	for j, b := range c.Banks[:c.banks()] {
		p, m := c.rate(j), float64(b.Rows)
		// ln of the probability that a packet is not in a given cell. For one cell that takes all of them it is
		// close enough to -∞, and still gives 0 times 0.
		avoid := max(math.Log1p(-p/m), -math.MaxFloat64)
		unspoilt := math.Exp(lost * avoid)
		e.sample += p * received * unspoilt
		e.usable += m * unspoilt * -math.Expm1(received*avoid)
		e.alone += p * received * math.Exp(max(packets-1, 0)*avoid)
	}
	return e
}

// meanError returns the standard error to expect of the mean delay, relative to it, for delays whose deviation
// is variation times their mean. It is infinite if there will be fewer than two usable cells.
func (e *expectation) meanError(variation, surely float64) float64 {
	if !(e.usable >= 2) {
		return math.Inf(1)
	}
	unseen := max(0, 1-e.sample/e.received)
	// The deviation is itself an estimate, whose relative standard error is 1/√(2(M−1)) from M cells and delays with
	// light tails.
	deviation := math.Sqrt((1 + variation*variation) / (2 * (e.usable - 1)))
	return variation * math.Sqrt(unseen/e.sample) * (1 + surely*deviation)
}
