package main

import (
	"fmt"
	"math"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

const (
	tracePackets  = 1 << 15
	traceFlows    = 1 << 3 // so few that they share no counters
	traceInFlight = 1000
)

func trace() *traffic {
	s := newTraffic(traceFlows, traceInFlight)
	s.last = tracePackets
	return s
}

// pipelines make every pipeline over a traffic.
func pipelines() []func(*traffic) pipeline {
	all := []func(*traffic) pipeline{ldaPipeline, ldsPipeline, colatePipeline, mapFlowPipeline}
	for i := range recorders() {
		all = append(all,
			func(*traffic) pipeline { return matching("map", mapMatcher{}, recorders()[i]) },
			func(*traffic) pipeline { return matching("table", newLossyTable(traceInFlight), recorders()[i]) })
	}
	return all
}

// Every pipeline finds the mean delay of a short trace and, if it tells flows apart, of each flow.
func TestPipelines(t *testing.T) {
	for _, make := range pipelines() {
		s := trace()
		p := make(s)
		t.Run(p.name, func(t *testing.T) {
			s.step(&p, tracePackets+traceInFlight)
			if err := check(p, s); err != nil {
				t.Error(err)
			}
		})
	}
}

// A table that does not check what it found.
type unkeyed struct{ *lossyTable }

func (m unkeyed) egress(packets []hashing.Packet, t int64, delays []int64) []int64 {
	for i, p := range packets {
		delays = append(delays, leaves(p, t, i)-m.slots[uint64(p)&m.mask].sent)
	}
	return delays
}

// A matcher that does not check what it found fails the test.
func TestPipelinesReject(t *testing.T) {
	s := trace()
	p := matching("table", unkeyed{newLossyTable(traceInFlight)}, newSum())
	s.step(&p, tracePackets+traceInFlight)
	if check(p, s) == nil {
		t.Error("a table without keys passes")
	}
}

// check compares p's means of a trace with the true ones.
func check(p pipeline, s *traffic) error {
	all, flows := &truth{}, map[hashing.Flow]*truth{}
	for i := range tracePackets {
		d := float64(delayOf(s.packets[i]))
		all.add(d)
		f := flows[s.flows[i]]
		if f == nil {
			f = &truth{}
			flows[s.flows[i]] = f
		}
		f.add(d)
	}
	if p.mean != nil {
		got, err := p.mean()
		if err = all.check(got, err, p.tolerance); err != nil {
			return err
		}
	}
	if p.flowMean != nil {
		for key, f := range flows {
			got, err := p.flowMean(key)
			if err = f.check(got, err, p.tolerance); err != nil {
				return fmt.Errorf("flow %#x: %w", key, err)
			}
		}
	}
	return nil
}

// A truth is what the delays of some packets really were.
type truth struct{ n, sum, square float64 }

func (a *truth) add(d float64) {
	a.n++
	a.sum += d
	a.square += d * d
}

// check allows an estimate its tolerance, and where it rests on a part of the packets, drawn by their hashes,
// five standard deviations of the mean of a sample that size: one false alarm in 10^6.
func (a *truth) check(got estimate.Delay, err error, tolerance float64) error {
	mean := a.sum / a.n
	n := float64(got.N)
	switch {
	case err != nil:
		return err
	case n < a.n/2 || n > a.n:
		return fmt.Errorf("the mean rests on %d packets of %.0f", got.N, a.n)
	}
	variance := a.square/a.n - mean*mean
	allowed := tolerance*mean + 5*math.Sqrt(variance/n*(1-n/a.n))
	if off := math.Abs(got.Mean - mean); !(off <= allowed) {
		return fmt.Errorf("mean delay %.1f ns, want %.1f within %.2g", got.Mean, mean, allowed)
	}
	return nil
}
