package lda

import (
	"errors"
	"fmt"
	"math"

	"github.com/hoplag/hoplag/estimate"
)

// ErrDifferent means that the points saw different packets: something between them changes the bytes that are hashed, as address
// translation does; or they hash different bytes, or with different seeds; or the two synopses are of different intervals.
var ErrDifferent = errors.New("points see different packets")

// A census is what counts alone tell about packets: METHODS.md, section 2.
type census struct {
	sent, received float64
	common         figure // packets that passed both points
	hidden         figure // losses in cells that other packets joined
	same           pairs  // of packets sent,
	losses         pairs  // of those lost,
	excess         pairs  // and of one that arrived and one lost
}

// A figure is an estimate, or the sum of several, and its variance.
type figure struct{ value, variance float64 }

func (f *figure) add(value, variance float64) {
	f.value, f.variance = f.value+value, f.variance+variance
}

// most returns the figure plus so many standard errors, at least 0.
func (f *figure) most(errors float64) float64 { return max(0, f.value+errors*math.Sqrt(f.variance)) }

const (
	surely     = 4   // standard errors: chance makes them once in 30,000
	likely     = 2.5 // standard errors of figures together: once in 20
	leastRows  = 64  // cells that it takes to know how sure a covariance is
	leastAlone = 20  // packets that are alone, to know how they scatter, and in what time they were sent
)

// census counts the packets of two points, except those of overfull cells.
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
	var sent, received, lost, extra float64
	for i := from; i < to; i++ {
		s, d := p.counts(bank, i)
		sent += s
		received += d
		lost += max(s-d, 0)
		extra += max(d-s, 0)
	}
	var together, doubt, differences, same, losses, excess float64
	for i := from; i < to; i++ {
		s, d := p.counts(bank, i)
		same += sq(s)
		losses += sq(max(s-d, 0))
		excess += min(s, d) * max(s-d, 0)
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
	arrived := sent - lost
	c.same.see(sent, same, rows)
	c.losses.see(lost, losses, rows)
	c.excess.add(arrived, lost, excess-arrived*lost/rows, 1, rows)
	if extra > 0 && rows > 1 {
		// The difference of two Poisson variables has as variance the sum of their means.
		v := differences / (rows - 1)
		c.hidden.add(max(0, (rows*v+sent-received)/2-lost), rows*(v+2*v*v)/4)
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

// copies reports whether packets are likely to have copies, by what those do to counts, and by how many standard errors fuller
// cells are slower per packet. Groups that are too small to show in one of these figures often move several.
func (c *census) copies(slope float64) bool {
	return math.Hypot(slope, math.Hypot(c.losses.shows(), c.excess.shows())) > likely
}

// pairs are of packets that share a cell and an interval, beyond what chance puts there.
type pairs struct {
	figure
	packets float64
}

// see adds the packets of a bank's cells, by the sum of their counts and of the squares.
func (p *pairs) see(packets, squares, rows float64) {
	p.add(packets, packets, squares-packets-packets*(packets-1)/rows, 2, rows)
}

// add adds the pairs, beyond chance, of one of the packets with one of the others, in one or both orders. Chance makes
// others/rows of them a packet.
func (p *pairs) add(packets, others, beyond, orders, rows float64) {
	p.figure.add(beyond, orders*packets*others/rows)
	p.packets += packets
}

// doubt returns the standard error of pairs by chance, and one pair, where there are few.
func (p *pairs) doubt() float64 { return math.Sqrt(p.variance + 4) }

// shows returns by how many standard errors there are too many.
func (p *pairs) shows() float64 { return max(0, p.value) / p.doubt() }

// each returns how many of the others a packet pairs with on average.
func (p *pairs) each() figure {
	n := max(p.packets, 1)
	return figure{p.value / n, sq(p.doubt() / n)}
}

// fade makes what was seen before the next report count less.
func (p *pairs) fade() {
	const less = 0.9
	p.value, p.variance, p.packets = less*p.value, less*less*p.variance, less*p.packets
}

// copies returns how many copies a packet has at most, on average, if it is sure that some have any.
func (p *pairs) copies() float64 {
	if p.shows() <= surely {
		return 0
	}
	return p.atMost()
}

// atMost returns how many copies a packet has at most, on average, if it has any.
func (p *pairs) atMost() float64 {
	each := p.each()
	return each.most(2)
}

// see counts the packets of a cell if it is overfull, and reports whether it is. Nobody needs a key to repeat a packet, and
// honest senders do so: in keep-alives, probes, and tunnels that are not looked into.
//
// If no copy is lost, their delays add up exactly and have their full weight in the mean. Their deviation is
// not known, and is taken to be that of the other packets. If a copy is lost, nothing is known of its cell
// except how many packets it holds: the mean is of the others, and the intervals allow for what the copies may add.
func (r *Result) see(p *pairing, bank, i int) bool {
	if !p.overfull(bank, i) {
		return false
	}
	s, d := float64(p.up.cells[i].count()), float64(p.down.cells[i].count())
	r.Repeats += uint64(max(s-p.usual[0][bank].mean, d-p.usual[1][bank].mean))
	return true
}

// copies are the packets received in overfull cells.
type copies struct {
	received, known uint64
	sum             float64 // of the delays of those known
}

// copies adds up the overfull cells. A sum that may have wrapped tells nothing.
func (p *pairing) copies() (c copies) {
	width := int(p.up.config.SumBits)
	p.each(func(bank, i int) {
		if !p.overfull(bank, i) {
			return
		}
		s, d := &p.up.cells[i], &p.down.cells[i]
		c.received += uint64(d.count())
		sum := float64(estimate.SignExtend(d.sum-s.sum, width))
		if p.usable(i) && math.Abs(sum) < math.Ldexp(1, width-8) {
			c.known += uint64(d.count())
			c.sum += sum
		}
	})
	return c
}

// include adds copies to a Result of all other packets. The error wraps [estimate.ErrNoSamples] if too many are unknown.
func (r *Result) include(c *copies) error {
	r.unknown = c.received - c.known
	r.strays += r.unknown
	if c.known > 0 {
		share := float64(c.known) / (float64(r.spoken) + float64(c.known))
		apart := c.sum/float64(c.known) - r.Mean
		r.N += c.known
		r.Mean += share * apart
		r.StdDev = math.Sqrt(r.StdDev*r.StdDev + share*(1-share)*apart*apart)
		r.sampling *= 1 - share
	}
	if r.spoken += c.received; 4*r.unknown > r.spoken {
		const unknown = "lda: %w: of %d packets received %d share cells with copies of one, and no delay of them is known"
		return fmt.Errorf(unknown, estimate.ErrNoSamples, r.Received, r.unknown)
	}
	return nil
}

// compareCells compares the usable cells of a settlement. It returns the packets that are alone, and by how
// many standard errors fuller cells are slower per packet.
func compareCells(p *pairing, found *settlement) (alone estimate.Cells, slope float64) {
	mean, sum, squares := found.sum/float64(found.packets), 0.0, 0.0
	for j := range p.up.config.banks() {
		var packets, cells float64
		for n := range p.of(j, j+1) {
			cells++
			packets += float64(n)
		}
		for n, wrapped := range p.of(j, j+1) {
			beyond := found.relative(n, wrapped) - float64(n)*mean
			found.less, found.more = max(found.less, -beyond), max(found.more, beyond)
			term := beyond * (float64(n) - packets/cells)
			sum += term
			squares += sq(term)
			if n == 1 {
				alone.Add(beyond, 1)
			}
		}
	}
	return alone, sum / math.Sqrt(max(squares, math.SmallestNonzeroFloat64))
}

// seeRepeats looks for copies in groups too small to overfill a cell, by their effects.
func (r *Result) seeRepeats(c *census, alone *estimate.Cells, slope float64) {
	r.copied = min(1, c.same.copies())
	if c.copies(slope) {
		r.behind = c.excess.each()
	}
	if alone.Cells() < leastAlone {
		return
	}
	// The logarithm of the variance of n exponential delays has the variance 8/n.
	// Heavier tails err more, and are taken for copies: all that costs is width.
	variance := alone.Variance()
	if math.Log(r.StdDev*r.StdDev/variance) > surely*math.Sqrt(8/float64(alone.Cells())) {
		r.calm, r.calmDegrees = math.Sqrt(variance), alone.EffectiveDegrees(0)
	}
}
