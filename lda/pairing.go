package lda

import (
	"iter"
	"math"
	"math/bits"

	"github.com/hoplag/hoplag/estimate/areas"
)

// A pairing is what two points of one Config hold in the same cells. All copies of a packet fall into one cell, which
// is overfull if it holds more packets at either point than chance puts there.
type pairing struct {
	up, down      *Aggregator
	sum, greatest [2][maxBanks]uint64 // packets of the cells, by point
	agree         uint64              // bits of the tallies in which the same packets agree
	any           bool                // some cell is overfull
	usual         [2][maxBanks]counts // of the other cells, by point
}

// counts are of the packets in cells of a bank: the most to be expected by chance, and the mean.
type counts struct {
	most uint64
	mean float64
}

// newPairing looks at the cells of two points.
func newPairing(up, down *Aggregator) pairing {
	p := pairing{up: up, down: down}
	p.each(p.see)
	p.judge()
	return p
}

// see takes the packets of a cell.
func (p *pairing) see(bank, i int) {
	s, d := uint64(p.up.cells[i].count()), uint64(p.down.cells[i].count())
	p.sum[0][bank] += s
	p.sum[1][bank] += d
	p.greatest[0][bank] = max(p.greatest[0][bank], s)
	p.greatest[1][bank] = max(p.greatest[1][bank], d)
}

// judge finds out what is usual, when all cells were seen.
func (p *pairing) judge() {
	p.agree = p.up.config.digestMask() | math.MaxUint32
	for point, a := range [2]*Aggregator{p.up, p.down} {
		for j := range a.config.banks() {
			cells := a.cells[a.config.first(j):a.config.first(j+1)]
			p.usual[point][j] = usualCounts(cells, p.sum[point][j], p.greatest[point][j])
			p.any = p.any || p.greatest[point][j] > p.usual[point][j].most
		}
	}
}

// overfullChance is how often chance alone makes some cell of a bank overfull.
const overfullChance = 1e-6

// usualCounts returns what chance makes of the counts of a bank's cells, given their sum and the greatest, by
// Bernstein's bound. The mean is that of the cells within the limit, so that copies do not raise it. At a mean
// of λ packets, about √(2λ·ln(10⁶n)) copies of a packet in one of n cells go unnoticed.
func usualCounts(cells []cell, sum, greatest uint64) (u counts) {
	n, packets, rarity := float64(len(cells)), float64(sum), math.Log(float64(len(cells))/overfullChance)
	for u.most = math.MaxUint64; n > 0; {
		u.mean = packets / n
		generous := u.mean + 3*math.Sqrt(u.mean/n)
		limit := uint64(math.Ceil(generous + math.Sqrt(2*generous*rarity) + rarity*2/3))
		if greatest <= limit || limit >= u.most {
			break
		}
		u.most, n, packets = limit, 0, 0
		for i := range cells {
			if c := uint64(cells[i].count()); c <= limit {
				n++
				packets += float64(c)
			}
		}
	}
	return u
}

// each calls f for the cells that may not be empty, bank by bank.
func (p *pairing) each(f func(bank, i int)) {
	for bank := range p.up.config.banks() {
		walk(p.up.config.first(bank), p.up.config.first(bank+1), p.some, func(i int) { f(bank, i) })
	}
}

// some returns the cells of a block that may not be empty, the first one highest.
func (p *pairing) some(block int) uint64 { return p.up.some(block) | p.down.some(block) }

// overfull reports whether a cell of a bank is overfull at either point.
func (p *pairing) overfull(bank, i int) bool {
	return p.any && (uint64(p.up.cells[i].count()) > p.usual[0][bank].most || uint64(p.down.cells[i].count()) > p.usual[1][bank].most)
}

// usable reports whether a cell has the same packets at both points, as far as count and digest tell.
func (p *pairing) usable(i int) bool { return (p.up.cells[i].tally^p.down.cells[i].tally)&p.agree == 0 }

// of yields the numbers of packets, and the sums of their delays, wrapped, of the usable
// cells of banks from one up to another that are neither empty nor overfull.
func (p *pairing) of(from, to int) iter.Seq2[uint64, uint64] {
	return func(yield func(packets, sum uint64) bool) {
		for bank := from; bank < to; bank++ {
			for i := p.up.config.first(bank); i < p.up.config.first(bank+1); i++ {
				s, d := &p.up.cells[i], &p.down.cells[i]
				if s.count() > 0 && p.usable(i) && !p.overfull(bank, i) && !yield(uint64(s.count()), d.sum-s.sum) {
					return
				}
			}
		}
	}
}

// cutBank compares the cells of a bank, and returns the sum of the squares of what they were sent. Nearly all have stamps from
// within the interval, and no more packets than others: it adds these up in registers.
func (a *Accumulator) cutBank(p *pairing, bank int, counts *counted, when *interval) (squares float64) {
	var sent, received, most uint64
	var sentAfter, receivedAfter float64
	ups, downs, stamps := p.up.cells, p.down.cells[:len(p.up.cells)], &counts.stamps
	from, to := a.config.first(bank), a.config.first(bank+1)
	for block := from / packedBlock; block*packedBlock < to; block++ {
		for some := p.some(block); some != 0; {
			i := bits.LeadingZeros64(some) % packedBlock
			some &^= 1 << 63 >> i
			i += block * packedBlock
			s, d := &ups[i], &downs[i]
			if i < from || i >= to || s.sum|s.tally|d.sum|d.tally == 0 {
				continue
			}
			n, m, x, y := uint64(s.count()), uint64(d.count()), when.after(s), when.after(d)
			if max(n, m) > most || uint64(x) > n*when.ns || uint64(y) > m*when.ns {
				p.see(bank, i)
				stamps[0].add(s, when)
				stamps[1].add(d, when)
				most = min(p.greatest[0][bank], p.greatest[1][bank], when.packets)
			} else {
				sent, received, sentAfter, receivedAfter = sent+n, received+m, sentAfter+float64(x), receivedAfter+float64(y)
			}
			squares += sq(float64(s.count()))
			counts.cells++
			a.areas.Cut(i, areas.CellPair{SentSum: s.sum, SentTally: s.tally, ReceivedSum: d.sum, ReceivedTally: d.tally})
		}
	}
	p.sum[0][bank] += sent
	p.sum[1][bank] += received
	stamps[0].within(sent, sentAfter, when)
	stamps[1].within(received, receivedAfter, when)
	return squares
}
