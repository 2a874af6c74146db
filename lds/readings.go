package lds

import (
	"cmp"
	"slices"
	"sync"

	"github.com/hoplag/hoplag/estimate"
)

// A reading is a run of one of a flow's cells, with how far its mean may be
// from the flow's.
type reading struct {
	row       int
	run       *run
	packets   float64 // upper bound of the flow's packets in the run
	purity    float64 // upper bound of the flow's share of the run's packets
	noise     float64 // relative variance caused by sampling
	deviation float64 // relative variance altogether
	gain      float64 // packets of the flow that it has and no purer one, 0 if it is not used
	used      bool
}

// readings holds the runs of a flow's cells.
type readings struct {
	all   []reading
	taken [MaxRows][spans]float64 // with a Spread: the fraction of the flow's packets that used ones have, by row and span
}

// fewReadings is as many as a flow with a Spread of 1 has. One with more has up
// to thousands.
const fewReadings = MaxRows * maxRuns

var manyReadings = sync.Pool{New: func() any { return new([]reading) }}

// sort puts the purest first.
func (l *readings) sort() {
	slices.SortStableFunc(l.all, func(a, b reading) int { return cmp.Compare(a.deviation, b.deviation) })
}

// take adds what a reading has of each span.
func (l *readings) take(a *Accumulator, one *reading) {
	for k := range l.taken[one.row] {
		l.taken[one.row][k] += a.part(one.run, k) / float64(a.config.Spread)
	}
}

// read sets the mean from the readings. It weights each by the packets of the
// flow that no better reading has. It returns the flow's share of these
// packets, and the relative variance caused by sampling rows.
func (a *Accumulator) read(result *Result, p *profile, list *readings) (purity, noise, scatter float64) {
	var rows [MaxRows]estimate.Cells
	var covered, sum, uneven float64
	list.sort()
	for i := range list.all {
		one := &list.all[i]
		if one.deviation > list.all[0].deviation+mostImpure && covered > enoughShare*p.total {
			break
		}
		gain := 0.0
		for k, packets := range p.packets {
			if packets > 0 {
				gain += packets * a.gain(list, i, k)
			}
		}
		if gain <= 1e-9*p.total {
			continue
		}
		one.used, one.gain = true, gain
		if a.config.Spread > 1 {
			list.take(a, one)
		}
		result.Selected++
		covered += gain
		sum += gain * one.run.sum / float64(one.run.packets)
		purity += gain * one.purity
		noise += gain * gain * one.noise
		uneven += gain * gain / one.packets
		rows[one.row].Add(one.run.sum, uint64(one.run.packets))
	}
	result.deviate(&rows)
	result.Mean = sum / covered
	result.Share = min(1, covered/p.total)
	for i := range list.all {
		if one := &list.all[i]; one.used {
			off := one.gain * (one.run.sum/float64(one.run.packets) - result.Mean) / covered
			scatter += off * off * ((1-one.purity)*(1-one.purity) + 1/max(1, one.packets))
		}
	}
	// Packets that some readings have in part count for less than others.
	noise = noise/(covered*covered) + max(0, uneven/(covered*covered)-1/p.total)
	return purity / covered, noise, scatter
}

// gain returns the fraction of a flow's packets in a span of time that reading i
// has and no used one before it. Cells of one row hold different packets of the
// flow. Cells of different rows hold the same ones if the flow has one cell in
// each row; if it has more, they overlap by chance.
func (a *Accumulator) gain(list *readings, i, span int) float64 {
	one := &list.all[i]
	part := a.part(one.run, span)
	if part == 0 {
		return 0
	}
	if a.config.Spread > 1 {
		for r := range list.taken[:a.config.Rows] {
			if r != one.row {
				part *= 1 - min(1, list.taken[r][span])
			}
		}
		return part / float64(a.config.Spread)
	}
	for k := range list.all[:i] {
		if other := &list.all[k]; other.used && other.row != one.row {
			part -= a.both(one.run, other.run, span)
		}
	}
	return max(0, part)
}

// both returns the fraction of a span of time that two runs share, 0 to 1.
func (a *Accumulator) both(r, other *run, span int) float64 {
	common := *other
	common.from, common.to = max(r.from, other.from), min(r.to, other.to)
	if common.from >= common.to {
		return 0
	}
	common.covered = common.to - common.from
	return a.part(&common, span) * r.density() * other.density()
}
