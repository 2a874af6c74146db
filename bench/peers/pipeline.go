package main

import (
	"math"

	"github.com/hoplag/hoplag/bench/speed"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// A traffic is a stream of packets that repeats endlessly, with a given number
// of them in flight: while one packet arrives, the one that came that many
// packets before leaves.
type traffic struct {
	packets  []hashing.Packet // a power of two
	flows    []hashing.Flow   // one for each packet
	inFlight int
	last     int // number of packets that arrive; then the rest leave

	now int // steps so far
}

// newTraffic returns an endless stream of 2^21 scattered packets of random
// flows; the number of flows is a power of two.
func newTraffic(flows, inFlight int) *traffic {
	s := &traffic{packets: speed.Packets(), inFlight: inFlight, last: math.MaxInt}
	s.flows = make([]hashing.Flow, len(s.packets))
	for i, p := range s.packets {
		s.flows[i] = speed.Flows()[int(p>>20)&(flows-1)]
	}
	return s
}

// take returns the next n steps.
func (s *traffic) take(n int) (from, to int) {
	from = s.now
	s.now += n
	return from, s.now
}

// gap is the time in nanoseconds between arrivals, and delayOf returns a
// packet's delay: 0.05 to 1.1 ms.
const gap = 100

func delayOf(p hashing.Packet) int64 { return 50_000 + int64(p>>20&(1<<20-1)) }

// A pipeline measures delays from arrivals and departures.
type pipeline struct {
	name string
	// step lets n more packets arrive, and those leave that came inFlight
	// before.
	step func(n int)
	// mean returns the mean of the delays, and flowMean that of a flow's if
	// the pipeline distinguishes flows; otherwise it is nil. N is the number
	// of packets behind it.
	mean     func() (estimate.Delay, error)
	flowMean func(hashing.Flow) (estimate.Delay, error)
	// tolerance is the allowed relative error of the mean of those packets.
	tolerance float64
}

// The three loops that match are one, but written out for each matcher, so
// that the matchers are called directly, as in a user's own program. The
// recorder is called through a function value, which costs it about a
// nanosecond.

// mapPipeline stores each arrival in a map, and looks it up at departure.
func mapPipeline(s *traffic, r recorder) pipeline {
	m, count, mask := mapMatcher{}, 0, len(s.packets)-1
	step := func(n int) {
		for i, end := s.take(n); i < end; i++ {
			if i < s.last {
				m.ingress(s.packets[i&mask], int64(i)*gap)
			}
			if j := i - s.inFlight; j >= 0 {
				p := s.packets[j&mask]
				if delay, ok := m.egress(p, int64(j)*gap+delayOf(p)); ok {
					r.record(delay)
					count++
				}
			}
		}
	}
	return matching("map+"+r.name, step, &count, r)
}

// syncPipeline does the same with a sync.Map.
func syncPipeline(s *traffic, r recorder) pipeline {
	m, count, mask := syncMatcher{}, 0, len(s.packets)-1
	step := func(n int) {
		for i, end := s.take(n); i < end; i++ {
			if i < s.last {
				m.ingress(s.packets[i&mask], int64(i)*gap)
			}
			if j := i - s.inFlight; j >= 0 {
				p := s.packets[j&mask]
				if delay, ok := m.egress(p, int64(j)*gap+delayOf(p)); ok {
					r.record(delay)
					count++
				}
			}
		}
	}
	return matching("sync.Map+"+r.name, step, &count, r)
}

// tablePipeline does the same with a direct-mapped table that loses some.
func tablePipeline(s *traffic, r recorder) pipeline {
	m, count, mask := newLossyTable(s.inFlight), 0, len(s.packets)-1
	step := func(n int) {
		for i, end := s.take(n); i < end; i++ {
			if i < s.last {
				m.ingress(s.packets[i&mask], int64(i)*gap)
			}
			if j := i - s.inFlight; j >= 0 {
				p := s.packets[j&mask]
				if delay, ok := m.egress(p, int64(j)*gap+delayOf(p)); ok {
					r.record(delay)
					count++
				}
			}
		}
	}
	return matching("table+"+r.name, step, &count, r)
}

func matching(name string, step func(int), count *int, r recorder) pipeline {
	return pipeline{
		name: name, step: step, tolerance: r.tolerance,
		mean: func() (estimate.Delay, error) {
			return estimate.Delay{Mean: r.mean(), N: uint64(*count)}, nil
		},
	}
}
