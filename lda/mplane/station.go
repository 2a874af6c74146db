package mplane

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/hoplag/hoplag/estimate"
)

// Errors of reports that a Station refuses in whole or in part.
var (
	// ErrInterval means that the report's interval is no longer kept, or in
	// the future.
	ErrInterval = errors.New("interval not kept")
	// ErrUnplanned means that the report is about a segment that is in no
	// plan, or from a router that does not measure it.
	ErrUnplanned = errors.New("segment not planned")
)

// A StationConfig says what a monitoring station expects.
type StationConfig struct {
	Plan *Plan
	Key  Key // of the reports' tags

	// Length is the length of an interval, in nanoseconds. Intervals are
	// numbered by the clock, time divided by Length, so that no report can
	// pretend to be of a later time.
	Length int64

	// History is the number of intervals kept, 8 to 10,000; 0 means 64.
	// Localise compares a segment with its own history.
	History int

	// Wander is the number of nanoseconds by which a clock may leave its
	// course from one interval to the next and still be believed rather than
	// the delays of all segments around it; 0 means 1,000.
	Wander float64
}

// A Station collects the reports of monitors, segment by segment and interval
// by interval. Any number of goroutines may use it.
type Station struct {
	config      StationConfig
	fingerprint uint64

	mu       sync.Mutex
	plans    []*Plan // those in force, the latest first
	until    int64   // when the second one ends
	segments map[SegmentID]*segment
	latest   uint64 // the latest interval reported
	begun    bool
	counts   StationCounts
	course   course
}

// StationCounts says what became of the reports.
type StationCounts struct {
	Reports       uint64 // accepted
	Refused       uint64 // damaged, forged, of another network or of another time
	Unplanned     uint64 // measurements of segments that were not expected
	Repeated      uint64 // measurements that came again: a report was duplicated or replayed
	Contradictory uint64 // measurements that differ from an earlier one of the same
}

// A segment is the history of one.
type segment struct {
	id     SegmentID
	values []value // by interval modulo their number
}

// A value is a segment's measurement in an interval.
type value struct {
	Measurement
	interval uint64
	known    bool
	disputed bool
}

// NewStation returns a station without history. The error wraps
// [estimate.ErrConfig].
func NewStation(c StationConfig) (*Station, error) {
	if c.Plan == nil {
		return nil, invalid("Plan", "nil", "a plan")
	}
	if c.History == 0 {
		c.History = 64
	}
	if c.Wander == 0 {
		c.Wander = 1000
	}
	if c.History < 8 || c.History > 10_000 {
		return nil, invalid("History", c.History, "8 to 10000")
	}
	if !(c.Wander > 0) || math.IsInf(c.Wander, 1) {
		return nil, invalid("Wander", c.Wander, "a finite number above 0")
	}
	if c.Length <= 0 {
		return nil, invalid("Length", c.Length, "more than 0 ns")
	}
	return &Station{
		config:      c,
		fingerprint: c.Plan.network.Fingerprint(),
		plans:       []*Plan{c.Plan},
		segments:    map[SegmentID]*segment{},
	}, nil
}

// Replan puts a new plan in force after a topology change. The station also
// accepts segments of the old plan until the given time. The error wraps
// [estimate.ErrMismatch] if the plans number routers differently.
func (s *Station) Replan(p *Plan, until int64) error {
	if p.network.Fingerprint() != s.fingerprint {
		return fmt.Errorf("mplane: %w: the plan is for other routers", estimate.ErrMismatch)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plans, s.until = []*Plan{p, s.plans[0]}, until
	return nil
}

// Receive accepts a report at time now, in nanoseconds. It stores what the
// report says about planned segments, even if it refuses other parts. The
// error wraps [estimate.ErrEncoding] for data that is not a report with this
// key, [estimate.ErrMismatch] for a report of another network, ErrInterval or
// ErrUnplanned. A report that comes again changes nothing.
func (s *Station) Receive(now int64, data []byte) (Report, error) {
	r, err := DecodeReport(data, s.config.Key)
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.counts.Refused++
		return Report{}, err
	}
	return r, s.Take(now, r)
}

// Take is Receive for a monitor in this process: [Measure] makes its measurements
// of the results of package lda. It checks them.
func (s *Station) Take(now int64, r Report) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.admit(now, &r)
	for i := range r.Measurements {
		err = cmp.Or(err, r.Measurements[i].check())
	}
	if err != nil {
		s.counts.Refused++
		return err
	}
	s.counts.Reports++
	s.retire(now)
	var unplanned SegmentID
	count := 0
	for i := range r.Measurements {
		if m := &r.Measurements[i]; !s.planned(m.Segment, r.Monitor) {
			unplanned = m.Segment
			count++
		} else {
			s.store(m, r.Interval)
		}
	}
	if count > 0 {
		s.counts.Unplanned += uint64(count)
		return fmt.Errorf("mplane: %w: %d of %d measurements by router %d, the last of %+v", ErrUnplanned, count, len(r.Measurements),
			r.Monitor, unplanned)
	}
	return nil
}

// ahead is the number of intervals that a monitor's clock may be ahead of the
// station's.
const ahead = 2

// admit checks that a report is of this network and about the present.
func (s *Station) admit(now int64, r *Report) error {
	if r.Network != s.fingerprint {
		return fmt.Errorf("mplane: %w: report of network %#x, the plan's is %#x", estimate.ErrMismatch, r.Network, s.fingerprint)
	}
	last := uint64(max(now, 0)/s.config.Length) + ahead
	oldest := last - min(last, uint64(s.config.History-1))
	if r.Interval < oldest || r.Interval > last {
		return fmt.Errorf("mplane: %w: %d of router %d, want %d to %d", ErrInterval, r.Interval, r.Monitor, oldest, last)
	}
	if !s.begun || r.Interval > s.latest {
		s.begun, s.latest = true, r.Interval
	}
	return nil
}

// retire drops the old plan when its time is over, and the segments that only
// it had.
func (s *Station) retire(now int64) {
	if len(s.plans) > 1 && now >= s.until {
		s.plans = s.plans[:1]
		maps.DeleteFunc(s.segments, func(id SegmentID, _ *segment) bool { return !s.plans[0].Has(id) })
	}
}

// planned reports whether a monitor may measure a segment.
func (s *Station) planned(id SegmentID, by Router) bool {
	if id.Internal() && by != id.Via || !id.Internal() && by != id.From && by != id.To {
		return false
	}
	return slices.ContainsFunc(s.plans, func(p *Plan) bool { return p.Has(id) })
}

// store keeps a measurement. Of two that differ it keeps neither: both are
// disputed.
func (s *Station) store(m *Measurement, interval uint64) {
	g := s.segments[m.Segment]
	if g == nil {
		g = &segment{id: m.Segment, values: make([]value, s.config.History)}
		s.segments[m.Segment] = g
	}
	v := &g.values[interval%uint64(len(g.values))]
	if v.known && v.interval == interval {
		if v.Measurement == *m {
			s.counts.Repeated++
		} else {
			v.disputed = true
			s.counts.Contradictory++
		}
		return
	}
	*v = value{Measurement: *m, interval: interval, known: true}
}

// at returns what is known about a segment in an interval.
func (g *segment) at(interval uint64) *value {
	if g == nil {
		return nil
	}
	if v := &g.values[interval%uint64(len(g.values))]; v.known && !v.disputed && v.interval == interval {
		return v
	}
	return nil
}

// Segment returns what was reported about a segment in an interval, and
// whether there is a report that is not disputed.
func (s *Station) Segment(id SegmentID, interval uint64) (Measurement, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v := s.segments[id].at(interval); v != nil {
		return v.Measurement, true
	}
	return Measurement{}, false
}

// Missing returns the segments of the present plan about which nothing is
// known in an interval, or only what is disputed.
func (s *Station) Missing(interval uint64) []SegmentID {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.plans[0]
	var missing []SegmentID
	for r := range Router(len(p.monitors)) {
		for _, probed := range p.sets[r] {
			if s.segments[probed.ID].at(interval) == nil {
				missing = append(missing, probed.ID)
			}
		}
	}
	return missing
}

// Latest returns the latest interval that was reported about.
func (s *Station) Latest() (interval uint64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.latest, s.begun
}

// Counts returns what became of the reports so far.
func (s *Station) Counts() StationCounts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts
}
