package lds

import (
	"math"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// A summary is what an Accumulator knows about all cells together.
type summary struct {
	counts                  // packets sent
	mean, deviation float64 // of the delays of cells, weighted by packets
	others          densities
	prior           *sizePrior
}

// summary returns the current summary, and makes it first if need be.
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
	// The variance of the cells' means about the overall mean, weighted by
	// packets.
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

// A profile holds an upper bound of the packets that a flow sent in each span
// of time, from the row with the lowest count.
type profile struct {
	packets [spans]float64
	total   float64
}

// profile returns the profile of flow f.
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

// inRun returns how many of a flow's packets were sent during a run, times
// share.
func (a *Accumulator) inRun(p *profile, r *run, share float64) (n float64) {
	for k, packets := range p.packets {
		if packets > 0 {
			n += packets * a.part(r, k)
		}
	}
	return n * share
}

// part returns the fraction of a span of time that a run covers, 0 to 1.
func (a *Accumulator) part(r *run, span int) float64 {
	begin := uint32(span) * a.perSpan
	end := min(begin+a.perSpan, a.levels.Cuts())
	if begin >= end {
		return 0
	}
	return r.part(begin, end) / float64(end-begin)
}

// purity estimates the flow's share of the n packets in a run, given the
// number expected of it. More than n expected is as bad a sign as fewer: the
// flow was elsewhere then. Small differences are chance, from the way packets
// fall into cells.
func (a *Accumulator) purity(expected, n float64) float64 {
	chance := 0.0
	if a.config.Spread > 1 {
		chance = 2 * math.Sqrt(1/expected)
	}
	x := expected / n
	return min(1, min(x, 1/x)*(1+chance))
}

// leastShare is the smallest part of a flow's packets that an answer may rest
// on.
const leastShare = 0.1

// Packets that are in no better reading are read from a worse one. Once better
// readings cover enoughShare of the flow's packets, a reading may be off by at
// most mostImpure more than the best one, as a relative variance.
const (
	mostImpure  = 0.1
	enoughShare = 0.5
)

// Estimate returns the delay of flow f over all intervals. It reads the runs
// of the flow's cells, those with the fewest packets of others first, as
// [Estimate] reads cells, until they cover what the flow sent. Result.Share
// reports the part that they cover. Estimate ignores Config.Tolerance.
//
// It returns [estimate.ErrNoSamples] if the runs hold less than a tenth of
// what the flow sent. MeanInterval assumes that the mean of packets in no run
// differs from the mean of the others by about half of it; if losses come in
// bursts, add [Result.LeftOut].
func (a *Accumulator) Estimate(f hashing.Flow) (Result, error) {
	c, s := &a.config, a.summary()
	result := a.tally(s, f)
	p := a.profile(f)
	if p.total == 0 || s.absent(f) {
		return result, errNoSamples
	}
	if c.Spread > 1 {
		many := manyReadings.Get().(*[]reading)
		defer manyReadings.Put(many)
		*many = a.gather((*many)[:0], f, &p)
		return a.answer(&result, s, f, &p, *many)
	}
	var few [fewReadings]reading
	return a.answer(&result, s, f, &p, a.gather(few[:0], f, &p))
}

// gather appends the readings of flow f.
func (a *Accumulator) gather(all []reading, f hashing.Flow, p *profile) []reading {
	c := &a.config
	for r := range c.Rows {
		share := c.Rates[r] / float64(c.Spread)
		for offset := range c.Spread {
			h := &a.cells[c.at(r, f, offset)]
			for i := range h.runs[:h.used] {
				one := reading{row: r, run: &h.runs[i]}
				if one.packets = a.inRun(p, one.run, share); one.packets == 0 || one.run.packets == 0 {
					continue
				}
				one.purity = a.purity(one.packets, float64(one.run.packets))
				one.noise = (1 - c.Rates[r]) / max(1, min(one.packets, float64(one.run.packets)))
				one.deviation = (1-one.purity)*(1-one.purity) + one.noise
				all = append(all, one)
			}
		}
	}
	return all
}

// answer completes the result with a mean from the readings, if they are enough.
func (a *Accumulator) answer(result *Result, s *summary, f hashing.Flow, p *profile, all []reading) (Result, error) {
	if len(all) == 0 {
		return *result, errNoSamples
	}
	purity, noise, scatter := a.read(result, p, &readings{all: all})
	if result.Share < leastShare {
		return *result, errNoSamples
	}
	own, variance := s.likely(f, s.prior, &s.others)
	own = max(own-math.Sqrt(variance), 1)
	result.MeanError = s.meanError(result, purity*min(1, own/p.total), own, noise, scatter)
	return *result, nil
}

// meanError returns the expected error of a flow's mean. The flow makes up the
// given purity of the runs that were read; others make up the rest, and their
// mean is the overall mean, give or take its deviation. Packets in no run are
// assumed to be as far from the rest as the mean is from 0, because losses
// happen where delays are long.
//
// A spread flow has many cells, so it has an answer even where it loses packets
// everywhere. What it then lacks, beyond its Share, are its slowest packets:
// those that are on their way while their cells lose others are in no run.
// Delays that vary more than exponential ones do show by how much.
func (s *summary) meanError(r *Result, purity, own, noise, scatter float64) float64 {
	off := r.Mean - s.mean
	others := (1 - purity) * (1 - purity) * (off*off + 2*s.deviation*s.deviation)
	scale := max(r.Mean*r.Mean, s.mean*s.mean)
	within := max(scale, r.StdDev*r.StdDev)
	bias, chance := missed(r.Share, own)
	if s.Spread > 1 {
		others *= 2
		if r.Lost > 0 {
			scatter += max(0, r.StdDev*r.StdDev-r.Mean*r.Mean) / 100
		}
	}
	return math.Sqrt(others + scale*bias + within*(noise+chance) + scatter)
}

// missed returns the relative variance of a mean that rests on this share of a
// flow's packets: that of the packets it leaves out, and that of which ones
// are left out.
func missed(share, packets float64) (bias, chance float64) {
	return (1 - share) * (1 - share) / 4, (1 - share) / share / max(1, packets)
}

// tally fills in what is known about a flow whether or not it has an answer.
func (a *Accumulator) tally(s *summary, f hashing.Flow) (result Result) {
	c := &a.config
	result.Sent = uint64(math.Round(s.bound(f)))
	received := math.Inf(1)
	for r := range c.Rows {
		var in float64
		for offset := range c.Spread {
			h := &a.cells[c.at(r, f, offset)]
			in += float64(h.received)
			if h.used > 0 {
				result.Usable++
			}
		}
		received = min(received, atMost(in, c.Rates[r]))
	}
	result.Received = uint64(math.Round(received))
	result.Overdue, result.Lost = a.lostOf(f)
	return result
}
