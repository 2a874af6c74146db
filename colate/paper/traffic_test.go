package paper

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

var paperConfig = Config{Identity: 3, Counters: 3000, PerFlow: 20, Bits: 60, TimeBits: 40, Vectors: 1}

// A passage is one packet seen at two points.
type passage struct {
	flow     hashing.Flow
	packet   hashing.Packet
	sent, at int64
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
		if up.Update(p.flow, p.packet, p.sent) != nil || down.Update(p.flow, p.packet, p.at) != nil {
			t.Fatal("an epoch ended")
		}
	}
	return up, down
}

// A query asks two points, again and again, without new memory.
type query struct {
	t                    testing.TB
	up, down             *Subvector
	upEpochs, downEpochs []*Epoch
}

func newQuery(t testing.TB, up, down *Epoch) *query {
	q := &query{t: t, upEpochs: []*Epoch{up}, downEpochs: []*Epoch{down}}
	var err error
	if q.up, err = NewSubvector(up.config); err != nil {
		t.Fatal(err)
	}
	if q.down, err = NewSubvector(down.config); err != nil {
		t.Fatal(err)
	}
	return q
}

func (q *query) gather(f hashing.Flow) (up, down *Subvector) {
	q.t.Helper()
	q.up.Reset(f)
	q.down.Reset(f)
	for _, e := range q.upEpochs {
		if err := q.up.Add(e); err != nil {
			q.t.Fatal(err)
		}
	}
	for _, e := range q.downEpochs {
		if err := q.down.Add(e); err != nil {
			q.t.Fatal(err)
		}
	}
	return q.up, q.down
}

func median(x []float64) float64 {
	slices.Sort(x)
	return x[len(x)/2]
}
