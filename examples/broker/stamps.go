package main

import (
	"math"
	"math/bits"
	"sync"
	"time"
)

// stamps collects the answer of time stamps in the messages: every delay that
// arrived, second by second. It does not know what did not arrive.
type stamps struct {
	mu      sync.Mutex
	seconds map[int64]*histogram
}

// A histogram holds delays, in nanoseconds, to 3 %.
type histogram struct {
	received uint64
	sum      float64
	counts   [(64 - fine) << fine]uint32
}

// fine is the number of bits of a delay, after the first, that choose its
// bucket.
const fine = 5

// bucket returns the bucket of a delay.
func bucket(ns uint64) int {
	if ns < 1<<fine {
		return int(ns)
	}
	shift := bits.Len64(ns) - 1 - fine
	return shift<<fine + int(ns>>shift)
}

// lowest returns the shortest delay of a bucket.
func lowest(bucket int) float64 {
	if bucket < 2<<fine {
		return float64(bucket)
	}
	shift := bucket>>fine - 1
	return math.Ldexp(float64(bucket-shift<<fine), shift)
}

func (s *stamps) add(sent, now int64) {
	delay := max(now-sent, 0)
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.seconds[now/int64(time.Second)]
	if h == nil {
		h = new(histogram)
		s.seconds[now/int64(time.Second)] = h
	}
	h.received++
	h.sum += float64(delay)
	h.counts[bucket(uint64(delay))]++
}

// take returns what was received up to a second, and forgets it. The first
// report may begin with cuts of the second before.
func (s *stamps) take(second int64) *histogram {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := new(histogram)
	for at, h := range s.seconds {
		if at > second {
			continue
		}
		all.received += h.received
		all.sum += h.sum
		for i, n := range h.counts {
			all.counts[i] += n
		}
		delete(s.seconds, at)
	}
	return all
}

func (h *histogram) mean() float64 { return h.sum / float64(h.received) }

func (h *histogram) quantile(share float64) float64 {
	rank := uint64(share * float64(h.received))
	for i, n := range h.counts {
		if rank < uint64(n) {
			return lowest(i)
		}
		rank -= uint64(n)
	}
	return math.NaN()
}
