package figcolate

import (
	"fmt"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/flowsim"
	"github.com/hoplag/hoplag/bench/perflow"
)

var jointDecoding = experiment.Experiment{
	Name: "ours-colate-joint", Title: "COLATE: all flows decoded together, from the same counters",
	Claim: "Ours: given the interval's flow records, which COLATE has the number of packets from anyway, estimating all flows from all " +
		"counters at once has at most a fifth of the median error of Theorem 2 for flows of 1,000 packets and more.",
	Weight: 60, Quick: 4, Measure: measureJoint,
}

// ownDelays is traffic whose flows have their own delays, independent of their
// neighbours in time.
func ownDelays(run *experiment.Run) (*traffic, flowsim.Config) {
	c := flowsim.Config{Flows: 300_000, Packets: fullPackets, Shape: 1, Seconds: 60, Seed: run.SeedOf("own delays")}
	if run.Quick {
		c = c.Scaled(float64(quickPackets) / fullPackets)
	}
	simulated := flowsim.New(c)
	t := &traffic{name: "flows with delays of their own", flows: make([]flow, len(simulated.Flows))}
	for i := range simulated.Flows {
		f := &simulated.Flows[i]
		t.flows[i].key = f.Key
		for p := range f.Packets() {
			t.add(passage{uint32(i), p.ID, p.Sent, p.Sent + p.Delay})
		}
	}
	return t, c
}

func measureJoint(run *experiment.Run) {
	most, seed := run.Pick(300, 2000), run.SeedOf("joint")
	t, config := ownDelays(run)
	sizes := []float64{45_500, 455_000}
	configure(run, "traffic", config, "counters in a full run", sizes, "seed", seed)
	table := run.Table("", "Median error of means", "counters", "bits a packet", "method", "1", "2–9", "10–99", "100–999", "≥ 1,000")
	chosen := t.someOfEach(most)
	mean := t.errors("mean of all packets", chosen, func(_, _ int) float64 { return t.delays.Mean() })
	for _, full := range experiment.Each(run, sizes) {
		n := scaled(run, full)
		r := t.race(run, n, seed, chosen)
		r.single.Name = "counted"
		decoded := r.counting.Joint(run, t.everyRecord())
		for _, e := range []*perflow.Errors{r.theorem, r.joint, r.single,
			t.errors("joint, counted", chosen, func(_, i int) float64 { return decoded.Mean[i] }), mean} {
			table.Row(n, number(bitsPerPacket(n, counterBits, len(t.packets))), e.Name, medians(e))
		}
		theorem, joint := r.theorem.Median(large), r.joint.Median(large)
		where := fmt.Sprintf("%d counters: median error of flows of ≥ 1,000 packets, ", n)
		run.Keeps(where+"Theorem 2 and joint (to be at most a fifth)", percent(theorem), percent(joint), joint/theorem <= 0.2)
		run.Beats(where+"Theorem 2 and Estimate with counts in the same bits", r.single.Median(large), theorem, 0.1)
	}
	run.Notef("For small flows no estimator finds more in the counters than the mean of all packets would say; joint decoding falls back "+
		"on it, Theorem 2 does not. All packets: mean %s µs, deviation %s µs. A quick run has a tenth of the flows, packets and counters.",
		number(t.delays.Mean()/1e3), number(t.delays.StdDev()/1e3))
}
