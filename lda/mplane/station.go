package mplane

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/internal/session"
)

// Errors of reports that a Station refuses in whole or in part.
var (
	// ErrInterval means that the report's interval is no longer kept, or lies in the future.
	ErrInterval = errors.New("interval not kept")
	// ErrDisputed means that another report says something else of a segment. Neither is believed.
	ErrDisputed = errors.New("reports of a segment differ")
	// ErrForged means that the report lacks the tag of the station's key.
	ErrForged = session.ErrForged
)

// A StationConfig says what a monitoring station expects.
type StationConfig struct {
	Plan *Plan
	Key  Key // of the reports' tags

	// Length is the length of an interval, in nanoseconds. Intervals are numbered by the clock, so that no
	// report can claim a later time.
	Length int64

	History int // the number of intervals kept, 8 to 10,000; 0 means 64
}

// A Station collects the reports of monitors, segment by segment and interval by interval. Make one with
// [NewStation]: nil and the zero value panic. Any number of goroutines may use it.
type Station struct {
	config StationConfig

	mu       sync.Mutex
	segments map[SegmentID][]value // by interval modulo History
}

// A value is a segment's measurement in an interval.
type value struct {
	Measurement
	interval        uint64
	known, disputed bool
}

// NewStation returns a station without history. The error wraps [estimate.ErrConfig].
func NewStation(c StationConfig) (*Station, error) {
	c.History = cmp.Or(c.History, 64)
	switch {
	case c.Plan == nil:
		return nil, invalid("Plan", "nil", "a plan")
	case c.History < 8 || c.History > 10_000:
		return nil, invalid("History", c.History, "8 to 10000")
	case c.Length <= 0:
		return nil, invalid("Length", c.Length, "more than 0 ns")
	}
	return &Station{config: c, segments: map[SegmentID][]value{}}, nil
}

// Replan puts a new plan in force after a topology change. Segments of both plans keep their history. The error
// wraps [estimate.ErrMismatch] if the plans number routers differently, or [estimate.ErrConfig] without a plan.
func (s *Station) Replan(p *Plan) error {
	if p == nil {
		return invalid("plan", "nil", "a plan")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.fingerprint != s.config.Plan.fingerprint {
		return fmt.Errorf("mplane: %w: the plan is for other routers", estimate.ErrMismatch)
	}
	s.config.Plan = p
	maps.DeleteFunc(s.segments, func(id SegmentID, _ []value) bool { return !p.has(id) })
	return nil
}

// Receive accepts a report at time now, in nanoseconds. It stores what the report says about planned segments,
// even if it refuses other parts. The error wraps [estimate.ErrEncoding], [ErrForged], ErrInterval, ErrDisputed,
// or [estimate.ErrMismatch] for a report of another network, of a segment that is not in the plan, or from a
// router that does not measure it. A report that arrives again changes nothing.
func (s *Station) Receive(now int64, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, network, err := decodeReport(data, s.config.Key)
	if want := s.config.Plan.fingerprint; err == nil && network != want {
		err = fmt.Errorf("mplane: %w: report of network %#x, the plan's is %#x", estimate.ErrMismatch, network, want)
	}
	if err == nil {
		err = s.admit(now, &r)
	}
	if err != nil {
		return err
	}
	for i := range r.Measurements {
		m := &r.Measurements[i]
		if !s.planned(m.Segment, r.Monitor) {
			err = fmt.Errorf("mplane: %w: segment %+v, among others, not planned for router %d", estimate.ErrMismatch, m.Segment, r.Monitor)
		} else if !s.store(m, r.Interval) {
			err = fmt.Errorf("mplane: %w: %+v, among others, in interval %d", ErrDisputed, m.Segment, r.Interval)
		}
	}
	return err
}

const ahead = 2 // intervals that a monitor's clock may be ahead of the station's

// admit checks that a report is recent.
func (s *Station) admit(now int64, r *Report) error {
	last := uint64(max(now, 0)/s.config.Length) + ahead
	oldest := last - min(last, uint64(s.config.History-1))
	if r.Interval < oldest || r.Interval > last {
		return fmt.Errorf("mplane: %w: %d of router %d, want %d to %d", ErrInterval, r.Interval, r.Monitor, oldest, last)
	}
	return nil
}

// planned reports whether a monitor may measure a segment.
func (s *Station) planned(id SegmentID, by Router) bool {
	if id.internal() && by != id.Via || !id.internal() && by != id.From && by != id.To {
		return false
	}
	return s.config.Plan.has(id)
}

// store keeps a measurement, and reports whether there is no other. Of two that differ it keeps neither.
func (s *Station) store(m *Measurement, interval uint64) bool {
	if s.segments[m.Segment] == nil {
		s.segments[m.Segment] = make([]value, s.config.History)
	}
	v := &s.segments[m.Segment][interval%uint64(s.config.History)]
	switch {
	case !v.known || v.interval != interval:
		*v = value{Measurement: *m, interval: interval, known: true}
	case v.Measurement != *m:
		v.disputed = true
	}
	return !v.disputed
}

// at returns what is known about a segment in an interval.
func (s *Station) at(id SegmentID, interval uint64) *value {
	if g := s.segments[id]; g != nil {
		if v := &g[interval%uint64(len(g))]; v.known && !v.disputed && v.interval == interval {
			return v
		}
	}
	return nil
}

// back returns what is known about delays on the way back in the same interval, or nil.
func (s *Station) back(v *value) *value {
	if back, ok := s.config.Plan.Opposite(v.Segment); ok {
		if v := s.at(back, v.interval); v != nil && v.Delay.N > 0 {
			return v
		}
	}
	return nil
}
