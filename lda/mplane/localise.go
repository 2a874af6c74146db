package mplane

import (
	"cmp"
	"math"
	"slices"

	"github.com/hoplag/hoplag/estimate"
)

// A Target is what a path should keep to.
type Target struct {
	Mean float64 // ns, at most; 0 for any
	Loss float64 // share of packets, at most; 0 for any
}

// A Suspect is a segment of a path beside its own history.
type Suspect struct {
	Segment SegmentID

	// Usual is the segment's mean delay, the median over the intervals kept,
	// and Excess how much longer it took. UsualLoss and ExcessLoss are the
	// same of the share of packets lost.
	Usual, Excess         float64
	UsualLoss, ExcessLoss float64

	// Share is the segment's part in what the path's segments took too long,
	// or lost too many, together: 0 to 1.
	Share float64

	// Sure is 1 less the probability that a path whose segments all are as
	// ever shows as great an excess in any of them.
	Sure float64
}

// A Verdict says what makes a path slow or lossy.
type Verdict struct {
	Path   PathResult
	Broken bool // the target is not kept

	// Suspects are the segments that took longer or lost more than usual, so
	// that it is no chance (Sure of at least 0.99), the greatest share first.
	Suspects []Suspect

	// Unknown are the segments without a measurement, or without the history
	// of at least MinHistory intervals that it would be held against. The
	// cause may be one of them.
	Unknown []SegmentID
}

// MinHistory is how many intervals a segment must have been measured before it
// can be suspected.
const MinHistory = 8

// sure is how sure a suspect must be.
const sure = 0.99

// Localise compares every segment of a path in an interval with its own
// history, clocks taken off, and names those that explain it if the path
// breaks its target. The error wraps [estimate.ErrConfig] for a path that the
// plan does not have; where segments are missing the Verdict says so.
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
		suspect := s.compare(at, history, interval, 2*len(r.Segments))
		slow, lossy = append(slow, suspect[0]), append(lossy, suspect[1])
	}
	share(slow, func(p *Suspect) float64 { return p.Excess })
	share(lossy, func(p *Suspect) float64 { return p.ExcessLoss })
	for _, p := range slices.Concat(slow, lossy) {
		if p.Sure >= sure {
			v.Suspects = append(v.Suspects, p)
		}
	}
	slices.SortStableFunc(v.Suspects, func(a, b Suspect) int { return cmp.Compare(b.Share, a.Share) })
	return v, nil
}

// history returns the measurements of a segment before an interval.
func (s *Station) history(id SegmentID, interval uint64) []*value {
	var all []*value
	for k := uint64(1); k < uint64(s.config.History) && k <= interval; k++ {
		if v := s.segments[id].at(interval - k); v != nil {
			all = append(all, v)
		}
	}
	return all
}

// compare holds a measurement against those before: its delay and its loss.
// comparisons is how many are made together.
func (s *Station) compare(at *value, history []*value, interval uint64, comparisons int) [2]Suspect {
	id := at.Segment
	var means, losses []float64
	for _, v := range history {
		if offset, ok := s.course.between(id, v.interval); ok {
			means = append(means, v.Delay.Mean-offset)
		}
		losses = append(losses, v.lossRate())
	}
	offset, _ := s.course.between(id, interval)
	slow, lossy := Suspect{Segment: id}, Suspect{Segment: id}
	if len(means) >= MinHistory {
		floor := at.Error
		if !id.Internal() {
			floor = math.Hypot(floor, s.config.Wander)
		}
		slow.Usual, slow.Excess, slow.Sure = excess(at.Delay.Mean-offset, means, floor, comparisons)
	}
	if at.Sent > 0 {
		rate := (float64(at.Lost) + 1) / (float64(at.Sent) + 2)
		lossy.UsualLoss, lossy.ExcessLoss, lossy.Sure = excess(at.lossRate(), losses, math.Sqrt(rate*(1-rate)/float64(at.Sent)), comparisons)
	}
	return [2]Suspect{slow, lossy}
}

func (v *value) lossRate() float64 {
	if v.Sent == 0 {
		return 0
	}
	return float64(v.Lost) / float64(v.Sent)
}

// excess tells by how much x is above the usual of past values, their median,
// and how sure it is that any of so many comparisons would not be so by chance:
// by Student's distribution, since the spread, from the median of absolute
// deviations, is an estimate too; it is worth some third of the values.
func excess(x float64, past []float64, floor float64, comparisons int) (usual, above, confident float64) {
	n := float64(len(past))
	usual, spread := middle(past)
	spread = math.Hypot(spread*math.Sqrt(1+1/n), floor)
	above = x - usual
	if above <= 0 || spread == 0 {
		return usual, max(above, 0), 0
	}
	return usual, above, 1 - min(1, float64(comparisons)*tail(above/spread, max(1, math.Floor(n/3))))
}

// tail is the probability that Student's distribution exceeds t.
func tail(t, degrees float64) float64 {
	low, high := 0.5, 1-1e-12 // its probability not to
	if estimate.StudentQuantile(high, degrees) < t {
		return 1 - high
	}
	for range 60 {
		middle := (low + high) / 2
		if estimate.StudentQuantile(middle, degrees) < t {
			low = middle
		} else {
			high = middle
		}
	}
	return 1 - low
}

// share sets each suspect's part in the sum.
func share(suspects []Suspect, of func(*Suspect) float64) {
	total := 0.0
	for i := range suspects {
		total += max(of(&suspects[i]), 0)
	}
	for i := range suspects {
		if total > 0 {
			suspects[i].Share = max(of(&suspects[i]), 0) / total
		}
	}
}
