package main

import (
	"math"

	"github.com/hoplag/hoplag/bench/speed"
	"github.com/hoplag/hoplag/colate"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/lds"
)

// A traffic is a stream of packets that repeats endlessly, with a given number of them in flight: while a burst
// of packets arrives, the one that came that many packets before leaves.
type traffic struct {
	packets  []hashing.Packet // a power of two
	flows    []hashing.Flow   // one for each packet
	inFlight int
	last     int // number of packets that arrive; then the rest leave

	now int // packets so far
}

// newTraffic returns an endless stream of 2^21 scattered packets of random flows; the number of flows is a
// power of two.
func newTraffic(flows, inFlight int) *traffic {
	s := &traffic{packets: speed.Packets(), inFlight: inFlight, last: math.MaxInt}
	s.flows = make([]hashing.Flow, len(s.packets))
	for i, p := range s.packets {
		s.flows[i] = speed.Flows()[int(p>>20)&(flows-1)]
	}
	return s
}

// gap is the time in nanoseconds between arrivals, delayOf a packet's delay, 0.05 to 1.1 ms, and leaves the
// time at which packet i of a burst leaves that began to arrive at t.
const gap = 100

func delayOf(p hashing.Packet) int64                { return 50_000 + int64(p>>20&(1<<20-1)) }
func leaves(p hashing.Packet, t int64, i int) int64 { return t + int64(i)*gap + delayOf(p) }

// burst is how many packets arrive in a row, and then leave.
const burst = 64

// A point takes a burst of packets with their flows, the first at t and the rest gap apart.
type point func(packets []hashing.Packet, flows []hashing.Flow, t int64)

// step lets n more packets arrive, and as many leave that came inFlight packets earlier.
func (s *traffic) step(p *pipeline, n int) {
	for end := s.now + n; s.now < end; {
		to := min(end, s.now+burst)
		s.each(s.now, min(to, s.last), p.arrive)
		s.each(max(0, s.now-s.inFlight), to-s.inFlight, p.leave)
		s.now = to
	}
}

// each passes some packets, in pieces where the stream begins again.
func (s *traffic) each(from, to int, pass point) {
	for from < to {
		at := from & (len(s.packets) - 1)
		n := min(to-from, len(s.packets)-at)
		pass(s.packets[at:at+n], s.flows[at:at+n], int64(from)*gap)
		from += n
	}
}

// A pipeline measures delays from arrivals and departures.
type pipeline struct {
	name          string
	arrive, leave point
	// mean returns the mean of the delays, and flowMean that of a flow's if the pipeline distinguishes flows;
	// otherwise it is nil. N is the number of packets behind it.
	mean     func() (estimate.Delay, error)
	flowMean func(hashing.Flow) (estimate.Delay, error)
	// tolerance is the allowed relative error of the mean of those packets.
	tolerance float64
}

// matching matches packets and records each delay. The recorder is called through a function value, which costs
// it about a nanosecond.
func matching(name string, m matcher, r recorder) pipeline {
	count, delays := 0, make([]int64, 0, burst)
	return pipeline{
		name:   name + "+" + r.name,
		arrive: func(packets []hashing.Packet, _ []hashing.Flow, t int64) { m.ingress(packets, t) },
		leave: func(packets []hashing.Packet, _ []hashing.Flow, t int64) {
			delays = m.egress(packets, t, delays[:0])
			for _, d := range delays {
				r.record(d)
			}
			count += len(delays)
		},
		mean:      func() (estimate.Delay, error) { return estimate.Delay{Mean: r.mean(), N: uint64(count)}, nil },
		tolerance: r.tolerance,
	}
}

// mapFlowPipeline matches with a map and keeps each flow's sums in another.
func mapFlowPipeline(*traffic) pipeline {
	type sums struct{ count, sum, square int64 }
	m, byFlow := mapMatcher{}, map[hashing.Flow]*sums{}
	return pipeline{
		name:   "map+map",
		arrive: func(packets []hashing.Packet, _ []hashing.Flow, t int64) { m.ingress(packets, t) },
		leave: func(packets []hashing.Packet, flows []hashing.Flow, t int64) {
			for i, p := range packets {
				sent, ok := m[p]
				if !ok {
					continue
				}
				delete(m, p)
				f := byFlow[flows[i]]
				if f == nil {
					f = new(sums)
					byFlow[flows[i]] = f
				}
				delay := leaves(p, t, i) - sent
				f.count++
				f.sum += delay
				f.square += delay * delay
			}
		},
		flowMean: func(f hashing.Flow) (estimate.Delay, error) {
			c := byFlow[f]
			return estimate.Delay{Mean: float64(c.sum) / float64(c.count), N: uint64(c.count)}, nil
		},
		tolerance: 1e-12,
	}
}

// ldaPipeline updates an aggregator at each end.
func ldaPipeline(*traffic) pipeline {
	up, down := must(lda.New(lda.DefaultConfig)), must(lda.New(lda.DefaultConfig))
	return pipeline{
		name: "lda",
		arrive: func(packets []hashing.Packet, _ []hashing.Flow, t int64) {
			for i, p := range packets {
				up.Update(p, t+int64(i)*gap)
			}
		},
		leave: func(packets []hashing.Packet, _ []hashing.Flow, t int64) {
			for i, p := range packets {
				down.Update(p, leaves(p, t, i))
			}
		},
		mean: func() (estimate.Delay, error) {
			r, err := lda.Estimate(up, down)
			return r.Delay, err
		},
		tolerance: 1e-9, // without loss it is exact
	}
}

// ldsPipeline updates a sketch at each end.
func ldsPipeline(*traffic) pipeline {
	up, down := must(lds.New(lds.DefaultConfig)), must(lds.New(lds.DefaultConfig))
	return pipeline{
		name: "lds",
		arrive: func(packets []hashing.Packet, flows []hashing.Flow, t int64) {
			for i, p := range packets {
				up.Update(flows[i], p, t+int64(i)*gap)
			}
		},
		leave: func(packets []hashing.Packet, flows []hashing.Flow, t int64) {
			for i, p := range packets {
				down.Update(flows[i], p, leaves(p, t, i))
			}
		},
		flowMean: func(f hashing.Flow) (estimate.Delay, error) {
			r, err := lds.Estimate(up, down, f)
			return r.Delay, err
		},
		tolerance: 1e-9, // few flows do not share a cell
	}
}

// colatePipeline updates a recorder at each end. When an epoch is over, the counters are emptied as if they had
// been stored.
func colatePipeline(s *traffic) pipeline {
	up, down := must(colate.New(colate.DefaultConfig)), must(colate.New(colate.DefaultConfig))
	update := func(r *colate.Recorder, f hashing.Flow, p hashing.Packet, t int64) {
		if r.Due(t) {
			r.Reset()
		}
		r.Update(f, p, t)
	}
	return pipeline{
		name: "colate",
		arrive: func(packets []hashing.Packet, flows []hashing.Flow, t int64) {
			for i, p := range packets {
				update(up, flows[i], p, t+int64(i)*gap)
			}
		},
		leave: func(packets []hashing.Packet, flows []hashing.Flow, t int64) {
			for i, p := range packets {
				update(down, flows[i], p, leaves(p, t, i))
			}
		},
		flowMean: func(f hashing.Flow) (estimate.Delay, error) {
			var own float64
			for i := range min(s.last, len(s.packets)) {
				if s.flows[i] == f {
					own++
				}
			}
			r, err := colate.Estimate(up, down, joint.FlowRecord{Flow: f, Packets: own})
			return r.Delay, err
		},
		tolerance: 1e-3, // times are in units of 64 ns
	}
}
