package mplane

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// load is how a segment's delay and loss vary: each interval brings a burst of Pareto's law, or there is none
// and a twentieth of the mean is noise.
type load float64

// segmentOf returns the measurements of 64 intervals, the latest first. The last 15 may grow by 5 % each, to
// twice the mean, and 4 may lose a point more.
func segmentOf(r *rand.Rand, law load, grows, loses bool) []*value {
	const intervals, growing, usual = 64, 15, 100e3
	var all []*value
	busy := 0.0
	for i := range intervals {
		v := &value{interval: uint64(i), known: true}
		v.Segment, v.Error, v.Sent, v.Delay.N = SegmentID{Via: 1}, 0.01*usual, 6000, 6000
		v.Delay.Mean, v.Delay.StdDev = usual*(1+0.05*r.NormFloat64()), usual/2
		loss := 0.002
		if law > 0 {
			busy = 0.6*busy + 0.1*math.Pow(r.Float64(), -1/float64(law))
			v.Delay.Mean, v.Delay.StdDev = usual*(0.7+busy), usual*(0.3+busy)*(1+0.1*r.NormFloat64())
			loss += 0.01 * busy * busy
		}
		if grows && i >= intervals-growing {
			v.Delay.Mean += usual * (math.Pow(1.05, float64(i-intervals+growing+1)) - 1)
		}
		if loses && i >= intervals-4 {
			loss += 0.01
		}
		for range v.Sent {
			if r.Float64() < loss {
				v.Lost++
			}
		}
		all = append(all, v)
	}
	slices.Reverse(all)
	return all
}

// Slow growth does not hide in its own past, one per cent more loss is noticed, and bursts alone are not named,
// however heavy.
func TestGrowthLossAndBursts(t *testing.T) {
	if testing.Short() {
		t.Skip("statistics that one goroutine makes")
	}
	const runs, pathSegments = 100, 7
	s := &Station{config: StationConfig{History: 64}}
	for _, c := range []struct {
		name         string
		law          load
		grows, loses bool
		least, most  int // runs in which it is named
	}{
		{"noise", 0, false, false, 0, 0},
		{"noise grows", 0, true, false, runs, runs},
		{"noise, a point of loss", 0, false, true, runs, runs},
		{"bursts", 1.5, false, false, 0, 1},
		{"bursts grow", 1.5, true, false, 95, runs},
		{"heavy bursts", 1.1, false, false, 0, 1},
		{"heavy bursts grow", 1.1, true, false, 70, runs},
	} {
		named := 0
		for seed := range uint64(runs) {
			all := segmentOf(rand.New(rand.NewPCG(seed, 4)), c.law, c.grows, c.loses)
			slow, _ := s.slow(all, kinds*pathSegments)
			lossy := loses(all, kinds*pathSegments)
			if (!c.loses && slow.sure >= sure) || (!c.grows && lossy.sure >= sure) {
				named++
			}
		}
		t.Logf("%s: named in %d of %d runs", c.name, named, runs)
		if named < c.least || named > c.most {
			t.Errorf("%s: named in %d of %d runs, want %d to %d", c.name, named, runs, c.least, c.most)
		}
	}
}
