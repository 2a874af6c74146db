package lda

import (
	"math"

	"github.com/hoplag/hoplag/estimate"
)

// A sample adds up the results of strata, which are intervals or runs of them.
// The packets in usable cells speak for themselves. Those missing from usable
// cells are assumed to be like the others of their stratum, not like those of
// all strata: cells are least often usable when losses are many, as in
// congestion, when delays are long.
//
// If packets cross cuts, a stratum also has groups of packets that were
// received in earlier strata, and those strata then miss fewer packets (see
// tell). Finally, only packets in no usable cell are missing. If none is, the
// mean is the sum of all delays divided by their number.
type sample struct {
	base     int64 // of the first stratum; means are relative to it
	strata   uint64
	received uint64         // packets received in all strata (R)
	packets  uint64         // of these, in usable cells (N)
	within   estimate.Cells // of each stratum about its own mean
	usable   int
	negative int

	recent [recentStrata]part // by age
	used   int
	old    tally // of all before
}

// recentStrata is how many strata are kept apart, for packets of later strata
// that were received in them.
const recentStrata = 16

// A part is what a stratum contributes.
type part struct {
	from    uint32  // cut with which it begins
	mean    float64 // of its packets, each counted once
	likely  float64 // of their copies (see Accumulator.copies), which stand for missing packets
	packets float64 // number that they stand for, by the share of packets that is sampled
	spared  float64 // number that the copies stand for
	missing float64 // number of received packets without a group
	crossed float64 // number that the packets of groups that span cuts stand for, or all if it has several intervals
	noise   float64 // variance of the mean, for the mean of a process
	excess  float64 // variance of the sum of delays, caused by copies
	degrees float64 // behind the variance
}

// A tally adds up parts.
type tally struct {
	packets    float64 // received, weighted (R)
	first      float64 // Σ of their delays
	second     float64 // Σ of the squares of their strata's means
	missing    float64 // of the packets
	stray      float64 // of the missing, those that may belong to other strata
	missingSum float64 // Σ of their assumed delays
	variance   float64 // Σ R²σ²/N of the strata, for the mean of a process
	excess     float64 // variance of the sum of delays, caused by copies
	fourth     float64 // Σ (R²σ²/N)²/degrees
	noise      float64 // Σ Rσ²/N
}

// add adds a stratum with usable cells, in which the share rate of the packets
// is sampled.
func (s *sample) add(found *stratum, rate float64) {
	if s.strata == 0 {
		s.base = found.base
	}
	s.strata++
	all, plain := float64(found.cells.N()), float64(found.packets)
	s.within.Pool(found.cells)
	// With few cells the deviation is as uncertain as that of all so far.
	degrees, variance := found.cells.EffectiveDegrees(), found.cells.Variance()
	if degrees < 8 && s.strata > 1 {
		degrees, variance = max(s.within.EffectiveDegrees(), degrees), max(s.within.Variance(), variance)
	}
	offset := float64(found.base - s.base)
	if found.intervals > 1 {
		found.crossed = max(found.received, found.packets)
	}
	p := part{
		from:    found.from,
		mean:    offset + found.sum/plain,
		packets: plain / rate,
		spared:  (all - plain) / rate,
		missing: float64(found.received) - found.told/rate,
		crossed: float64(found.crossed) / rate,
		noise:   variance * found.squares / (all * all), // the effective number is smaller if some count more than once
		excess:  found.excess / (rate * rate),
		degrees: float64(degrees),
	}
	if all > plain {
		p.likely = offset + (all*found.cells.Mean()-found.sum)/(all-plain)
	}
	s.push(p)
	s.received += found.received
	s.packets += found.packets
	s.usable += found.distinct
	s.negative += found.negative
}

// push adds a part.
func (s *sample) push(p part) {
	if s.used == recentStrata {
		first := s.recent[0]
		s.recent[1].missing += min(first.missing, 0)
		first.missing = max(first.missing, 0)
		s.old.add(&first)
		copy(s.recent[:], s.recent[1:])
		s.used--
	}
	s.recent[s.used] = p
	s.used++
}

// tell says that the given number of packets, received between two cuts, are
// not missing. The later cut is at most the end of the last stratum. They are
// credited to each stratum in proportion to all packets received in it.
func (s *sample) tell(packets float64, from, to uint32, received func(from, to uint32) float64) {
	all := received(from, to)
	if all == 0 {
		return
	}
	each := packets / all
	for k := s.used - 1; k >= 0 && to > from; k-- {
		p := &s.recent[k]
		if p.from >= to {
			continue
		}
		start := max(from, p.from)
		p.missing -= each * received(start, to)
		to = start
	}
	if to > from {
		s.old.makeUp(each * received(from, to))
	}
}

// makeUp says that the given number of packets are not missing after all.
func (t *tally) makeUp(packets float64) {
	of := min(t.missing, packets)
	if of > 0 {
		mean := t.missingSum / t.missing
		t.packets -= of
		t.first -= of * mean
		t.second -= of * mean * mean
		t.stray *= 1 - of/t.missing
		t.missingSum -= of * mean
		t.missing -= of
	}
}

// add adds a part that nothing can make up for any more.
func (t *tally) add(p *part) {
	mean := p.mean
	if p.missing > 0 && p.spared > 0 {
		// The copies stand for as many packets as are missing with them. If
		// more are missing, all packets stand for the others.
		copied, others := min(p.missing/p.spared, 1), max(p.missing-p.spared, 0)
		both := p.packets + p.spared
		mean = (copied*p.likely*p.spared + others*(p.mean*p.packets+p.likely*p.spared)/both) / p.missing
		weight := copied + others/both
		t.excess += weight * weight * p.excess
	}
	r := p.packets + p.missing
	t.packets += r
	t.first += p.packets*p.mean + p.missing*mean
	t.second += p.packets*p.mean*p.mean + p.missing*mean*mean
	t.missing += p.missing
	t.stray += min(p.missing, p.crossed)
	t.missingSum += p.missing * mean
	of := r * r * p.noise
	t.variance += of
	t.noise += r * p.noise
	if p.degrees > 0 {
		t.fourth += of * of / p.degrees
	}
}

// spread returns how much the mean of strata that are unknown may differ from
// that of the known ones, at a confidence of 99 %. A single one reveals
// nothing, so the result is the whole mean or the deviation.
func (s *sample) spread(between float64, r *Result) float64 {
	if s.strata < 2 {
		return max(math.Abs(r.Mean), r.StdDev)
	}
	return math.Sqrt(between) * estimate.StudentQuantile(0.995, float64(s.strata-1))
}

// report fills in a Result's figures about delays.
func (s *sample) report(r *Result) {
	all := s.old
	// Chance takes more from some strata than they have, and less from others.
	over := 0.0
	for k := range s.used {
		p := s.recent[k]
		p.missing -= over
		over = max(0, -p.missing)
		p.missing += over
		if k == s.used-1 && s.strata > 1 {
			p.crossed = p.missing // more of them may still cross the cut
		}
		all.add(&p)
	}
	all.makeUp(over)
	r.N, r.Spoken, r.Usable, r.Negative = s.packets, max(s.received, s.packets), s.usable, s.negative
	mean := all.first / all.packets
	r.Mean = float64(s.base) + mean
	unseen := max(0, 1-float64(s.packets)/all.packets) // finite population: no guess is needed for the packets seen
	r.DeviationDegrees = s.within.PopulationDegrees(1 - unseen)
	if all.excess > 0 { // some cells stand for others
		r.DeviationDegrees = s.within.EffectiveDegrees()
	}
	if r.DeviationDegrees == 0 {
		if unseen == 0 {
			r.MeanDegrees = 1
		}
		return
	}
	between := max(0, all.second/all.packets-mean*mean-all.noise/all.packets*unseen)
	r.StdDev = math.Sqrt(s.within.Variance() + between)
	// Any of the missing packets may have been received in another stratum
	// than the one they count in. With a single stratum, only those that
	// crossed a cut may.
	doubtful := all.stray
	if s.strata > 1 {
		doubtful = all.missing
	}
	if doubtful > 1e-6 { // otherwise it is rounding
		r.MeanDoubt = doubtful / all.packets * s.spread(between, r)
	}
	r.MeanError = math.Sqrt(all.variance*unseen+all.excess) / all.packets
	r.MeanDegrees = r.DeviationDegrees
	if all.fourth > 0 {
		r.MeanDegrees = uint64(max(1, all.variance*all.variance/all.fourth))
	}
}
