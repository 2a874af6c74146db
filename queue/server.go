package queue

import "math"

// A server is a transmitter's clock. It keeps the exact instant at which the transmitter becomes free, as whole
// nanoseconds and a remainder in units of 1/rate ns, so that no rounding adds up over a busy period. For a
// shaper it is the instant at which the bucket will be full, which is the same sum.
type server struct {
	rate  uint64
	burst uint64 // bytes; 0: not a shaper
	free  int64
	rest  uint64 // below rate

	left     int64 // when the latest packet has completely left
	leftRest uint64
}

func newServer(rate int64, burst int32) server {
	return server{rate: uint64(rate), burst: uint64(burst), free: math.MinInt64}
}

// largest returns the size of the largest packet that it can serve.
func (s *server) largest() uint64 {
	if s.burst > 0 {
		return s.burst
	}
	return math.MaxInt32
}

// serve transmits a packet as soon as t has come and the transmitter is free. It returns when the packet's last
// bit has left, rounded down and rounded up.
func (s *server) serve(t int64, bytes int32) (done, gone int64) {
	if s.free < t {
		s.free, s.rest = t, 0
	}
	if s.burst > 0 {
		s.release(t, uint64(bytes))
	}
	// 8·10^9·bytes is below 2^64: bytes is below 2^31.
	work := uint64(bytes)*8e9 + s.rest
	s.free += int64(work / s.rate)
	s.rest = work % s.rate
	if s.burst == 0 {
		s.left, s.leftRest = s.free, s.rest
	}
	return s.left, s.gone()
}

// release computes when a packet leaves a shaper. A bucket that will be full at free lacks what fills it until
// then, so it has the packet's bytes from (burst-bytes)·8·10^9/rate before that. This is never before the
// packet ahead left, if that one had to wait.
func (s *server) release(t int64, bytes uint64) {
	ahead := (s.burst - bytes) * 8e9
	s.left, s.leftRest = s.free-int64(ahead/s.rate), s.rest
	if before := ahead % s.rate; before > s.leftRest {
		s.left--
		s.leftRest += s.rate - before
	} else {
		s.leftRest -= before
	}
	if s.left < t {
		s.left, s.leftRest = t, 0
	}
}

// emptied returns when the latest packet has completely left: t, plus a fraction of a ns.
func (s *server) emptied() (t int64, part float64) {
	return s.left, float64(s.leftRest) / float64(s.rate)
}

// gone returns the first whole nanosecond by which all of the latest packet has left.
func (s *server) gone() int64 {
	if s.leftRest > 0 {
		return s.left + 1
	}
	return s.left
}
