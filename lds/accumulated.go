package lds

import (
	"math"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// A summary is what an Accumulator knows of all cells together.
type summary struct {
	counts                  // packets sent
	mean, deviation float64 // of the delays of cells, weighted by packets
	others          densities
	prior           *sizePrior
}

// summary makes one, or returns the one that was made.
func (a *Accumulator) summary() *summary {
	if s := a.known.Load(); s != nil {
		return s
	}
	s := &summary{counts: counts{&a.config, make([]uint64, len(a.cells))}, prior: newSizePrior()}
	var cells estimate.Cells
	for i := range a.cells {
		h := &a.cells[i]
		s.held[i] = h.total()
		for _, r := range h.runs[:h.used] {
			cells.Add(r.sum, uint64(r.packets))
		}
	}
	s.others = s.densities()
	s.mean = cells.Mean()
	// The variance of cells' means about the mean of all, weighted by packets.
	if n := cells.N(); n > 0 {
		var squares float64
		for i := range a.cells {
			h := &a.cells[i]
			sum, packets := h.covered()
			if packets > 0 {
				off := sum/packets - s.mean
				squares += packets * off * off
			}
		}
		s.deviation = math.Sqrt(squares / float64(n))
	}
	a.known.Store(s)
	return s
}

// A profile is at most how many packets of a flow were sent in each span of
// time, by the least of its rows.
type profile struct {
	packets [spans]float64
	total   float64
}

// profile returns flow f's.
func (a *Accumulator) profile(f hashing.Flow) (p profile) {
	c := &a.config
	least, sampled := math.Inf(1), true
	for r := range c.Rows {
		sampled = sampled && c.Rates[r] < 1
		least = min(least, c.Rates[r])
	}
	for k := range p.packets {
		p.packets[k] = math.Inf(1)
	}
	for r := range c.Rows {
		if c.Rates[r] < 1 && !sampled {
			continue
		}
		var row [spans]uint64
		for offset := range c.Spread {
			for k, n := range a.cells[c.at(r, f, offset)].sent {
				row[k] += uint64(n)
			}
		}
		for k, n := range row {
			p.packets[k] = min(p.packets[k], atMost(float64(n), c.Rates[r]))
		}
	}
	for _, n := range p.packets {
		p.total += n
	}
	return p
}

// A reading is a run of one of a flow's cells, and how far its mean may be
// from the flow's.
type reading struct {
	row       int
	run       *run
	packets   float64 // of the flow, at most, in the run
	purity    float64 // part of the run's packets that are the flow's, at most
	noise     float64 // relative variance, by sampling
	deviation float64 // relative variance in all
	used      bool
}

// maxReadings are more than a flow with a Spread of 1 has.
const maxReadings = MaxRows * maxRuns

// readings are the runs of the cells of a flow, the purest first.
type readings struct {
	best [maxReadings]reading
	used int
}

// add keeps a reading in its place, unless there are enough better ones.
func (l *readings) add(r reading) {
	if l.used == maxReadings {
		if l.best[l.used-1].deviation <= r.deviation {
			return
		}
		l.used--
	}
	at := l.used
	for ; at > 0 && l.best[at-1].deviation > r.deviation; at-- {
		l.best[at] = l.best[at-1]
	}
	l.best[at] = r
	l.used++
}

// inRun is how many of a flow's packets were sent in a run, times share.
func (a *Accumulator) inRun(p *profile, r *run, share float64) (n float64) {
	for k, packets := range p.packets {
		if packets > 0 {
			n += packets * a.part(r, k)
		}
	}
	return n * share
}

// part is how much of a span of time a run holds, 0 to 1.
func (a *Accumulator) part(r *run, span int) float64 {
	begin := uint32(span) * a.perSpan
	end := min(begin+a.perSpan, a.levels.Cuts())
	if begin >= end {
		return 0
	}
	return r.part(begin, end) / float64(end-begin)
}

// purity is what part of n packets in a run may be a flow's, of which so many
// are expected there. More than n are as bad a sign as fewer, as the flow was
// elsewhere then; but a few more or less are how packets fall into cells.
func (a *Accumulator) purity(expected, n float64) float64 {
	chance := 0.0
	if a.config.Spread > 1 {
		chance = 2 * math.Sqrt(1/expected)
	}
	x := expected / n
	return min(1, min(x, 1/x)*(1+chance))
}

// leastShare is the part of a flow's packets that an answer rests on, at least.
const leastShare = 0.1

// mostImpure is by how much more than the best one a reading may be off to be
// used for packets that are in no better one, as a relative variance, where
// better ones have enoughShare of the flow's packets.
const (
	mostImpure  = 0.1
	enoughShare = 0.5
)

// Estimate returns the delay of flow f over all intervals. It reads the runs
// of the flow's cells that hold the fewest packets of others, as [Estimate]
// does the cells, until they cover what the flow sent; Result.Share says how
// much of that is covered. Config.Tolerance has no part in it.
//
// It returns [estimate.ErrNoSamples] if the runs hold less than a tenth of
// what the flow sent. Of packets that are in none, MeanInterval supposes that
// their mean is, more or less, within half of that of the others.
func (a *Accumulator) Estimate(f hashing.Flow) (Result, error) {
	c, s := &a.config, a.summary()
	result := a.tally(s, f)
	p := a.profile(f)
	if p.total == 0 || s.absent(f) {
		return result, errNoSamples
	}
	var list readings
	for r := range c.Rows {
		share := c.Rates[r] / float64(c.Spread)
		for offset := range c.Spread {
			h := &a.cells[c.at(r, f, offset)]
			if h.used > 0 {
				result.Usable++
			}
			for i := range h.runs[:h.used] {
				one := reading{row: r, run: &h.runs[i]}
				if one.packets = a.inRun(&p, one.run, share); one.packets == 0 || one.run.packets == 0 {
					continue
				}
				one.purity = a.purity(one.packets, float64(one.run.packets))
				one.noise = (1 - c.Rates[r]) / max(1, min(one.packets, float64(one.run.packets)))
				one.deviation = (1-one.purity)*(1-one.purity) + one.noise
				list.add(one)
			}
		}
	}
	if list.used == 0 {
		return result, errNoSamples
	}
	purity, noise := a.read(&result, &p, &list)
	if result.Share < leastShare {
		return result, errNoSamples
	}
	own, variance := s.likely(f, s.prior, &s.others)
	own = max(own-math.Sqrt(variance), 1)
	result.MeanError = s.meanError(&result, purity*min(1, own/p.total), own, noise)
	return result, nil
}

// read takes the mean of readings, each weighted by the packets of the flow
// that no better one has, and returns what part of them are the flow's and the relative variance that
// rows make by sampling.
func (a *Accumulator) read(result *Result, p *profile, list *readings) (purity, noise float64) {
	var rows [MaxRows]estimate.Cells
	var covered, sum float64
	for i := range list.best[:list.used] {
		one := &list.best[i]
		if one.deviation > list.best[0].deviation+mostImpure && covered > enoughShare*p.total {
			break
		}
		one.used = true
		gain := 0.0
		for k, packets := range p.packets {
			if packets > 0 {
				gain += packets * a.gain(list.best[:i+1], k)
			}
		}
		if one.used = gain > 1e-9*p.total; !one.used {
			continue
		}
		result.Selected++
		covered += gain
		sum += gain * one.run.sum / float64(one.run.packets)
		purity += gain * one.purity
		noise += gain * gain * one.noise
		rows[one.row].Add(one.run.sum, uint64(one.run.packets))
	}
	result.deviate(&rows)
	result.Mean = sum / covered
	result.Share = min(1, covered/p.total)
	return purity / covered, noise / (covered * covered)
}

// gain is what part of a flow's packets of a span of time the last reading has
// and no other one. Cells of one row have different packets of it. Those of
// different rows have the same ones where a flow has one cell in each; where
// it has more, they have each other's by chance.
func (a *Accumulator) gain(readings []reading, span int) float64 {
	last := &readings[len(readings)-1]
	part := a.part(last.run, span)
	if part == 0 {
		return 0
	}
	var before [MaxRows]float64
	for i := range readings[:len(readings)-1] {
		if other := &readings[i]; other.used && other.row != last.row {
			if a.config.Spread == 1 {
				part -= a.both(last.run, other.run, span)
			} else {
				before[other.row] += a.part(other.run, span) / float64(a.config.Spread)
			}
		}
	}
	for _, covered := range before[:a.config.Rows] {
		part *= 1 - min(1, covered)
	}
	return max(0, part) / float64(a.config.Spread)
}

// both is how much of a span of time two runs have in common, 0 to 1.
func (a *Accumulator) both(r, other *run, span int) float64 {
	common := *other
	common.from, common.to = max(r.from, other.from), min(r.to, other.to)
	if common.from >= common.to {
		return 0
	}
	common.covered = common.to - common.from
	return a.part(&common, span) * r.density() * other.density()
}

// meanError is what the mean of a flow is expected to be off by, of which the
// runs that were read hold the given part and others the rest. Others' mean is
// that of all, more or less their deviation. Packets that are in no run are
// taken to be as far from the others as their mean is from 0: losses are where
// delays are long.
func (s *summary) meanError(r *Result, purity, own, noise float64) float64 {
	off := r.Mean - s.mean
	others := (1 - purity) * (1 - purity) * (off*off + 2*s.deviation*s.deviation)
	scale := max(r.Mean*r.Mean, s.mean*s.mean)
	return math.Sqrt(others + scale*(noise+missed(r.Share, own)))
}

// missed is the relative variance of a mean that rests on a share of so many
// packets: of those it leaves out, and of which those are.
func missed(share, packets float64) float64 {
	return (1-share)*(1-share)/4 + (1-share)/share/max(1, packets)
}

// tally counts what is known of a flow whether or not it has an answer. Lost is
// what its cells show, and too low where they always have packets on their way.
func (a *Accumulator) tally(s *summary, f hashing.Flow) (result Result) {
	c := &a.config
	result.Sent = uint64(math.Round(s.bound(f)))
	received, lost := math.Inf(1), math.Inf(1)
	for r := range c.Rows {
		var in, out float64
		for offset := range c.Spread {
			at := c.at(r, f, offset)
			in += float64(a.cells[at].received)
			out += float64(max(0, min(a.levels.Lost(at, patience), a.levels.Outstanding(at))))
		}
		received = min(received, atMost(in, c.Rates[r]))
		if c.Rates[r] == 1 {
			lost = min(lost, out)
		}
	}
	result.Received = uint64(math.Round(received))
	if !math.IsInf(lost, 1) {
		result.Lost = uint64(lost)
	}
	return result
}

// patience is for how many intervals a packet may be on its way before it is
// taken for lost, if no other shows so.
const patience = 8
