package lds

import (
	"math"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// Pairs are the cells of two sketches, and what those that lost nothing say of
// others: about what delay and time they are centred, how far times of packets are
// apart, and means of cells.
type pairs struct {
	up, down *Sketch
	around   centre
	origin   uint64  // about which times are counted, if apart is not infinite
	apart    float64 // variance of the time at which a packet was sent
	means    float64 // deviation of the means of cells
}

// newPairs reads what the given cells say.
func newPairs(up, down *Sketch, cells []uint32) (p pairs) {
	p.up, p.down = up, down
	digests, bits := up.config.DigestBits, up.config.SumBits
	for _, at := range cells {
		if u, d := &up.cells[at], &down.cells[at]; compare(u, d, digests) == usable {
			p.around.look(u, d, bits)
		}
	}
	// Times are counted from the beginning of the interval, or from a packet that
	// was alone in its cell.
	if p.origin = p.around.sent; up.number > 0 {
		p.origin = uint64(up.began)
	}
	var times, means scatter
	for _, at := range cells {
		u, d := &up.cells[at], &down.cells[at]
		if n := float64(u.count()); n > 0 && n <= fewPackets && compare(u, d, digests) == usable {
			times.add(p.sent(u), n)
			means.add(p.around.beyond(u, d, bits)/n, 1)
		}
	}
	p.apart, p.means = times.variance(), math.Sqrt(means.variance())
	if p.around.packets != 1 && up.number == 0 {
		p.apart = math.Inf(1)
	}
	return p
}

// fewPackets are so few that sums of times within hours do not wrap.
const fewPackets = 1000

// sent returns the sum of a cell's times upstream.
func (p *pairs) sent(u *cell) float64 {
	return float64(estimate.SignExtend(u.sum-p.origin*uint64(u.count()), int(p.up.config.SumBits)))
}

// at returns what is known about a cell. If the points' packets differ, those that
// only one of them saw, as many as the counts differ by and at least two where they
// do not, were sent like those of all packets. If that says less than how far means
// of cells are apart, the cell tells nothing.
func (p *pairs) at(at int) (all content) {
	c, u, d := &p.up.config, &p.up.cells[at], &p.down.cells[at]
	sent, received := float64(u.count()), float64(d.count())
	all.packets = sent
	if !c.fits(uint64(u.count())) {
		return all
	}
	switch compare(u, d, c.DigestBits) {
	case usable:
		all.beyond, all.usable = p.around.beyond(u, d, c.SumBits), true
	case lossy, reordered:
		differ := max(math.Abs(sent-received), 2)
		if received == 0 || sent <= differ || math.IsInf(p.apart, 1) || !fits(uint64(sent), c.SumBits, 4*math.Sqrt(p.apart)) {
			return all
		}
		moved := d.sum - u.sum - p.origin*(uint64(d.count())-uint64(u.count())) - uint64(p.around.delay)*uint64(d.count())
		all.packets = received
		all.beyond = float64(estimate.SignExtend(moved, int(c.SumBits))) - (received-sent)*p.sent(u)/sent
		all.variance = differ * p.apart
		all.usable = all.variance <= received*received*p.means*p.means
	}
	return all
}

// load returns how many packets a cell of a row stands for at most. What is unknown
// of a cell that lost packets makes it as uncertain as others would that have a part
// of it, by how far means of cells are apart.
func (p *pairs) load(x *content, rate float64) float64 {
	load := atMost(x.packets, rate)
	if x.variance == 0 {
		return load
	}
	return load * (1 + math.Sqrt(x.variance)/(x.packets*max(p.means, 1)))
}

// A scatter adds up sums of some packets, and gives the variance of one.
type scatter struct{ cells, packets, sum, squares float64 }

func (s *scatter) add(sum, packets float64) {
	s.cells++
	s.packets += packets
	s.sum += sum
	s.squares += sum * sum / packets
}

// variance is infinite for fewer than two cells.
func (s *scatter) variance() float64 {
	if s.cells < 2 {
		return math.Inf(1)
	}
	return max(0, s.squares-s.sum*s.sum/s.packets) / (s.cells - 1)
}

// nearby appends flow f's cells and those next to them.
func (c *Config) nearby(cells []uint32, f hashing.Flow) []uint32 {
	for r := range c.Rows {
		for offset := range c.Spread {
			cells = append(cells, uint32(c.at(r, f, offset)))
		}
		cells = c.nextTo(cells, r, f)
	}
	return cells
}

// nextTo appends the cells next to flow f's in row r.
func (c *Config) nextTo(cells []uint32, r int, f hashing.Flow) []uint32 {
	home, reach := int(home(r, f, uint64(c.Columns))), min(nearCells, (c.Columns-c.Spread)/2)
	for k := 1; k <= reach; k++ {
		cells = append(cells, uint32(r*c.Columns+(home-k+c.Columns)%c.Columns), uint32(r*c.Columns+(home+c.Spread-1+k)%c.Columns))
	}
	return cells
}
