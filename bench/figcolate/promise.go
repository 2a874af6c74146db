package figcolate

import (
	"fmt"
	"math"

	"github.com/hoplag/hoplag/bench/experiment"
)

// Promise compares the errors of means with what the paper promises.
var Promise = experiment.Experiment{
	Name: "colate-6", Title: "The error of means, and what was promised",
	Claim: "The mean delay of any flow is off by at most β of itself with probability α or more, whichever of 1, 10 and 100 MB of " +
		"memory and of (α, β) = (0.90, 0.10), (0.95, 0.05), (0.99, 0.01) are asked for (section 6.2.1, Fig. 6).",
	Weight: 190, Quick: 8, Measure: measurePromise,
}

// A requirement is a pair of values that the paper promises.
type requirement struct{ reliability, err float64 }

var requirements = []requirement{{0.90, 0.10}, {0.95, 0.05}, {0.99, 0.01}}

// String returns the pair in the paper's symbols.
func (r requirement) String() string {
	return fmt.Sprintf("α = %.2f, β = %.2f", r.reliability, r.err)
}

var memories = []float64{1, 10, 100} // MB

// kept counts promises.
type kept struct{ theorem, joint, asked int }

func measurePromise(run *experiment.Run) {
	most, seed := run.Pick(300, 2000), run.SeedOf("promise")
	table := run.Table("Part of the flows of 1,000 packets and more whose mean is within β", "trace", "memory (MB)", "bits a packet",
		"required", "Theorem 2", "Estimate, counted", "joint", "median error of Theorem 2", "of joint")
	var sum kept
	for _, k := range kinds {
		t := newTraffic(run, k)
		for _, mb := range memories {
			t.keep(run, table, &sum, mb, t.race(countersIn(run, mb), seed, t.some(large, most)))
		}
	}
	run.Holds(fmt.Sprintf("promises kept of %d by Theorem 2 (%d by joint decoding), of the paper's kinds of trace", sum.asked, sum.joint),
		"all", fmt.Sprint(sum.theorem), sum.theorem == sum.asked)
	explainPromises(run)
}

// keep judges the three requirements at one memory.
func (t *traffic) keep(run *experiment.Run, table *experiment.Table, sum *kept, mb float64, all race) {
	theorem, single, joint := all.theorem, all.single, all.joint
	for _, r := range requirements {
		share := theorem.Within(large, r.err)
		sum.asked++
		if share >= r.reliability {
			sum.theorem++
		}
		if joint.Within(large, r.err) >= r.reliability {
			sum.joint++
		}
		table.Row(t.name, number(mb), number(counterBits*float64(countersIn(run, mb))/float64(len(t.packets))), r.String(), percent(share),
			percent(single.Within(large, r.err)), percent(joint.Within(large, r.err)), percent(theorem.Median(large)), percent(joint.Median(large)))
		if mb == 10 {
			run.Holds(fmt.Sprintf("%s, 10 MB, %v: flows of ≥ 1,000 packets within β by Theorem 2", t.name, r),
				"≥ "+percent(r.reliability), percent(share), share >= r.reliability)
		}
	}
	if mb == 10 {
		run.Beats(t.name+", 10 MB: median error of flows of ≥ 1,000 packets, Theorem 2 and joint decoding", joint.Median(large),
			theorem.Median(large))
	}
}

// The paper's backbone trace (Table 2), and what it should take (section 6.2).
const (
	paperBits    = 0.1 // a packet
	paperPackets = 37.3e6
	paperFlows   = 3.01e6
)

// explainPromises notes how many bits a flow has at the paper's storage, and how many it takes to name a mean:
// one of a set of means, each larger than the last by twice β, in a range of delays of a thousand to one.
func explainPromises(run *experiment.Run) {
	has := paperBits * paperPackets / paperFlows
	for _, r := range requirements {
		takes := math.Log2(math.Log(1000) / (2 * math.Log1p(r.err)))
		run.Holds(fmt.Sprintf("bits to name a flow's mean within %s where means differ by up to 1,000:1, and bits that a flow has on the "+
			"paper's backbone trace at 0.1 bit a packet (37.3 M packets, 3.01 M flows)", percent(r.err)),
			"enough", fmt.Sprintf("%.2f; %.2f", takes, has), has >= takes)
	}
	run.Note(fmt.Sprintf("What is put to the test is lenient, in four ways. “MB” is memory in counters of %d bits, %d to a flow, "+
		"in which no sum of nanoseconds overflows: three times the paper's 19, and at 1 MB already 2 bits a packet, 20 times the paper's 0.1. "+
		"Only flows of 1,000 packets and more are asked about, where the paper says any. Nothing is lost. And a promise is kept where "+
		"the share of flows is, by however little.", counterBits, countersEach),
		"The three kinds of trace are simulated after the paper's Table 2. Theirs went through a RED queue of half a second (section 6.1), "+
			"ours through that of RLI's evaluation.",
		"Both points add up the same packets, so that the noise in a counter is the delays of others, which grow with those of the flow. "+
			"Nor is it the estimator alone: at 0.1 bit a packet, a flow of the paper's backbone trace has 1.24 bits.")
}
