package figrli

import (
	"cmp"
	"math"
	"slices"

	"github.com/hoplag/hoplag/bench/perflow"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// sampled is the share of the packets whose times both routers keep, chosen by
// the same hash (section V-C).
const sampled = 0.001

// A sampling is what routers know that keep the times of sampled packets at
// both ends.
type sampling struct {
	born  []int32 // the first sampled packet of each flow; -1 of a flow without one
	truth []flow  // each flow's delays from its first sampled packet on

	// Relative errors by flow: of the mean of the flow's own samples
	// (trajectory sampling), and of the mean of all flows' samples between its
	// first and its last (multiflow estimator), where those are the first and
	// last of each flow, as a flow record keeps no others.
	trajectory, multiflow []float64
}

// sample is the part of the departures' delays that the routers know.
func (p *passage) sample() *sampling {
	threshold := hashing.Threshold(sampled)
	type record struct {
		own         estimate.Moments
		first, last sampleAt
	}
	records := make([]record, len(p.flows))
	n := len(p.flows)
	s := &sampling{
		born: slices.Repeat([]int32{-1}, n), truth: make([]flow, n),
		trajectory: perflow.Unanswered(n), multiflow: perflow.Unanswered(n),
	}
	for i := range p.events {
		d := &p.events[i]
		if !d.regular() {
			continue
		}
		r := &records[d.flow]
		if hashing.Sampled(uint64(identity(d.number)), threshold) == 1 {
			here := sampleAt{d.out, float64(d.delay)}
			if r.own.N() == 0 {
				r.first, s.born[d.flow] = here, d.number
			}
			r.last = here
			r.own.Add(float64(d.delay))
		}
		if s.born[d.flow] >= 0 {
			s.truth[d.flow].delays.Add(float64(d.delay))
		}
	}
	var background samples
	for i := range records {
		r := &records[i]
		if r.own.N() > 0 {
			background = append(background, r.first)
		}
		if r.own.N() > 1 {
			background = append(background, r.last)
		}
	}
	between := background.means()
	for i := range records {
		if r := &records[i]; r.own.N() > 0 {
			truth := s.truth[i].mean()
			s.trajectory[i] = estimate.RelativeError(r.own.Mean(), truth)
			s.multiflow[i] = estimate.RelativeError(between(r.first.at, r.last.at), truth)
		}
	}
	return s
}

// sampleAt is a delay that is known, and when.
type sampleAt struct {
	at    int64
	delay float64
}

type samples []sampleAt

// means returns the mean of the samples from a time to another, and that of
// the nearest before where there are none. It sorts them.
func (s samples) means() func(from, to int64) float64 {
	slices.SortFunc(s, func(a, b sampleAt) int { return cmp.Compare(a.at, b.at) })
	sums := make([]float64, len(s)+1)
	for i := range s {
		sums[i+1] = sums[i] + s[i].delay
	}
	after := func(t int64) int { // number of samples up to t
		i, _ := slices.BinarySearchFunc(s, t, func(x sampleAt, t int64) int {
			if x.at <= t {
				return -1
			}
			return 1
		})
		return i
	}
	return func(from, to int64) float64 {
		low, high := after(from-1), after(to)
		if low == high {
			low = max(low-1, 0)
			high = min(low+1, len(s))
		}
		if low == high {
			return math.NaN()
		}
		return (sums[high] - sums[low]) / float64(high-low)
	}
}

// byProbes are the relative errors by flow of the mean of the Poisson probes
// that arrived from a flow's first packet to its last.
func (p *passage) byProbes() []float64 {
	var probes samples
	first, last := slices.Repeat([]int64{math.MinInt64}, len(p.flows)), make([]int64, len(p.flows))
	for i := range p.events {
		d := &p.events[i]
		if !d.regular() {
			probes = append(probes, sampleAt{d.out, float64(d.delay)})
			continue
		}
		if first[d.flow] == math.MinInt64 {
			first[d.flow] = d.out
		}
		last[d.flow] = d.out
	}
	between := probes.means()
	errors := perflow.Unanswered(len(p.flows))
	for i := range p.flows {
		if m := between(first[i], last[i]); !math.IsNaN(m) {
			errors[i] = estimate.RelativeError(m, p.flows[i].mean())
		}
	}
	return errors
}
