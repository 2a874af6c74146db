package mplane

import (
	"fmt"
	"math"

	"github.com/hoplag/hoplag/estimate"
)

// A PathResult is a path's delay and loss, put together from its segments.
type PathResult struct {
	// Delay of the whole path: means add up, and so do variances if what
	// delays a packet on one segment does not on the next. N is the least of
	// the segments'.
	estimate.Delay

	// Error is the standard error of the mean from the segments' samples.
	// Clock is by how much the clocks at the path's ends may be off besides,
	// either way: half of the round trip, where the way back is measured too;
	// infinite where it is not. Clocks in between do not matter: what one
	// segment gains by them the next one loses.
	Error, Clock float64

	// Loss is the share of packets lost on the way: 1 − Π(1 − loss).
	Loss float64

	Segments []SegmentID // of the path, in order
	Missing  []SegmentID // those of them of which nothing is known: the rest speaks of a part only
}

// MeanInterval is an interval that holds the mean delay with at least the
// given confidence: of samples, by the normal distribution, and of clocks, for
// certain.
func (r PathResult) MeanInterval(confidence float64) estimate.Interval {
	half := r.Clock
	if r.Error > 0 {
		half += r.Error * estimate.NormalQuantile((1+confidence)/2)
	}
	return estimate.Interval{Low: r.Mean - half, High: r.Mean + half, Confidence: confidence}
}

// Path puts together what is known of a path's delay in an interval, for
// packets of a class. The error wraps [estimate.ErrConfig] for a path that the
// plan does not have, and [estimate.ErrNoSamples] where segments are missing:
// the Result is then of those that are not.
func (s *Station) Path(path []Router, class int, interval uint64) (PathResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.path(path, class, interval)
}

func (s *Station) path(path []Router, class int, interval uint64) (PathResult, error) {
	ids, err := s.plans[0].Along(path, class)
	if err != nil {
		return PathResult{}, err
	}
	s.follow(interval)
	r := PathResult{Segments: ids}
	var variance, errors, round, kept float64 = 0, 0, 0, 1
	for _, id := range ids {
		v := s.segments[id].at(interval)
		if v == nil {
			r.Missing = append(r.Missing, id)
			continue
		}
		offset, solved := s.course.between(id, interval)
		if !solved {
			round = math.Inf(1)
		}
		r.Mean += v.Delay.Mean - offset
		variance += v.Delay.StdDev * v.Delay.StdDev
		errors += v.Error * v.Error
		round += s.roundTrip(id, v, interval)
		if v.Sent > 0 {
			kept *= 1 - float64(v.Lost)/float64(v.Sent)
		}
		if r.N == 0 || v.Delay.N < r.N {
			r.N = v.Delay.N
		}
	}
	r.StdDev, r.Error, r.Clock, r.Loss = math.Sqrt(variance), math.Sqrt(errors), round/2, 1-kept
	if len(r.Missing) > 0 {
		return r, fmt.Errorf("mplane: %w: %d of %d segments of the path in interval %d", estimate.ErrNoSamples, len(r.Missing), len(ids),
			interval)
	}
	return r, nil
}

// roundTrip is how long a segment there and back takes, which no clock
// changes. Inside a router there is one clock, and nothing to be unsure of.
func (s *Station) roundTrip(id SegmentID, v *value, interval uint64) float64 {
	if id.Internal() {
		return 0
	}
	back := s.opposite(id).at(interval)
	if back == nil {
		return math.Inf(1)
	}
	return max(v.Delay.Mean+back.Delay.Mean, 0)
}
