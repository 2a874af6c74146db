// Package traffic makes packets of flows for tests to record at two points, together with the truth about them.
package traffic

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// A Passage is one packet seen at two points.
type Passage struct {
	Flow     hashing.Flow
	Packet   hashing.Packet
	Sent, At int64
	Lost     bool
}

// Flows returns interleaved heavy-tailed flows. Each has its own mean delay, and delays that are exponential
// above half of it.
func Flows(seed uint64, flows int) []Passage {
	rng := rand.New(rand.NewPCG(seed, 1))
	var all []Passage
	for i := range flows {
		size := int(math.Min(math.Pow(1-rng.Float64(), -1/1.1), 3000))
		mean := 100_000 + 400_000*rng.Float64()
		for range size {
			all = append(all, Passage{
				Flow:   hashing.Flow(hashing.Mix(uint64(i), seed)),
				Packet: hashing.Packet(rng.Uint64()),
				At:     int64(mean/2 + mean/2*rng.ExpFloat64()),
			})
		}
	}
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for i := range all {
		all[i].Sent = int64(i) * 1000
		all[i].At += all[i].Sent
	}
	return all
}

// A Truth holds the true values of one flow.
type Truth struct {
	Flow            hashing.Flow
	Packets         uint64
	Mean, Deviation float64
}

// Truths returns the truths of all flows with at least the given number of packets, in order of the flows.
func Truths(all []Passage, least uint64) (list []Truth) {
	moments := map[hashing.Flow]estimate.Moments{}
	for _, p := range all {
		m := moments[p.Flow]
		m.Add(float64(p.At - p.Sent))
		moments[p.Flow] = m
	}
	for _, flow := range slices.Sorted(maps.Keys(moments)) {
		if m := moments[flow]; m.N() >= least {
			list = append(list, Truth{flow, m.N(), m.Mean(), math.Sqrt(m.PopulationVariance())})
		}
	}
	return list
}
