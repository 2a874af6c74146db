package lda

import (
	"errors"
	"fmt"
	"math"
)

// ErrDifferent means that the points saw different packets: something between them changes the bytes that are
// hashed, as address translation does; or they hash different bytes, or with different seeds; or the two
// synopses are of different intervals.
var ErrDifferent = errors.New("points see different packets")

// A census is what counts alone tell about packets. Hashes put them into the cells of a bank, so the counts of sent,
// lost and joining packets are independent Poisson variables from cell to cell, and those that arrive are as many in
// cells with losses as in others. Copies of a packet break that.
type census struct {
	sent, received float64
	arrived        float64 // in banks where some cells lost packets and some did not
	common         figure  // packets that passed both points
	hidden         float64 // losses in cells that other packets joined
	excess         figure  // those arrived that share a cell with a loss, beyond chance
	pairs          pairs
}

// A figure is an estimate, or the sum of several, and its variance.
type figure struct{ value, variance float64 }

func (f *figure) add(value, variance float64) {
	f.value, f.variance = f.value+value, f.variance+variance
}

// most returns the figure and so many standard errors, at least 0.
func (f *figure) most(errors float64) float64 { return max(0, f.value+errors*math.Sqrt(f.variance)) }

const (
	surely    = 4  // standard errors of figures together: chance makes them once in 3,000
	likely    = 3  // likewise: once in 50 to 200
	leastRows = 64 // cells that it takes to know how sure a covariance is
	leastGood = 5  // cells of a bank that have to be without losses
)

// census counts the packets of two points, but those of overfull cells.
func (p *pairing) census() (c census) {
	for bank := range p.up.config.banks() {
		c.count(p, bank)
	}
	return c
}

// counts returns the numbers of packets of a cell, 0 if it is overfull.
func (p *pairing) counts(bank, i int) (sent, received float64) {
	if p.overfull(bank, i) {
		return 0, 0
	}
	return float64(p.up.cells[i].count()), float64(p.down.cells[i].count())
}

// count counts the packets of a bank.
func (c *census) count(p *pairing, bank int) {
	from, to, rows := p.up.config.first(bank), p.up.config.first(bank+1), float64(p.up.config.Banks[bank].Rows)
	var sent, received, lost, extra, spoilt, arrived, among float64 // among: of those that arrived, in spoilt cells
	for i := from; i < to; i++ {
		s, d := p.counts(bank, i)
		sent += s
		received += d
		arrived += min(s, d)
		lost += max(s-d, 0)
		extra += max(d-s, 0)
		if s != d {
			spoilt++
			among += min(s, d)
		}
	}
	var together, doubt, squares, differences float64
	for i := from; i < to; i++ {
		s, d := p.counts(bank, i)
		squares += s * s
		s, d = s-sent/rows, d-received/rows
		together += s * d
		doubt += s * s * d * d
		differences += (s - d) * (s - d)
	}
	if rows < leastRows {
		doubt = math.Inf(1)
	}
	c.sent += sent
	c.received += received
	c.common.add(together, doubt)
	c.pairs.see(sent, squares, rows)
	if extra > 0 && rows > 1 {
		// The difference of two Poisson variables has as variance the sum of their means.
		c.hidden += max(0, (rows/(rows-1)*differences+sent-received)/2-lost)
	}
	if share := spoilt / rows; spoilt > 0 && rows-spoilt >= leastGood {
		c.arrived += arrived
		c.excess.add((among-arrived*share)/(1-share), arrived*share/(1-share))
	}
}

// different returns an error if few of the packets passed both points.
func (c *census) different() error {
	of := max(min(c.sent, c.received), 1)
	if most := c.common.most(5) / of; c.common.variance > 0 && most < 0.25 {
		return fmt.Errorf("%w: at most %.2g %% passed both; translation, another seed, other bytes or another interval", ErrDifferent, 100*most)
	}
	return nil
}

// copies reports whether packets have copies, by what those do to counts, and by how many
// standard errors fuller cells are slower per packet: groups too small for one of these
// figures to show them often move several. Together they are beyond so many errors.
func (c *census) copies(slope, errors float64) bool {
	sum := sq(slope)
	for _, f := range [...]*figure{&c.excess, &c.pairs.figure} {
		if f.value > 0 {
			sum += sq(f.value) / f.variance
		}
	}
	return sum > errors*errors
}

// missing returns the share of the packets that arrived that may be missing from the
// sample because copies of them were lost.
func (c *census) missing() float64 { return c.excess.most(2) / max(c.arrived, 1) }

// hide says how many losses are behind packets that joined. Those that no bank
// samples, of which there are so many, are as many as among the others.
func (r *Result) hide(c *census, outside uint64) {
	if r.Extra > 0 && c.sent > 0 {
		r.hidden = c.hidden * (1 + float64(outside)/c.sent)
	}
}

// pairs are of packets that share a cell and an interval, beyond what chance puts there.
type pairs struct {
	figure
	packets float64
}

// see adds the packets of a bank's cells, by the sum of their counts and of the squares.
func (p *pairs) see(packets, squares, rows float64) {
	p.add(squares-packets-packets*(packets-1)/rows, 2*packets*packets/rows)
	p.packets += packets
}

// fade makes what was seen before the next report count less.
func (p *pairs) fade() {
	const less = 0.9
	p.value, p.variance, p.packets = less*p.value, less*less*p.variance, less*p.packets
}

// each returns how many copies a packet has at most, on average, if it is sure that some have any: there are more pairs
// than by chance, and one more where there are few.
func (p *pairs) each() float64 {
	if p.value <= surely*math.Sqrt(p.variance+4) {
		return 0
	}
	return p.atMost()
}

// atMost returns how many copies a packet has at most, on average, if it has any.
func (p *pairs) atMost() float64 { return p.most(2) / max(p.packets, 1) }
