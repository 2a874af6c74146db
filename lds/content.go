package lds

import (
	"cmp"
	"math"
	"slices"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// A took is a number of packets, their time, beyond what all are centred about, and that of others that came in the same intervals.
type took struct{ packets, beyond, usual float64 }

// add adds others, part of whose time is not theirs.
func (x *took) add(y took, aged float64) {
	*x = took{x.packets + y.packets, x.beyond + y.beyond - aged, x.usual + y.usual}
}

// A content is what is known about a cell, with the variance of what is not known of the time. Of a cell that
// is not usable only its packets are known.
type content struct {
	took
	variance float64
	usable   bool
	sent     uint64 // packets
	tally    uint64 // of the cell upstream: equal ones have the same packets
}

// believe makes a cell that lost packets unusable if it says less than how far means of cells are apart.
func (x *content) believe(apart float64) {
	x.usable = x.usable && x.packets > 0 && x.variance <= sq(x.packets*apart)
}

// load returns how many packets a cell of a row stands for at most. A cell that lost packets counts as
// fuller, by as many packets of other flows as would make it as uncertain, given how far apart means of cells are.
func (x *content) load(rate, apart float64) float64 {
	return atMost(x.packets, rate) * (1 + math.Sqrt(x.variance)/(x.packets*max(apart, 1)))
}

// A scatter adds up sums of some packets, and gives the variance of one (count-conditioned).
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

const (
	nearCells  = 40                                  // on either side of a flow's cells
	mostNearby = MaxRows * (maxSpread + 2*nearCells) // that nearby lists
)

// nearby lists flow f's cells and those next to them, row after row.
func (c *Config) nearby(cells *[mostNearby]uint32, f hashing.Flow) []uint32 {
	list, reach := cells[:0], min(nearCells, (c.Columns-c.Spread)/2)
	for r := range c.Rows {
		home := int(home(r, f, uint64(c.Columns))) + c.Columns
		for k := range c.Spread + reach {
			list = append(list, uint32(r*c.Columns+(home+k)%c.Columns))
		}
		for k := range reach {
			list = append(list, uint32(r*c.Columns+(home-1-k)%c.Columns))
		}
	}
	return list
}

// A view is what is known of a flow's cells, and of those next to them.
type view struct {
	config *Config
	apart  float64   // how far means of cells are apart, as a deviation
	single float64   // variance of the time of one packet
	cells  []content // as nearby lists them
}

func (v *view) own(r int) []content { return v.cells[len(v.cells)/v.config.Rows*r:][:v.config.Spread] }

func (v *view) near(r int) []content {
	each := len(v.cells) / v.config.Rows
	return v.cells[each*r+v.config.Spread : each*(r+1)]
}

// pairs are the cells of two sketches, and what those without losses tell about the others: the delay and the time
// that all are centred on, how far packets' times scatter, and how far means of cells do.
type pairs struct {
	up, down *Sketch
	around   centre
	origin   uint64  // about which times are counted, if times is not infinite
	times    float64 // variance of the time at which a packet was sent
	apart    float64 // deviation of the means of cells
	single   float64 // variance of the time that one packet takes
	mean     float64 // of that time, beyond the centre
	together float64 // square of how far from the mean time packets were lost together
	balance
}

// newPairs reads what the given cells say. If these do not say enough, it reads all, or some where they hold too many packets to say more.
func newPairs(up, down *Sketch, cells []uint32) (p pairs) {
	const farCells = 2048
	all, far := len(up.cells), min(len(up.cells), farCells)
	everywhere := func(i int) int { return int(int64(i) * int64(all) / int64(far)) }
	p.up, p.down = up, down
	if told, crowded := p.read(len(cells), func(i int) int { return int(cells[i]) }); told <= intervalDegrees {
		if p = (pairs{up: up, down: down}); crowded <= intervalDegrees {
			far = all
		}
		p.read(far, everywhere)
	} else if c := &up.config; c.Spread > 1 || up.sampling { // slow packets may be so rare that there are none near
		wide := pairs{up: up, down: down}
		wide.read(far, everywhere)
		p.single = max(p.single, wide.single)
	}
	if p.more+p.fewer > 0 {
		p.together = p.burst(far, everywhere)
	}
	return p
}

// burst returns the square of how far from the mean time packets are lost, if cells have that in common: by the line
// through what their sums are off by and how many each lost, with its variance and one packet more, lost at any time.
func (p *pairs) burst(n int, cell func(i int) int) float64 {
	sum, squares, weights := 0.0, 1/p.times, 1/p.times
	for i := range n {
		if x, k := p.rest(cell(i)); x.variance > 0 {
			weight := k / (x.variance + sq(x.packets*p.apart))
			off := weight * (x.beyond - x.packets*p.mean)
			sum += off
			squares += sq(off)
			weights += weight * k
		}
	}
	return (sq(sum) + squares) / sq(weights)
}

// read reads n cells, and returns how many tell how far packets are apart, and how many hold too many for that.
func (p *pairs) read(n int, cell func(i int) int) (told, crowded float64) {
	digests, bits := p.up.config.DigestBits, p.up.config.SumBits
	for i := range n {
		u, d := &p.up.cells[cell(i)], &p.down.cells[cell(i)]
		if same(u, d, digests) {
			p.around.look(u, d, bits)
		}
		if p.balance.add(float64(u.count()), float64(d.count())); u.count() > fewPackets {
			crowded++
		}
	}
	origin, known := p.around.origin(&p.up.stamp)
	p.origin = origin
	var times, means, all scatter
	var seen [16]uint64 // rows have a flow's packets again, which counts if flows are few
	for i := range n {
		u, d := &p.up.cells[cell(i)], &p.down.cells[cell(i)]
		if n := float64(u.count()); n > 0 && n <= fewPackets && same(u, d, digests) {
			if k := int(times.cells); k < len(seen) {
				if slices.Contains(seen[:k], u.tally) {
					continue
				}
				seen[k] = u.tally
			}
			times.add(u.since(p.origin, bits), n)
			x := p.around.beyond(u, d, bits)
			means.add(x/n, 1)
			all.add(x, n)
		}
	}
	p.times, p.apart, p.single, p.mean = times.variance(), math.Sqrt(means.variance()), all.variance(), all.sum/all.packets
	if all.cells <= intervalDegrees {
		p.times, p.single = math.Inf(1), math.Inf(1)
	} else if !known {
		p.times = math.Inf(1)
	}
	return all.cells, crowded
}

// late returns by how much the mean of flow f may be greater because of copies, +Inf if these hide the others.
func (p *pairs) late(f hashing.Flow) float64 {
	if p.more == 0 {
		return 0
	}
	received := float64(p.down.Packets(f))
	if received == 0 || copied(float64(p.up.Packets(f)), received) {
		return math.Inf(1)
	}
	return p.balance.late(float64(lost(p.down, p.up, f))/received, 0, p.times)
}

// copied reports whether more packets came than were sent, beyond those that cross the ends of intervals.
func copied(sent, received float64) bool { return received > 1.05*sent }

// A balance adds up by how much more packets came than were sent, cell by cell, and by how much fewer.
type balance struct{ more, fewer, all float64 }

func (b *balance) add(sent, received float64) {
	b.more += max(0, received-sent)
	b.fewer += max(0, sent-received)
	b.all += received
}

// late returns by how much a mean may be greater if a part of the packets seems to be copies, and another was
// not seen. If slow packets come twice, cells without copies are a biased choice, and a copy may take as long
// as the interval. Packets that cross its ends make as many cells get more as get fewer.
func (b *balance) late(part, unseen, times float64) float64 {
	if b.more <= b.fewer || max(part, unseen) <= 0 {
		return 0
	}
	return (max(0, part)/b.more + unseen/b.all) * (b.more - b.fewer) * math.Sqrt(12*times)
}

// fewPackets are so few that sums of times within hours do not wrap.
const fewPackets = 1000

func (p *pairs) at(i int) content {
	x, differ := p.rest(i)
	if x.variance > 0 {
		x.variance += sq(differ) * p.together
		x.believe(p.apart)
	}
	return x
}

// rest returns what is left of a cell. If the points' packets differ, those that only one of them saw, as many as the
// counts differ by and at least two where they do not, were sent like those of all packets, and each by itself.
func (p *pairs) rest(i int) (x content, differ float64) {
	c, u, d := &p.up.config, &p.up.cells[i], &p.down.cells[i]
	sent, received := float64(u.count()), float64(d.count())
	x.packets, x.sent, x.tally = sent, uint64(u.count()), u.tally
	if !c.fits(x.sent) || sent+received == 0 {
		return x, 0
	}
	if same(u, d, c.DigestBits) {
		x.beyond, x.usable = p.around.beyond(u, d, c.SumBits), true
		return x, 0
	}
	differ = max(math.Abs(sent-received), 2)
	if received == 0 || sent <= differ || math.IsInf(p.times, 1) || !fits(x.sent, c.SumBits, 4*math.Sqrt(p.times)) {
		return x, 0
	}
	moved := d.sum - u.sum - p.origin*(uint64(d.count())-x.sent) - uint64(p.around.delay)*uint64(d.count())
	x.packets = received
	x.beyond = float64(estimate.SignExtend(moved, int(c.SumBits))) - (received-sent)*u.since(p.origin, c.SumBits)/sent
	x.variance, x.usable = differ*p.times, true
	return x, differ
}

const reach = 10e9 // how far the mean delay of a cell may be from the centre of others, by default

// fits reports whether a sum of a number of bits tells the mean of n packets, which it knows up to multiples of
// 2^bits/n, if it is no farther than so many nanoseconds from the centre.
func fits(n uint64, bits uint8, reach float64) bool {
	return float64(n)*2*reach < math.Ldexp(1, int(bits))
}

func (c *Config) fits(n uint64) bool {
	return fits(n, c.SumBits, float64(cmp.Or(c.GreatestDelay, reach)))
}

// A centre is a delay that others are near. It takes the clocks' offset out of sums before they are read, so
// that it may be large. It comes from the cell with the fewest packets, which wraps last.
type centre struct {
	delay   int64
	sent    uint64 // its timestamps upstream, of one packet its time
	packets uint64 // of that cell, 0: none
}

// look makes a cell that has the same packets at both points the centre if it has the fewest so far.
func (c *centre) look(up, down *cell, bits uint8) {
	if n := uint64(up.count()); n > 0 && (c.packets == 0 || n < c.packets) {
		*c = centre{estimate.SignExtend(down.sum-up.sum, int(bits)) / int64(n), up.sum, n}
	}
}

// origin returns the time that others are counted from: the interval's beginning, or that of a lone packet.
func (c *centre) origin(of *stamp) (at uint64, known bool) {
	if of.number > 0 {
		return uint64(of.began), true
	}
	return c.sent, c.packets == 1
}

// beyond returns the sum of the delays of a cell's packets beyond the centre.
func (c *centre) beyond(up, down *cell, bits uint8) float64 {
	return float64(estimate.SignExtend(down.sum-up.sum-uint64(c.delay)*uint64(up.count()), int(bits)))
}

func sq(x float64) float64 { return x * x }
