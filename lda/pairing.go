package lda

import (
	"math/bits"

	"github.com/hoplag/hoplag/estimate"
)

// A pairing is what two points of one Config hold in the same cells, and which
// cells are overfull at either: they hold more packets than chance puts there
// (see [estimate.CountLimit]), so some are copies of one, which all fall into one
// cell.
type pairing struct {
	up, down *Aggregator
	agree    uint64               // bits of the tallies in which the same packets agree
	any      bool                 // some cell is overfull
	most     [2][MaxBanks]uint64  // the greatest counts that chance gives cells
	mean     [2][MaxBanks]float64 // of the other cells
}

// newPairing looks at the cells of two points.
func newPairing(up, down *Aggregator) pairing {
	p := pairing{up: up, down: down, agree: up.config.digestMask() | (1<<32 - 1)}
	var sum, greatest [2][MaxBanks]uint64
	p.each(func(bank, i int) {
		s, d := uint64(up.cells[i].count()), uint64(down.cells[i].count())
		sum[0][bank] += s
		sum[1][bank] += d
		greatest[0][bank] = max(greatest[0][bank], s)
		greatest[1][bank] = max(greatest[1][bank], d)
	})
	for point, a := range [2]*Aggregator{up, down} {
		from := 0
		for j, b := range a.config.Banks[:a.config.banks()] {
			cells := a.cells[from : from+b.Rows]
			from += b.Rows
			p.mean[point][j] = float64(sum[point][j]) / float64(b.Rows)
			most := estimate.CountLimit(b.Rows, sum[point][j], greatest[point][j], func(i int) uint64 { return uint64(cells[i].count()) })
			if p.most[point][j] = most; greatest[point][j] > most {
				p.any = true
				p.mean[point][j] = meanWithin(cells, most)
			}
		}
	}
	return p
}

// meanWithin returns the mean count of the cells that do not exceed a limit.
func meanWithin(cells []cell, most uint64) float64 {
	sum, n := uint64(0), 0
	for i := range cells {
		if count := uint64(cells[i].count()); count <= most {
			sum += count
			n++
		}
	}
	return float64(sum) / float64(max(n, 1))
}

// each calls f for the cells that may not be empty, bank by bank.
func (p *pairing) each(f func(bank, i int)) {
	from := 0
	for bank, b := range p.up.config.Banks[:p.up.config.banks()] {
		for i, to := from, from+b.Rows; i < to; {
			end := min(to, (i/packedBlock+1)*packedBlock)
			some := p.up.some(i/packedBlock) | p.down.some(i/packedBlock)
			for some = some << (i % packedBlock) >> (i % packedBlock); some != 0; {
				k := bits.LeadingZeros64(some)
				some &^= 1 << (63 - k)
				if i = i/packedBlock*packedBlock + k; i >= end {
					break
				}
				f(bank, i)
			}
			i = end
		}
		from += b.Rows
	}
}

// bank returns the bank of a cell.
func (p *pairing) bank(i int) (bank int) {
	for i -= p.up.config.Banks[0].Rows; i >= 0; i -= p.up.config.Banks[bank].Rows {
		bank++
	}
	return bank
}

// overfull reports whether a cell of a bank is overfull at either point.
func (p *pairing) overfull(bank, i int) bool {
	return p.any && (uint64(p.up.cells[i].count()) > p.most[0][bank] || uint64(p.down.cells[i].count()) > p.most[1][bank])
}

// beyond returns how many packets an overfull cell has beyond what others have.
func (p *pairing) beyond(bank, i int) uint64 {
	s, d := float64(p.up.cells[i].count()), float64(p.down.cells[i].count())
	return uint64(max(s-p.mean[0][bank], d-p.mean[1][bank]))
}

// usable reports whether a cell has the same packets at both points, as far as
// count and digest tell.
func (p *pairing) usable(i int) bool { return (p.up.cells[i].tally^p.down.cells[i].tally)&p.agree == 0 }

// len returns the number of cells of all banks.
func (p *pairing) len() int { return len(p.up.cells) - unsampled }

// at returns the number of packets of a cell, 0 if it is overfull or not usable, and
// the sum of their delays, wrapped.
func (p *pairing) at(i int) (packets, sum uint64) {
	if !p.usable(i) || p.any && p.overfull(p.bank(i), i) {
		return 0, 0
	}
	return uint64(p.up.cells[i].count()), p.down.cells[i].sum - p.up.cells[i].sum
}

// counts returns the numbers of packets of a cell, 0 if it is overfull.
func (p *pairing) counts(bank, i int) (sent, received float64) {
	if p.overfull(bank, i) {
		return 0, 0
	}
	return float64(p.up.cells[i].count()), float64(p.down.cells[i].count())
}
