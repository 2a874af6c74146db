package lda

import (
	"iter"
	"math"
	"math/bits"
)

// A pairing is what two points of one Config hold in the same cells. All copies of a
// packet fall into one cell, which is overfull if it holds more packets at either point
// than chance puts there.
type pairing struct {
	up, down *Aggregator
	agree    uint64              // bits of the tallies in which the same packets agree
	any      bool                // some cell is overfull
	usual    [2][MaxBanks]counts // of the other cells, by point
}

// counts are those of the cells of a bank: the greatest that chance makes, and the mean.
type counts struct {
	most uint64
	mean float64
}

// newPairing looks at the cells of two points.
func newPairing(up, down *Aggregator) pairing {
	p := pairing{up: up, down: down, agree: up.config.digestMask() | math.MaxUint32}
	var sum, greatest [2][MaxBanks]uint64
	p.each(func(bank, i int) {
		s, d := uint64(up.cells[i].count()), uint64(down.cells[i].count())
		sum[0][bank] += s
		sum[1][bank] += d
		greatest[0][bank] = max(greatest[0][bank], s)
		greatest[1][bank] = max(greatest[1][bank], d)
	})
	for point, a := range [2]*Aggregator{up, down} {
		for j, b := range a.config.Banks[:a.config.banks()] {
			from := a.config.first(j)
			p.usual[point][j] = usualCounts(a.cells[from:from+b.Rows], sum[point][j], greatest[point][j])
			p.any = p.any || greatest[point][j] > p.usual[point][j].most
		}
	}
	return p
}

// overfullChance is how often chance alone makes some cell of a bank overfull.
const overfullChance = 1e-6

// usualCounts returns what chance makes of the counts of a bank's cells, of which the
// sum and the greatest are given. The mean is that of the cells within the limit, so
// that copies do not raise it. At a mean of λ packets, √(2λ·ln(10⁶n)) copies of a packet
// in one of n cells go unnoticed.
func usualCounts(cells []cell, sum, greatest uint64) (u counts) {
	n, packets, rarity := float64(len(cells)), float64(sum), math.Log(float64(len(cells))/overfullChance)
	for u.most = math.MaxUint64; n > 0; {
		u.mean = packets / n
		generous := u.mean + 3*math.Sqrt(u.mean/n) + 1e-9
		if c := float64(greatest); c <= generous || rarityOf(c, generous) < rarity {
			break
		}
		limit := poissonLimit(generous, rarity)
		if limit >= u.most {
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

// rarityOf bounds the upper tail of a Poisson distribution at a count above its mean: a
// variable is as great with a probability below exp(c − λ − c·ln(c/λ)), whose negative
// logarithm this is.
func rarityOf(count, mean float64) float64 { return count*math.Log(count/mean) - count + mean }

// poissonLimit returns the smallest count of a rarity, by Newton's method from the bound
// of Bernstein, which is above it.
func poissonLimit(mean, rarity float64) uint64 {
	c := mean + rarity/1.5 + math.Sqrt(2*mean*rarity)
	for range 8 {
		c -= (rarityOf(c, mean) - rarity) / math.Log(c/mean)
	}
	return uint64(math.Ceil(c))
}

// each calls f for the cells that may not be empty, bank by bank.
func (p *pairing) each(f func(bank, i int)) {
	config := &p.up.config
	cells, bank, end := config.cells(), 0, config.first(1)
	for block := 0; block < cells; block += packedBlock {
		some := p.up.some(block/packedBlock) | p.down.some(block/packedBlock)
		for some != 0 {
			k := bits.LeadingZeros64(some)
			some &^= 1 << (63 - k)
			if block+k >= cells {
				break
			}
			for block+k >= end {
				bank++
				end = config.first(bank + 1)
			}
			f(bank, block+k)
		}
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
	return p.any && (uint64(p.up.cells[i].count()) > p.usual[0][bank].most || uint64(p.down.cells[i].count()) > p.usual[1][bank].most)
}

// beyond returns how many packets an overfull cell has beyond what others have.
func (p *pairing) beyond(bank, i int) uint64 {
	s, d := float64(p.up.cells[i].count()), float64(p.down.cells[i].count())
	return uint64(max(s-p.usual[0][bank].mean, d-p.usual[1][bank].mean))
}

// usable reports whether a cell has the same packets at both points, as far as
// count and digest tell.
func (p *pairing) usable(i int) bool { return (p.up.cells[i].tally^p.down.cells[i].tally)&p.agree == 0 }

// at returns the number of packets of a cell, 0 if it is overfull or not usable, and
// the sum of their delays, wrapped.
func (p *pairing) at(i int) (packets, sum uint64) {
	if !p.usable(i) || p.any && p.overfull(p.bank(i), i) {
		return 0, 0
	}
	return uint64(p.up.cells[i].count()), p.down.cells[i].sum - p.up.cells[i].sum
}

// all returns what at does of all cells with packets.
func (p *pairing) all() iter.Seq2[uint64, uint64] { return p.some(0, p.up.config.cells()) }

// some returns what at does of the cells with packets from one up to another.
func (p *pairing) some(from, to int) iter.Seq2[uint64, uint64] {
	return func(yield func(packets, sum uint64) bool) {
		for i := from; i < to; i++ {
			if n, sum := p.at(i); n > 0 && !yield(n, sum) {
				return
			}
		}
	}
}
