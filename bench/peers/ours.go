package main

import (
	"github.com/hoplag/hoplag/colate"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/lds"
)

// ldaPipeline updates an aggregator at each end.
func ldaPipeline(s *traffic) pipeline {
	up, down := must(lda.New(lda.DefaultConfig)), must(lda.New(lda.DefaultConfig))
	mask := len(s.packets) - 1
	return pipeline{
		name: "lda",
		step: func(n int) {
			for i, end := s.take(n); i < end; i++ {
				if i < s.last {
					up.Update(s.packets[i&mask], int64(i)*gap)
				}
				if j := i - s.inFlight; j >= 0 {
					p := s.packets[j&mask]
					down.Update(p, int64(j)*gap+delayOf(p))
				}
			}
		},
		mean: func() (estimate.Delay, error) {
			r, err := lda.Estimate(up, down)
			return r.Delay, err
		},
		tolerance: 1e-9, // without loss it is exact
	}
}

// mapFlowPipeline matches with a map and keeps each flow's sums in another.
func mapFlowPipeline(s *traffic) pipeline {
	type sums struct{ count, sum, square int64 }
	m, byFlow := mapMatcher{}, map[hashing.Flow]*sums{}
	mask := len(s.packets) - 1
	return pipeline{
		name: "map+map",
		step: func(n int) {
			for i, end := s.take(n); i < end; i++ {
				if i < s.last {
					m.ingress(s.packets[i&mask], int64(i)*gap)
				}
				if j := i - s.inFlight; j >= 0 {
					p := s.packets[j&mask]
					delay, ok := m.egress(p, int64(j)*gap+delayOf(p))
					if !ok {
						continue
					}
					f := byFlow[s.flows[j&mask]]
					if f == nil {
						f = new(sums)
						byFlow[s.flows[j&mask]] = f
					}
					f.count++
					f.sum += delay
					f.square += delay * delay
				}
			}
		},
		flowMean: func(f hashing.Flow) (estimate.Delay, error) {
			c := byFlow[f]
			return estimate.Delay{Mean: float64(c.sum) / float64(c.count), N: uint64(c.count)}, nil
		},
		tolerance: 1e-12,
	}
}

// ldsPipeline updates a sketch at each end.
func ldsPipeline(s *traffic) pipeline {
	up, down := must(lds.New(lds.DefaultConfig)), must(lds.New(lds.DefaultConfig))
	mask := len(s.packets) - 1
	return pipeline{
		name: "lds",
		step: func(n int) {
			for i, end := s.take(n); i < end; i++ {
				if i < s.last {
					up.Update(s.flows[i&mask], s.packets[i&mask], int64(i)*gap)
				}
				if j := i - s.inFlight; j >= 0 {
					p := s.packets[j&mask]
					down.Update(s.flows[j&mask], p, int64(j)*gap+delayOf(p))
				}
			}
		},
		flowMean: func(f hashing.Flow) (estimate.Delay, error) {
			r, err := lds.Estimate(up, down, f)
			return r.Delay, err
		},
		tolerance: 1e-9, // few flows do not share a cell
	}
}

// colatePipeline updates a recorder at each end. When an epoch is over, the
// counters are emptied as if they had been stored.
func colatePipeline(s *traffic) pipeline {
	up, down := must(colate.New(colate.DefaultConfig)), must(colate.New(colate.DefaultConfig))
	mask := len(s.packets) - 1
	update := func(r *colate.Recorder, f hashing.Flow, p hashing.Packet, t int64) {
		if r.Due(t) {
			r.Reset()
		}
		r.Update(f, p, t)
	}
	return pipeline{
		name: "colate",
		step: func(n int) {
			for i, end := s.take(n); i < end; i++ {
				if i < s.last {
					update(up, s.flows[i&mask], s.packets[i&mask], int64(i)*gap)
				}
				if j := i - s.inFlight; j >= 0 {
					p := s.packets[j&mask]
					update(down, s.flows[j&mask], p, int64(j)*gap+delayOf(p))
				}
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
