package colate

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// testConfig is small, and one epoch long.
var testConfig = Config{Identity: 3, Counters: 3000, PerFlow: 20, Bits: 64, CountBits: 16, DigestBits: 12, Period: MaxPeriod}

// A passage is one packet seen at two points.
type passage struct {
	flow     hashing.Flow
	packet   hashing.Packet
	sent, at int64
	lost     bool
}

// traffic is heavy-tailed flows, interleaved, each with a mean delay of its own and
// delays that are exponential above half of that.
func traffic(seed uint64, flows int) []passage {
	rng := rand.New(rand.NewPCG(seed, 1))
	var all []passage
	for i := range flows {
		size := int(math.Min(math.Pow(1-rng.Float64(), -1/1.1), 3000))
		mean := 100_000 + 400_000*rng.Float64()
		for range size {
			all = append(all, passage{
				flow:   hashing.Flow(hashing.Mix(uint64(i), seed)),
				packet: hashing.Packet(rng.Uint64()),
				at:     int64(mean/2 + mean/2*rng.ExpFloat64()),
			})
		}
	}
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for i := range all {
		all[i].sent = int64(i) * 1000
		all[i].at += all[i].sent
	}
	return all
}

// truth is what traffic did to one flow.
type truth struct {
	flow            hashing.Flow
	packets         uint64
	mean, deviation float64
}

// truths are those of all flows of at least so many packets, in order of the flows.
func truths(all []passage, least uint64) []truth {
	moments := map[hashing.Flow]*estimate.Moments{}
	for _, p := range all {
		if moments[p.flow] == nil {
			moments[p.flow] = new(estimate.Moments)
		}
		moments[p.flow].Add(float64(p.at - p.sent))
	}
	var list []truth
	for flow, m := range moments {
		if m.N() >= least {
			list = append(list, truth{flow, m.N(), m.Mean(), math.Sqrt(m.PopulationVariance())})
		}
	}
	slices.SortFunc(list, func(a, b truth) int {
		if a.flow < b.flow {
			return -1
		}
		return 1
	})
	return list
}

// recorded is what both points hold of some traffic.
func recorded(t testing.TB, c Config, all []passage) (up, down *Recorder) {
	t.Helper()
	up, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	down, _ = New(c)
	for _, p := range all {
		up.Update(p.flow, p.packet, p.sent)
		down.Update(p.flow, p.packet, p.at)
	}
	return up, down
}

func median(x []float64) float64 {
	slices.Sort(x)
	return x[len(x)/2]
}
