package colate

import (
	"math"
	"math/bits"
)

// A commonEpoch is what typical cells say about an epoch: how all packets
// fared in it.
type commonEpoch struct {
	mean  float64 // delay above the reference
	known bool    // whether there is a group
	cell  float64 // packets in one cell
	lost  float64 // packets missing at the second point, for each that it has

	packets, gone float64 // in all cells, until learn
}

// A common is what typical cells say about the epochs in the table.
//
// Which counters lose a packet in an epoch is chance, because hashes spread
// packets over them: the packets of the other counters fared like theirs. So
// even if delays were longest when most counters lost packets, the rest tell
// how long delays were.
type common struct {
	epochs [mostCuts]commonEpoch
	usual  float64 // mean of all their packets' delays above the reference
}

// see adds the packets of a cell.
func (k *common) see(t *cellTable, cell int) {
	for e := range t.epochs {
		k.epochs[e].packets += t.packets(cell, e)
		k.epochs[e].gone += t.gone(cell, e)
	}
}

// learn finishes, given the number of cells whose groups were added.
func (k *common) learn(v *view, epochs int, cells float64) {
	sum, count := 0.0, 0.0
	for e := range epochs {
		c := &k.epochs[e]
		c.mean, c.known = v.sums[e]/max(v.grouped[e], 1), v.grouped[e] > 0
		c.cell = c.packets / max(cells, 1)
		c.lost = max(c.gone, 0) / max(c.packets, 1)
		sum += v.sums[e]
		count += v.grouped[e]
	}
	k.usual = sum / max(count, 1)
}

// learn learns from absent flows, using cells with no more packets than the
// limit.
func (a *Accumulator) learn(limit float64) {
	t, from, cells := a.table, len(a.flows)*a.config.PerFlow, 0.0
	var v view
	each := func(f func(cell int, g *group)) {
		for i := from; i < len(a.groups); i++ {
			for k := range a.groups[i] {
				if a.totals[i] <= limit {
					f(i, &a.groups[i][k])
				}
			}
		}
	}
	a.common = common{}
	for i := from; i < len(a.groups); i++ {
		if a.totals[i] <= limit {
			cells++
			a.common.see(t, i)
		}
	}
	each(func(_ int, g *group) { v.cover(g.mask) })
	v.open(cells, 0)
	each(func(i int, g *group) { v.count(g, t, i) })
	v.stands = v.grouped
	each(func(i int, g *group) { v.add(g, t, i, a.reference) })
	a.common.learn(&v, t.epochs, cells)
}

// A view is what some cells say about each epoch in the table.
type view struct {
	present [mostCuts]float64 // packets in the flow's cells that are used
	plain   [mostCuts]float64 // of these, in groups
	parts   [mostCuts]float64 // fraction of the flow's packets that goes to cells with a group
	part    [mostCuts]float64 // fraction of the full cells that have a group
	grouped [mostCuts]float64 // packets in groups, each times the rarity of its group
	stands  [mostCuts]float64 // number of packets that all the groups stand for
	sums    [mostCuts]float64 // delays of these above the reference
}

// plainly adds a group of a cell that takes the fraction part of the flow's
// packets.
func (v *view) plainly(g *group, t *cellTable, cell int, part float64) {
	for mask := g.mask; mask != 0; mask &= mask - 1 {
		e := bits.TrailingZeros64(mask)
		v.plain[e] += t.packets(cell, e)
		v.parts[e] += part
	}
}

// cover records that a cell has a group of these epochs.
func (v *view) cover(mask uint64) {
	for ; mask != 0; mask &= mask - 1 {
		v.part[bits.TrailingZeros64(mask)]++
	}
}

// open turns numbers of cells into fractions of the cells. In epochs left to
// thin cells, no cell is like another.
func (v *view) open(cells float64, thin uint64) {
	for e := range v.part {
		if v.part[e] /= max(cells, 1); thin>>e&1 != 0 || v.part[e] == 0 {
			v.part[e] = 1
		}
	}
}

// mostRarity limits the weight of a group, so that no group outweighs all
// others.
const mostRarity = 100

// rarity returns how many groups of its kind a group stands for. If packets
// crossed the cuts between the epochs of a cell, a group of several epochs
// exists only if none was lost in any of them.
func (v *view) rarity(g *group) float64 {
	x := 1.0
	for mask := g.mask; mask != 0; mask &= mask - 1 {
		x /= v.part[bits.TrailingZeros64(mask)]
	}
	return min(x, mostRarity)
}

// count adds a group's packets.
func (v *view) count(g *group, t *cellTable, cell int) {
	rarity := v.rarity(g)
	for mask := g.mask; mask != 0; mask &= mask - 1 {
		e := bits.TrailingZeros64(mask)
		v.grouped[e] += t.packets(cell, e) * rarity
	}
}

// add adds a group's delays. It returns the group's weight, the number of
// packets that each packet in it stands for, such that an epoch's groups stand
// for all packets of the epoch.
func (v *view) add(g *group, t *cellTable, cell int, reference float64) float64 {
	if g.count == 0 {
		return 0
	}
	rarity, sum, n := v.rarity(g), 0.0, float64(g.count)
	x := g.sum/n - reference
	for mask := g.mask; mask != 0; mask &= mask - 1 {
		e := bits.TrailingZeros64(mask)
		if v.grouped[e] > 0 {
			packets := t.packets(cell, e) * rarity * v.stands[e] / v.grouped[e]
			sum += packets
			v.sums[e] += packets * x
		}
	}
	return sum / n
}

// told reports whether any group says something about an epoch.
func (v *view) told(epoch int) bool { return v.plain[epoch] > 0 }

// settle adds the epochs of a view. For epochs without a group it uses the
// delays of all packets.
func (t *tally) settle(v *view, k *common, told uint64, epochs int) {
	for e := range epochs {
		n := v.stands[e]
		if n == 0 {
			continue
		}
		c := &k.epochs[e]
		if told>>e&1 == 0 {
			t.untold += n
		}
		switch {
		case v.told(e) && c.known:
			over := v.sums[e] - n*c.mean
			t.over += over
			t.slope += over * c.mean
		case v.told(e):
		case c.known:
			t.sum += n * c.mean
			t.count += n
		default:
			t.sum += n * k.usual
			t.count += n
		}
	}
}

// A shade is what is known about the epochs on which a flow's own cells are
// silent, compared with the others.
type shade struct {
	told, first, second float64 // packets in epochs with groups, Σ and Σ² of common means
	untold, untoldFirst float64 // those in epochs without
	dark                float64 // those in epochs on which all cells are silent
	low, high           float64 // of common means
	lost, expected      float64 // packets that the flow's cells lost in those epochs, and would have lost like others
	// For epochs that thin cells speak for: how far the flow's delays are
	// above those of all packets, Σ packets² × that^k, k = 0, 1, 2.
	thin0, thin1, thin2 float64
	thins               int
}

func (s *shade) add(v *view, k *common, gone *[mostCuts]float64, thin uint64, epochs int) {
	for e := range epochs {
		n := v.stands[e]
		c := &k.epochs[e]
		if c.known {
			s.low, s.high = min(s.low, c.mean), max(s.high, c.mean)
		}
		switch {
		case n == 0:
		case v.told(e):
			s.told += n
			mean := c.mean
			if !c.known {
				mean = v.sums[e] / n
			}
			s.first += n * mean
			s.second += n * mean * mean
			if thin>>e&1 != 0 {
				over := v.sums[e]/n - mean
				s.thin0 += n * n
				s.thin1 += n * n * over
				s.thin2 += n * n * over * over
				s.thins++
			}
		case c.known:
			s.untold += n
			s.untoldFirst += n * c.mean
			s.lost += gone[e]
			s.expected += n * c.lost
		default:
			s.untold += n
			s.untoldFirst += n * k.usual
			s.dark += n
		}
	}
}

// apart returns the deviation of common means from one epoch to another.
func (s *shade) apart() float64 {
	mean := s.first / max(s.told, 1)
	return math.Sqrt(max(s.second/max(s.told, 1)-mean*mean, 0))
}

// thinError returns the variance of the sum of delays that thin cells cause,
// because each stands for many packets. It follows from how their epochs
// differ.
func (s *shade) thinError() float64 {
	if s.thins == 0 {
		return 0
	}
	mean := s.thin1 / s.thin0
	few := 1 + 8/float64(s.thins) // their own spread is uncertain
	return max(s.thin2-mean*s.thin1, 0) * few
}
