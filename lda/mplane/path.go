package mplane

import (
	"fmt"
	"math"

	"github.com/hoplag/hoplag/estimate"
)

// A PathResult is a path's delay and loss, combined from its segments.
type PathResult struct {
	// Delay is that of the whole path. Means add up, and so do variances if what delays a packet on one segment
	// does not delay it on the next. N is the smallest of the segments'.
	estimate.Delay

	// certain contains the samples' mean whatever the clocks show: between routers no delay is below zero, nor
	// above the round trip, if that is measured.
	certain estimate.Interval

	// Loss is the fraction of packets lost on the way: 1 − Π(1 − loss).
	Loss float64

	Missing []SegmentID // segments whose delay is not known; the result then describes only a part of the path

	roundError float64 // standard error of the ends of certain
}

// MeanInterval returns an interval that contains the mean delay with at least the given confidence: bounds that
// hold whatever the clocks show, and the samples' error there and back, by the normal distribution.
func (r PathResult) MeanInterval(confidence float64) estimate.Interval {
	chance := 0.0
	if r.roundError > 0 {
		chance = r.roundError * estimate.NormalQuantile((1+confidence)/2)
	}
	return estimate.Interval{Low: r.certain.Low - chance, High: r.certain.High + chance, Confidence: confidence}
}

// Path combines what is known about a path's delay in an interval. The error wraps [estimate.ErrConfig] if the
// plan does not have the path, or [estimate.ErrNoSamples] if segments are missing; the result then covers the
// others.
func (s *Station) Path(path []Router, interval uint64) (PathResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids, err := s.config.Plan.Along(path)
	if err != nil {
		return PathResult{}, err
	}
	r := PathResult{certain: estimate.Interval{Confidence: 1}}
	kept := 1.0
	for _, id := range ids {
		v := s.at(id, interval)
		if v != nil && v.Sent > 0 {
			kept *= 1 - float64(v.Lost)/float64(v.Sent)
		}
		mean, known := s.mean(v)
		if !known {
			r.Missing = append(r.Missing, id)
			continue
		}
		r.Mean += mean
		r.StdDev = math.Hypot(r.StdDev, v.Delay.StdDev)
		s.certain(&r, v)
		if r.N == 0 || v.Delay.N < r.N {
			r.N = v.Delay.N
		}
	}
	r.Loss = 1 - kept
	r.Mean = min(max(r.Mean, r.certain.Low), r.certain.High)
	if len(r.Missing) > 0 {
		return r, fmt.Errorf("mplane: %w: %d of %d segments in interval %d", estimate.ErrNoSamples, len(r.Missing), len(ids), interval)
	}
	return r, nil
}

// mean returns a segment's mean delay, if known: by the reading of its clocks or, without one, half of the
// round trip.
func (s *Station) mean(v *value) (mean float64, known bool) {
	switch {
	case v == nil || v.Delay.N == 0:
		return 0, false
	case v.Segment.internal() || v.aheadError > 0:
		return v.Delay.Mean - v.ahead, true
	}
	if back := s.back(v); back != nil {
		return (v.Delay.Mean + back.Delay.Mean) / 2, true
	}
	return 0, false
}

// certain adds a segment to the certain interval of a path. In a router is one clock.
func (s *Station) certain(r *PathResult, v *value) {
	chance := v.Error
	if v.Segment.internal() {
		r.certain.Low += v.Delay.Mean
		r.certain.High += v.Delay.Mean
	} else if back := s.back(v); back != nil {
		r.certain.High += max(v.Delay.Mean+back.Delay.Mean, 0)
		chance = math.Hypot(chance, back.Error)
	} else {
		r.certain.High = math.Inf(1)
	}
	r.roundError = math.Hypot(r.roundError, chance)
}
