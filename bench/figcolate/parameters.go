package figcolate

import (
	"context"
	"fmt"
	"math"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/colate"
)

var parameters = experiment.Experiment{
	Name:   "colate-3",
	Group:  group,
	Title:  "Storage and threshold against memory (Figs. 3 and 4)",
	Claim:  "Solving eqs. (13), (14), (15) and (22) for the parameters, more memory at a point needs less storage, as the threshold T grows faster than the memory (section 5.2, Figs. 3 and 4); 1 MB, α = 0.95, β = 0.05 give n = 455,334, b = 19, m = 20, T = 8×10¹⁰ (section 6.2.1).",
	Weight: 1, Quick: 0.1,
	Run: runParameters,
}

// example are requirements that have the paper's example for their solution;
// t_min and t_max are those that do so, as the paper does not give its own.
var example = colate.Requirements{
	MemoryBits: megabyte, Reliability: 0.95, Error: 0.05, DelayPart: 1,
	Most: 3_514_677, Least: 85_003.2604580,
}

// exampleStamp is the largest mean time stamp, in units, with which the
// example stores 0.1 bit a packet.
const exampleStamp = 0.1 * 8e10 / megabyte

func runParameters(_ context.Context, run *experiment.Run) (experiment.Result, error) {
	p, err := example.Solve()
	if err != nil {
		return experiment.Result{}, err
	}
	claim := func(what string, paper, ours, slack float64) experiment.Claim {
		return experiment.Claim{What: "the paper's example, " + what, Paper: experiment.Number(paper), Ours: experiment.Number(ours), Verdict: holds(math.Abs(ours/paper-1) <= slack)}
	}
	result := experiment.Result{
		Claims: []experiment.Claim{
			claim("n", 455_334, p.Counters, 0.01), claim("b, rounded up", 19, math.Ceil(p.Bits), 0),
			claim("m", 20, p.PerFlow, 0.05), claim("T", 8e10, p.Threshold, 0.05),
		},
		Config: example,
	}
	// With t_min and t_max as they are, m is in the equations' range for few
	// memories only: m·T/n is all that they fix. So n·b = M is solved with
	// the example's m, and the reader sees what follows for T.
	bits := plot.Series{Name: "m = 20"}
	threshold := plot.Series{Name: "m = 20"}
	table := experiment.Table{Title: "Parameters by memory, m = 20", Columns: []string{"memory (MB)", "n", "b", "T", "bits a packet", "largest flow (of t_max)"}}
	fixed := plot.Series{Name: "t_max fixed, m of its own"}
	for _, mb := range []float64{0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 128} {
		q := growing(mb)
		bits.Add(mb, q.BitsPerPacket(exampleStamp))
		threshold.Add(mb, q.Threshold)
		table.Add(experiment.Number(mb), experiment.Number(q.Counters), experiment.Number(q.Bits), experiment.Number(q.Threshold), experiment.Number(q.BitsPerPacket(exampleStamp)), experiment.Number(largest(q)/example.Most))
		r := example
		r.MemoryBits = mb * megabyte
		// The least flow that can be asked of this memory: the smallest for
		// which there is a solution.
		if s, ok := solvable(r); ok {
			fixed.Add(mb, s.Threshold)
		}
	}
	memory := plot.Axis{Label: "memory at a point (MB)", Scale: plot.Log}
	result.Figures = []plot.Figure{
		{Name: "3", Title: "Permanent storage and memory", Caption: fmt.Sprintf("For a mean time stamp of %.0f units, the largest with which the paper's example takes 0.1 bit.", exampleStamp), X: memory, Y: plot.Axis{Label: "bits a packet"}, Series: []plot.Series{bits}},
		{Name: "4", Title: "Threshold and memory", Caption: "Eq. (14), with as many counters as have the example's 20 to a flow; and where t_max stays, with the m that eq. (15) then gives.", X: memory, Y: plot.Axis{Label: "T (time units)", Scale: plot.Log}, Series: []plot.Series{threshold, fixed}},
	}
	result.Tables = []experiment.Table{table}
	small, big := growing(1).BitsPerPacket(exampleStamp), growing(128).BitsPerPacket(exampleStamp)
	result.Claims = append(result.Claims, experiment.Claim{What: "storage of a packet with 128 MB, of that with 1 MB", Paper: "less", Ours: experiment.Percent(big / small), Verdict: holds(big < small)})
	result.Notes = []string{
		"By eqs. (14) and (15) m·T/n is nearly t_max whatever the memory, so that the equations leave n, b and T to a thousandth of t_min: the figures are drawn for the b that the example has at 1 MB plus a bit for every doubling of the memory in every second doubling, n being the rest. The gain in storage is that of wider counters, and it is bought with flows as much larger in t_max.",
		"Eq. (22) is taken with (n−m)² where the paper prints n−m. The example holds only with a part of the delays in the time stamps (eq. 12) of 1, that is, for delays as large as the time stamps themselves: see colate-6 for what the equations say about real ones.",
	}
	return result, nil
}

// growing are parameters for so much memory, of which wider counters take
// their part: half a bit for every doubling.
func growing(megabytes float64) colate.Parameters {
	bits := 18.42 + math.Log2(megabytes)/2
	n := megabytes * megabyte / bits
	return colate.Parameters{Counters: n, Bits: bits, PerFlow: countersEach, Threshold: math.Exp2(bits-1) * n}
}

// largest is t_max of eq. (15).
func largest(p colate.Parameters) float64 {
	average := p.Threshold / p.Counters
	return (2*average - 1 - average) / (1/p.PerFlow - 1/p.Counters)
}

// solvable finds the least flow with a solution for some memory.
func solvable(r colate.Requirements) (colate.Parameters, bool) {
	low, high := r.Least/2, r.Least*2
	var best colate.Parameters
	found := false
	for range 60 {
		r.Least = (low + high) / 2
		p, err := r.Solve()
		if err == nil {
			best, found = p, true
			high = r.Least
			continue
		}
		low = r.Least
	}
	return best, found
}
