package mplane

import (
	"cmp"
	"math"
	"slices"
)

// A Suspect is a segment of a path, compared with its own history.
type Suspect struct {
	Segment SegmentID

	// Usual is the segment's mean delay, as the median over the intervals kept, and Excess is how much longer
	// it took. If Lossy, both are fractions of packets lost instead.
	Usual, Excess float64
	Lossy         bool

	// BothWays means that no reading of the clocks tells the segment from the way back: Usual and Excess are
	// those of the round trip.
	BothWays bool

	// Share is the segment's fraction, 0 to 1, of the total excess delay of the segments that are certainly
	// slow, or of the total excess loss of those that certainly lose.
	Share float64

	sure float64 // 1 less the probability that chance makes any segment's excess as great

	// Since is the interval in which the excess began. What lasts for half of the intervals kept becomes usual.
	Since uint64
}

// A Verdict says what makes a path slow or lossy.
type Verdict struct {
	// Suspects are the segments that took longer or lost more than usual, and are part of the explanation (Share
	// of at least 0.05), the greatest share first. A path in its usual state shows so great an excess in any of
	// its segments at most once in 100 intervals, whatever law these follow, if they are alike and independent.
	// So it takes several intervals: with nine segments, three after a history of 30, five after one of 12.
	Suspects []Suspect

	// Unknown lists the segments without a measurement, without a history of eight intervals, or without a
	// reading of the clocks or the way back. The cause may be one of them.
	Unknown []SegmentID
}

const (
	sure       = 0.99 // that a suspect is one, at least
	part       = 0.05 // the least Share
	minHistory = 8    // the number of earlier intervals that a suspect must have been measured in
)

// Localise compares every segment of a path in an interval with its own history, and names those that are slow
// or lose. The error wraps [estimate.ErrConfig] if the plan does not have the path; if segments are missing the
// Verdict says so.
func (s *Station) Localise(path []Router, interval uint64) (Verdict, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids, err := s.config.Plan.Along(path)
	if err != nil {
		return Verdict{}, err
	}
	var v Verdict
	var slow, lossy []Suspect
	for _, id := range ids {
		all := s.history(id, interval)
		delay, ok := s.slow(all, kinds*len(ids))
		if !ok {
			v.Unknown = append(v.Unknown, id)
		} else if delay.sure >= sure {
			slow = append(slow, delay)
		}
		if loss := loses(all, kinds*len(ids)); loss.sure >= sure {
			lossy = append(lossy, loss)
		}
	}
	for _, suspects := range [][]Suspect{slow, lossy} {
		total := 0.0
		for _, p := range suspects {
			total += p.Excess
		}
		for _, p := range suspects {
			if p.Share = p.Excess / total; p.Share >= part {
				v.Suspects = append(v.Suspects, p)
			}
		}
	}
	slices.SortStableFunc(v.Suspects, func(a, b Suspect) int { return cmp.Compare(b.Share, a.Share) })
	return v, nil
}

const kinds = 3 // the ways to compare a segment: by its mean, by what bursts do not explain, and by its losses

// history returns the measurements of a segment in an interval and before it, the latest first, or nothing if
// there are too few.
func (s *Station) history(id SegmentID, interval uint64) []*value {
	var all []*value
	for k := uint64(0); k < uint64(s.config.History) && k <= interval; k++ {
		if v := s.at(id, interval-k); v != nil {
			all = append(all, v)
		} else if k == 0 {
			return nil
		}
	}
	return enough(all)
}

func enough[T any](all []T) []T {
	if len(all) <= minHistory {
		return nil
	}
	return all
}

// A sample is what a measurement says of a segment's delay, whatever the clocks at its ends show.
type sample struct {
	mean, deviation, chance float64 // chance is the standard error of the mean
	interval                uint64
}

// samples returns those of an interval and of the ones before, all made in the same way: as measured inside a
// router; else by readings of the clocks; else there and back together, as in the interval in which a clock was
// set.
func (s *Station) samples(all []*value) (of []sample, bothWays bool) {
	if len(all) == 0 || all[0].Segment.internal() {
		return sampled(all, func(v *value) (float64, float64, float64, bool) {
			return v.Delay.Mean, v.Delay.StdDev, v.Error, true
		}), false
	}
	good := good(all)
	of = sampled(all, func(v *value) (float64, float64, float64, bool) {
		return v.Delay.Mean - v.ahead, v.Delay.StdDev, math.Hypot(v.Error, v.aheadError), v.aheadError > 0 && v.aheadError <= good
	})
	if of != nil {
		return of, false
	}
	return sampled(all, func(v *value) (float64, float64, float64, bool) {
		back := s.back(v)
		if back == nil {
			return 0, 0, 0, false
		}
		return v.Delay.Mean + back.Delay.Mean, v.Delay.StdDev + back.Delay.StdDev, math.Hypot(v.Error, back.Error), true
	}), true
}

// sampled returns the samples of one kind, or nothing if too few, or not the first.
func sampled(all []*value, by func(*value) (mean, deviation, chance float64, ok bool)) []sample {
	var of []sample
	for i, v := range all {
		if mean, deviation, chance, ok := by(v); ok && v.Delay.N > 0 {
			of = append(of, sample{mean, deviation, chance, v.interval})
		} else if i == 0 {
			return nil
		}
	}
	return enough(of)
}

// good returns the greatest error of a reading that is not far worse than usual.
func good(all []*value) float64 {
	const worse = 10
	var errors []float64
	for _, v := range all {
		if v.aheadError > 0 {
			errors = append(errors, v.aheadError)
		}
	}
	if len(errors) == 0 {
		return 0
	}
	return worse * median(errors)
}

const (
	onset = 0.05 // of an excess that an interval shows which belongs to its growth
	half  = 0.5  // that one shows which is as troubled
)

// slow compares a segment's delay with those before. ok is false if too few.
func (s *Station) slow(all []*value, comparisons int) (p Suspect, ok bool) {
	of, bothWays := s.samples(all)
	if of == nil {
		return p, false
	}
	var means []float64
	for _, d := range of {
		means = append(means, d.mean)
	}
	lasted := lasting(means, onset)
	p = Suspect{Segment: all[0].Segment, Since: of[lasting(means, half)].interval, BothWays: bothWays}
	p.Usual, p.Excess, p.sure = excess(means[0], means[1+lasted:], of[0].chance, bursts, comparisons)
	p.sure = min(p.sure, lasts(means, comparisons))
	if p.Excess > 0 {
		p.sure = max(p.sure, beyondBursts(of, lasted, comparisons))
	}
	return p, true
}

// loses compares a segment's losses with those before.
func loses(all []*value, comparisons int) (p Suspect) {
	used := enough(slices.DeleteFunc(slices.Clone(all), func(v *value) bool { return v.Sent == 0 }))
	if used == nil || used[0] != all[0] {
		return p
	}
	var losses []float64
	for _, v := range used {
		losses = append(losses, float64(v.Lost)/float64(v.Sent))
	}
	sent, lasted := float64(used[0].Sent), lasting(losses, onset)
	rate := (float64(used[0].Lost) + 1) / (sent + 2)
	p = Suspect{Segment: used[0].Segment, Since: used[lasting(losses, half)].interval, Lossy: true}
	p.Usual, p.Excess, p.sure = excess(losses[0], losses[1+lasted:], math.Sqrt(rate*(1-rate)/sent), steady, comparisons)
	p.sure = min(p.sure, lasts(losses, comparisons))
	return p
}

// lasting returns how many values before the first, the latest first, show the same trouble as it, or its
// growth: at least a share of its excess over the usual. They do not define what is usual while there are
// enough others.
func lasting(all []float64, share float64) int {
	x, past := all[0], all[1:]
	usual := median(slices.Clone(past))
	count := 0
	for x > usual && count < len(past)-minHistory && past[count] > usual+share*(x-usual) {
		count++
	}
	return count
}
