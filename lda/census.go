package lda

import (
	"errors"
	"fmt"
	"math"
)

// ErrDifferent says that the points saw different packets: something between
// them changes the bytes that are hashed, as address translation does; or they
// hash different bytes, or with different seeds; or the two synopses are of
// different intervals.
var ErrDifferent = errors.New("points see different packets")

// A census is what counts alone tell about packets. Hashes put them into the
// cells of a bank, so the counts of sent, lost and joining packets are
// independent Poisson variables from cell to cell, and those that arrive are as
// many in cells with losses as in others. Copies of a packet break that.
type census struct {
	common, commonError float64 // packets that passed both points, as a share of those that passed the one with fewer
	hidden, hiddenError float64 // losses in cells that other packets joined
	excess, excessError float64 // share of the packets that arrived that share a cell with a loss, beyond chance
	pairs, pairsError   float64 // how many others, beyond chance, share the cell of a packet
}

// census counts the packets of two points, but those of overfull cells.
func (p *pairing) census() (c census) {
	var all bankCensus
	for bank := range p.up.config.banks() {
		one := p.countBank(bank)
		all.merge(&one)
	}
	// Losses and joiners that no bank samples are as many as among the others.
	if all.sent > 0 {
		scale := 1 + float64(p.up.unsampledCount())/all.sent
		c.hidden, c.hiddenError = scale*all.hidden, scale*math.Sqrt(all.hiddenVariance)
	}
	ratio := func(x, variance, of float64) (float64, float64) {
		return x / max(of, 1), math.Sqrt(variance) / max(of, 1)
	}
	c.common, c.commonError = ratio(all.together, all.togetherVariance, min(all.sent, all.received))
	c.excess, c.excessError = ratio(all.excess, all.excessVariance, all.arrived)
	c.pairs, c.pairsError = ratio(all.pairs, all.pairsVariance, all.sent)
	return c
}

// A bankCensus has the sums of a census over the cells of a bank.
type bankCensus struct {
	sent, received             float64
	together, togetherVariance float64 // covariance of sent and received
	hidden, hiddenVariance     float64
	pairs, pairsVariance       float64 // variance of sent, less its mean
	arrived                    float64 // in banks where some cells lost packets and some did not
	excess, excessVariance     float64
}

func (a *bankCensus) merge(b *bankCensus) {
	into := [...]*float64{&a.sent, &a.received, &a.together, &a.togetherVariance, &a.hidden, &a.hiddenVariance,
		&a.pairs, &a.pairsVariance, &a.arrived, &a.excess, &a.excessVariance}
	from := [...]float64{b.sent, b.received, b.together, b.togetherVariance, b.hidden, b.hiddenVariance,
		b.pairs, b.pairsVariance, b.arrived, b.excess, b.excessVariance}
	for i := range into {
		*into[i] += from[i]
	}
}

func (p *pairing) countBank(bank int) (b bankCensus) {
	from, n := 0, p.up.config.Banks[bank].Rows
	for _, before := range p.up.config.Banks[:bank] {
		from += before.Rows
	}
	rows := float64(n)
	var lost, extra, spoilt, arrived, among float64 // among: of those that arrived, in spoilt cells
	for i := from; i < from+n; i++ {
		s, d := p.counts(bank, i)
		b.sent += s
		b.received += d
		arrived += min(s, d)
		lost += max(s-d, 0)
		extra += max(d-s, 0)
		if s != d {
			spoilt++
			among += min(s, d)
		}
	}
	meanSent, meanReceived := b.sent/rows, b.received/rows
	net := meanSent - meanReceived
	differences := 0.0
	for i := from; i < from+n; i++ {
		s, d := p.counts(bank, i)
		s, d = s-meanSent, d-meanReceived
		b.together += s * d
		b.togetherVariance += s * s * d * d
		b.pairs += s*s - meanSent*(1-1/rows)
		differences += (s - d) * (s - d)
	}
	b.pairsVariance = 2 * rows * meanSent * meanSent
	if rows < leastRows {
		b.togetherVariance = math.Inf(1)
	}
	if extra > 0 && rows > 1 {
		// The difference of two Poisson variables has as variance the sum of their
		// means, and its fourth cumulant is the same.
		v := differences / (rows - 1)
		b.hidden = max(0, rows*(v+net)/2-lost)
		b.hiddenVariance = rows * (v + 2*v*v) / 4
	}
	if share := spoilt / rows; spoilt > 0 && rows-spoilt >= leastGood {
		b.arrived = arrived
		b.excess = (among - arrived*share) / (1 - share)
		b.excessVariance = arrived * share / (1 - share)
	}
	return b
}

// leastRows is how many cells it takes to know how sure a covariance is.
const leastRows = 64

// leastGood is how many cells of a bank have to be without losses.
const leastGood = 5

// different returns an error if few of the packets passed both points.
func (c *census) different() error {
	if most := c.common + 5*c.commonError; c.commonError > 0 && most < 0.25 {
		return fmt.Errorf("%w: at most %.2g %% passed both; translation, another seed, other bytes or another interval",
			ErrDifferent, 100*max(most, 0))
	}
	return nil
}

// hide says how many losses are behind packets that joined.
func (r *Result) hide(c *census) {
	if r.Extra > 0 {
		r.hidden, r.hiddenError = c.hidden, c.hiddenError
	}
}
