package rli_test

import (
	"math"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/queue/trace"
	"github.com/hoplag/hoplag/rli"
)

// A sized source has packets of the size of their flow.
type sized struct {
	queue.Source
	size func(f hashing.Flow) uint64
}

func (s sized) Next(p *queue.Packet) bool {
	ok := s.Source.Next(p)
	p.Bytes = int32(s.size(p.Flow))
	return ok
}

// slow sends packets of 660 bytes on average at random over a link of 100 Mb/s, with a reference behind one in
// every.
func slow(t *testing.T, seed uint64, n, flows, every int, load float64, size func(f hashing.Flow) uint64) (rli.Config, []event) {
	link, c := queue.RLIConfig, config(rli.Auto)
	link.Rate, c.Rate = 1e8, 1e8
	random := trace.PoissonConfig{Load: trace.Load{Rate: 1e8, Utilisation: load}, Flows: flows, Seed: seed}
	random.Sizes[0] = trace.Size{Bytes: 660, Weight: 1}
	return c, pass(t, link, rli.InjectorConfig{Every: every}, n, sized{must(trace.NewPoisson(random)), size}, nil)
}

// TestSizesOfFlows: each flow has packets of a size of its own, and all wait alike. No packet waits for its own size,
// so intervals hold whatever that is, and also where few packets wait. The negative control is the intervals that
// hold four times in five.
func TestSizesOfFlows(t *testing.T) {
	const flows = 1000
	for _, load := range []float64{0.6, 0.05} {
		c, events := slow(t, 1, int(load*500_000), flows, 13, load, func(f hashing.Flow) uint64 { return 60 + uint64(f)%1201 })
		truth, _ := truths(events)
		outside, far := map[float64]float64{}, map[float64]float64{}
		for f, res := range receive(t, c, events).All() {
			for _, confidence := range []float64{0.8, 0.95, 0.999} {
				if in := res.MeanInterval(confidence); !in.Contains(truth[f].Mean()) {
					outside[confidence]++
				}
				if in := res.DeviationInterval(confidence); !in.Contains(math.Sqrt(truth[f].PopulationVariance())) {
					far[confidence]++
				}
			}
		}
		// Three standard errors above what independent flows have.
		most := func(p float64) float64 { return p*flows + 3*math.Sqrt(p*(1-p)*flows) }
		wrong := max(outside[0.95], far[0.95]) > most(0.05) || max(outside[0.999], far[0.999]) > most(0.001)
		if wrong || load > 0.5 && outside[0.8] <= most(0.05) {
			t.Errorf("%v flows' means and %v deviations outside, want %.0f and %.0f at most", outside, far, most(0.05), most(0.001))
		}
	}
}

// TestDenseReferences: where one packet in five has a reference, these add to the queue, and packets wait for
// them, or for part of them. Neither makes the mean of all packets wrong by more than chance. The negative
// control is off by a tenth of the time that a reference takes.
func TestDenseReferences(t *testing.T) {
	var off estimate.Moments
	for seed := range uint64(6) {
		c, events := slow(t, seed, 150_000, 20, 5, 0.6, func(hashing.Flow) uint64 { return 660 })
		_, truth := truths(events)
		off.Add(must(receive(t, c, events).Total()).Mean - truth.Mean())
	}
	const tenth = referenceBytes * 80 / 10 // ns
	most := 3 * off.StdDev() / math.Sqrt(float64(off.N()))
	if math.Abs(off.Mean()) > most || math.Abs(off.Mean()+tenth) <= most {
		t.Errorf("off by %+.0f ns, want at most %.0f, and less than %d ns", off.Mean(), most, tenth)
	}
}
