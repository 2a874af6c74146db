package lda

import (
	"fmt"
	"math"

	"github.com/hoplag/hoplag/estimate"
)

// A stratum is a run of intervals whose cells are combined: a single interval,
// unless it has too few cells.
type stratum struct {
	settlement
	received uint64
	from     uint32  // cut with which it begins
	told     float64 // number of received packets in groups that are whole
}

// stratumCells is the number of groups of packets that make a stratum.
const stratumCells = 30

// settle adds the interval's groups to the open stratum, and the stratum to
// the sample if it is full.
func (a *Accumulator) settle(received uint64) error {
	a.open.received += received
	if len(a.groups) == 0 {
		if received > 0 {
			a.open.intervals++
		}
		return nil
	}
	width := int(a.config.SumBits)
	found, err := settle(&sums{groups: a.groups, cut: a.levels.Cuts()}, width)
	if err != nil {
		a.open.received -= received
		return fmt.Errorf("lda: interval %d: %w", a.last, err)
	}
	a.sampleAlone(&found, received)
	a.open.merge(&found)
	a.tell()
	if a.open.cells.Cells() >= stratumCells {
		a.close()
	}
	return nil
}

// close adds the open stratum to the sample, if it has a cell.
func (a *Accumulator) close() {
	if a.open.cells.Cells() > 0 {
		a.sample.add(&a.open, a.config.sampledRate())
		a.open = stratum{from: a.levels.Cuts()}
	}
}

// tell says in which strata the packets of the interval's groups were
// received. If groups span several strata, their packets are assumed to have
// been received in the proportions of all cells.
func (a *Accumulator) tell() {
	now := a.levels.Cuts()
	received := func(from, to uint32) float64 { return float64(a.passed[to%maxSpan] - a.passed[from%maxSpan]) }
	for _, g := range a.groups {
		from := max(g.from, now-min(now, maxSpan-1))
		if from >= a.open.from {
			a.open.told += float64(g.packets)
			continue
		}
		here := float64(g.packets) * received(a.open.from, now) / received(from, now)
		a.open.told += here
		a.sample.tell((float64(g.packets)-here)/a.config.sampledRate(), from, a.open.from, received)
	}
}

// merge adds another interval's cells.
func (s *stratum) merge(found *settlement) {
	if s.cells.Cells() == 0 {
		intervals := s.intervals
		s.settlement = *found
		s.intervals += intervals
		return
	}
	cells, shift := found.cells, float64(found.base-s.base)
	cells.Shift(shift)
	s.cells.Merge(cells)
	s.sum += found.sum + shift*float64(found.packets)
	s.packets += found.packets
	s.crossed += found.crossed
	s.intervals += found.intervals
	s.squares += found.squares
	s.excess += found.excess
	s.distinct += found.distinct
	s.negative += found.negative
}

// sampleAlone keeps the delays of packets that form a group each.
func (a *Accumulator) sampleAlone(found *settlement, received uint64) {
	total := 0.0
	for _, g := range a.groups {
		total += g.alone
	}
	for _, g := range a.groups {
		if g.alone > 0 {
			off := estimate.SignExtend(g.sum-uint64(found.base), int(a.config.SumBits))
			a.alone.add(float64(found.base)+float64(off), float64(received)*g.alone/total)
		}
	}
}

// rarity returns how many packets a packet stands for that was alone over the
// given number of intervals. With λ packets per cell and interval, the
// density, each further interval leaves fewer packets alone, by a factor of
// e^λ. In fuller banks too few are alone at all.
func rarity(density float64, intervals uint32) float64 {
	const fullest, most = 1.5, 4
	switch {
	case density > fullest:
		return 0
	case intervals == 1:
		return 1
	}
	return math.Exp(min(density*float64(intervals-1), most))
}
