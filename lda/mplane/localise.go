package mplane

import (
	"cmp"
	"math"
	"slices"
)

// A Target is what a path should keep to.
type Target struct {
	Mean float64 // largest mean in ns; 0 for any
	Loss float64 // largest fraction of packets lost; 0 for any
}

// A Suspect is a segment of a path, compared with its own history.
type Suspect struct {
	Segment SegmentID

	// Usual is the segment's mean delay, the median over the intervals kept,
	// and Excess is how much longer it took. UsualLoss and ExcessLoss are the
	// same for the fraction of packets lost.
	Usual, Excess         float64
	UsualLoss, ExcessLoss float64

	// Share is the segment's fraction, 0 to 1, of the total excess delay of
	// the segments that are surely slow, or of the total excess loss of those
	// that surely lose.
	Share float64

	// Sure is 1 less the probability that a path whose segments are all as
	// usual shows so great an excess in any of them.
	Sure float64

	// Since is the interval in which the excess began. What lasts for half of
	// the intervals kept becomes usual.
	Since uint64
}

// A Verdict says what makes a path slow or lossy.
type Verdict struct {
	Path   PathResult
	Broken bool // the path misses the target

	// Suspects are the segments that took longer or lost more than usual, not
	// by chance (Sure of at least 0.99), and that are a part of the
	// explanation (Share of at least 0.05), the greatest share first.
	Suspects []Suspect

	// Unknown lists the segments without a measurement, those without a
	// history of at least MinHistory intervals, and those with a clock at one
	// end that was set. The cause may be one of them.
	Unknown []SegmentID
}

// MinHistory is the number of intervals for which a segment must have been
// measured before it can be suspected.
const MinHistory = 8

// onset is how much of an excess an interval shows that belongs to its growth.
const onset = 0.05

// sure is the least Sure of a suspect, and part its least Share.
const (
	sure = 0.99
	part = 0.05
)

// Localise compares every segment of a path in an interval with its own
// history, after subtracting clocks. If the path misses its target, it names
// the segments that explain it. The error wraps [estimate.ErrConfig] if the
// plan does not have the path; if segments are missing the Verdict says so.
func (s *Station) Localise(path []Router, class int, interval uint64, target Target) (Verdict, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.path(path, class, interval)
	if len(r.Segments) == 0 {
		return Verdict{}, err
	}
	v := Verdict{Path: r}
	v.Broken = target.Mean > 0 && r.Mean > target.Mean || target.Loss > 0 && r.Loss > target.Loss
	var slow, lossy []Suspect
	for _, id := range r.Segments {
		at, history := s.segments[id].at(interval), s.history(id, interval)
		if at == nil || len(history) < MinHistory {
			v.Unknown = append(v.Unknown, id)
			continue
		}
		suspect := s.compare(at, history, interval, 3*len(r.Segments))
		if suspect[0].Sure >= sure {
			slow = append(slow, suspect[0])
		} else if at.kind() == byReading && at.AheadError > s.good(history) {
			v.Unknown = append(v.Unknown, id)
		}
		if suspect[1].Sure >= sure {
			lossy = append(lossy, suspect[1])
		}
	}
	share(slow, func(p *Suspect) float64 { return p.Excess })
	share(lossy, func(p *Suspect) float64 { return p.ExcessLoss })
	for _, p := range slices.Concat(slow, lossy) {
		if p.Share >= part {
			v.Suspects = append(v.Suspects, p)
		}
	}
	slices.SortStableFunc(v.Suspects, func(a, b Suspect) int { return cmp.Compare(b.Share, a.Share) })
	return v, nil
}

// history returns the measurements of a segment before an interval, the latest
// first.
func (s *Station) history(id SegmentID, interval uint64) []*value {
	var all []*value
	for k := uint64(1); k < uint64(s.config.History) && k <= interval; k++ {
		if v := s.segments[id].at(interval - k); v != nil {
			all = append(all, v)
		}
	}
	return all
}

// good returns the greatest error of a reading that is no worse than usual. In
// the interval in which a clock is set, readings are worse.
func (s *Station) good(history []*value) float64 {
	var all []float64
	for _, v := range history {
		if v.kind() == byReading {
			all = append(all, v.AheadError)
		}
	}
	const worse = 10
	if len(all) == 0 {
		return s.config.Wander
	}
	return max(worse*median(all), s.config.Wander)
}

// compare compares a measurement's delay and loss with those before.
// comparisons is the number of comparisons made together.
func (s *Station) compare(at *value, history []*value, interval uint64, comparisons int) [2]Suspect {
	slow, many := Suspect{Segment: at.Segment, Since: interval}, Suspect{Segment: at.Segment, Since: interval}
	if d := s.delays(at, history, interval); len(d.means) >= MinHistory {
		if lasted := lasting(d.mean, d.means, 0.5); lasted > 0 {
			slow.Since = d.intervals[lasted-1]
		}
		lasted := lasting(d.mean, d.means, onset)
		means, deviations := d.means[lasted:], d.deviations[lasted:]
		slow.Usual, slow.Excess, slow.Sure = excess(d.mean, means, d.floor, bursts, comparisons)
		rest, past, unit := beyondBursts(d.mean, at.Delay.StdDev, means, deviations)
		if _, _, confident := excess(rest, past, d.floor/unit, steady, comparisons); slow.Excess > 0 {
			slow.Sure = max(slow.Sure, confident)
		}
	}
	if at.Sent > 0 {
		var losses []float64
		for _, v := range history {
			losses = append(losses, v.lossRate())
		}
		if lasted := lasting(at.lossRate(), losses, 0.5); lasted > 0 {
			many.Since = history[lasted-1].interval
		}
		lasted := lasting(at.lossRate(), losses, onset)
		rate := (float64(at.Lost) + 1) / (float64(at.Sent) + 2)
		floor := math.Sqrt(rate * (1 - rate) / float64(at.Sent))
		many.UsualLoss, many.ExcessLoss, many.Sure = excess(at.lossRate(), losses[lasted:], floor, bursts, comparisons)
		many.Sure = max(many.Sure, lossy(at, history[lasted:], comparisons))
	}
	return [2]Suspect{slow, many}
}

// lasting returns how many of the past values, the latest first, show the same
// trouble as x, or its growth: at least a share of the excess over the usual. They
// do not define what is usual while there are enough others.
func lasting(x float64, past []float64, share float64) int {
	usual := median(slices.Clone(past))
	count := 0
	for x > usual && count < len(past)-MinHistory && past[count] > usual+share*(x-usual) {
		count++
	}
	return count
}

// delays holds a segment's mean delay with clocks subtracted, and past ones
// with the deviations beside them. floor is the smallest standard error of
// any.
type delays struct {
	mean, floor       float64
	means, deviations []float64 // the latest first
	intervals         []uint64
}

func (d *delays) add(v *value, offset float64) {
	d.means = append(d.means, v.Delay.Mean-offset)
	d.deviations = append(d.deviations, v.Delay.StdDev)
	d.intervals = append(d.intervals, v.interval)
}

// delays subtracts the clocks: by the monitors' own readings if these, and
// enough before them, are known, and otherwise by what all segments said.
func (s *Station) delays(at *value, history []*value, interval uint64) delays {
	if at.kind() == byReading {
		d := delays{mean: at.Delay.Mean - at.Ahead, floor: math.Hypot(at.Error, at.AheadError)}
		good := s.good(history)
		for _, v := range history {
			if v.kind() == byReading && v.AheadError <= good {
				d.add(v, v.Ahead)
			}
		}
		if len(d.means) >= MinHistory {
			return d
		}
	}
	id := at.Segment
	offset, _ := s.course.between(id, interval)
	d := delays{mean: at.Delay.Mean - offset, floor: at.Error}
	if !id.Internal() {
		d.floor = math.Hypot(d.floor, s.config.Wander)
	}
	for _, v := range history {
		if offset, ok := s.course.between(id, v.interval); ok {
			d.add(v, offset)
		}
	}
	return d
}

func (v *value) lossRate() float64 {
	if v.Sent == 0 {
		return 0
	}
	return float64(v.Lost) / float64(v.Sent)
}

// share sets each suspect's share of the sum.
func share(suspects []Suspect, of func(*Suspect) float64) {
	total := 0.0
	for i := range suspects {
		total += of(&suspects[i])
	}
	for i := range suspects {
		suspects[i].Share = of(&suspects[i]) / total
	}
}
