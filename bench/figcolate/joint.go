package figcolate

import (
	"fmt"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/flowsim"
	"github.com/hoplag/hoplag/bench/plot"
)

var jointDecoding = experiment.Experiment{
	Name: "ours-colate-joint", Title: "COLATE: all flows decoded together, from the same counters",
	Claim: "Ours: given the interval's flow records, which COLATE has the number of packets from anyway, estimating all flows from all " +
		"counters at once has at most a fifth of the median error of Theorem 2 for flows of 1,000 packets and more.",
	Weight: 60, Quick: 4, Measure: measureJoint,
}

// ownDelays is traffic whose flows have delays of their own, which have
// nothing to do with those of their neighbours in time.
func ownDelays(run *experiment.Run) (*traffic, flowsim.Config) {
	c := flowsim.Config{Flows: 300_000, Packets: fullPackets, Shape: 1, Seconds: 60, Seed: run.SeedOf("own delays")}
	if run.Quick {
		c = c.Scaled(float64(quickPackets) / fullPackets)
	}
	simulated := experiment.Try(flowsim.New(c))
	t := &traffic{name: "flows with delays of their own", flows: make([]flow, len(simulated.Flows)), duration: c.Seconds}
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
	most := run.Pick(300, 2000)
	seed := run.SeedOf("joint")
	t, config := ownDelays(run)
	counters := []float64{45_500, 455_000}
	configure(run, "traffic", config, "counters in a full run", counters, "seed", seed)
	table := run.Table("", "Median error of means", "counters", "bits a packet", "method", "1", "2–9", "10–99", "100–999", "≥ 1,000")
	chosen := t.someOfEach(most)
	mean := &errorsOf{name: "mean of all packets"}
	for _, i := range chosen {
		mean.add(&t.flows[i], t.delays.Mean())
	}
	for c, full := range experiment.Each(run, counters) {
		n := scaled(run, full)
		plain := t.record(sums(n, seed))
		theorem, decoded := &errorsOf{name: "Theorem 2", paper: true}, &errorsOf{name: "joint"}
		all := plain.joint(run, t)
		for _, i := range chosen {
			f := &t.flows[i]
			x := plain.theorem2(f)
			theorem.add(f, x)
			decoded.add(f, all.Mean[i])
		}
		counting := t.count(counted(n, seed))
		single, countedJoint := &errorsOf{name: "counted"}, &errorsOf{name: "joint, counted"}
		all = counting.joint(run, t)
		answers := counting.estimate(t, chosen)
		for k, i := range chosen {
			single.add(&t.flows[i], answers[k].Mean)
			countedJoint.add(&t.flows[i], all.Mean[i])
		}
		f := plot.Figure{
			Name: string(rune('a' + c)), Title: fmt.Sprintf("Median error of means by size, %d counters", n),
			Caption: fmt.Sprintf("%d flows, %d packets, one epoch; counters of %d bits, counted or not.", len(t.flows), len(t.packets), counterBits),
			X:       binAxis, Y: errorAxis(0, 0),
		}
		for _, e := range []*errorsOf{theorem, decoded, single, countedJoint, mean} {
			f.Series = append(f.Series, e.byBin(e.name))
			cells := []string{fmt.Sprint(n), experiment.Number(bitsPerPacket(n, counterBits, len(t.packets))), e.name}
			for _, b := range bins {
				cells = append(cells, experiment.Percent(e.median(b)))
			}
			table.Add(cells...)
		}
		run.Figures(f)
		ratio := decoded.median(large) / theorem.median(large)
		verdict := experiment.Loss
		if ratio <= 0.2 {
			verdict = experiment.Win
		}
		where := fmt.Sprintf("%d counters: median error of flows of ≥ 1,000 packets, ", n)
		run.Claim(where+"Theorem 2 and joint (to be at most a fifth)", experiment.Percent(theorem.median(large)),
			experiment.Percent(decoded.median(large)), verdict).Headline = true
		run.Beats(where+"Theorem 2 and Estimate with counts in the same bits", single.median(large), theorem.median(large), 0.1)
	}

	run.Note("For small flows no estimator finds more in the counters than the mean of all packets would say; joint decoding falls back " +
		"on it, Theorem 2 does not. " + fmt.Sprintf("All packets: mean %s µs, deviation %s µs.", experiment.Number(t.delays.Mean()/1e3),
		experiment.Number(t.delays.StdDev()/1e3)) + " A quick run has a tenth of the flows, packets and counters.")
}
