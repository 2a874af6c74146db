package main

import (
	"sync"
	"time"

	"github.com/hoplag/hoplag/estimate"
)

// stamps collects the answer of time stamps in the messages: every delay that
// arrived, second by second. It does not know what did not arrive.
type stamps struct {
	mu      sync.Mutex
	seconds map[int64]*estimate.Moments // ns
}

func (s *stamps) add(sent, now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.seconds[now/int64(time.Second)]
	if m == nil {
		m = new(estimate.Moments)
		s.seconds[now/int64(time.Second)] = m
	}
	m.Add(float64(max(now-sent, 0)))
}

// take returns what was received up to a second, and forgets it. The first
// report may begin with cuts of the second before.
func (s *stamps) take(second int64) (all estimate.Moments) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for at, m := range s.seconds {
		if at <= second {
			all.Merge(*m)
			delete(s.seconds, at)
		}
	}
	return all
}
