package figcolate

import (
	"fmt"
	"math"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/colate/paper"
)

var parameters = experiment.Experiment{
	Name: "colate-3", Title: "Storage and threshold against memory (Figs. 3 and 4)",
	Claim: "Solving eqs. (13), (14), (15) and (22) for the parameters, more memory at a point needs less storage, as the threshold T " +
		"grows faster than the memory (section 5.2, Figs. 3 and 4); 1 MB, α = 0.95, β = 0.05 give n = 455,334, b = 19, m = 20, T = " +
		"8×10¹⁰ (section 6.2.1).",
	Weight: 0.2, Quick: 0.1, Measure: measureParameters,
}

// example are requirements that have the paper's example for their solution;
// t_min and t_max are those that do so, as the paper does not give its own.
var example = paper.Requirements{
	MemoryBits: megabyte, Reliability: 0.95, Error: 0.05, DelayPart: 1,
	Most: 3_514_677, Least: 85_003.2604580,
}

// exampleStamp is the largest mean time stamp, in units, with which the
// example stores 0.1 bit a packet.
const exampleStamp = 0.1 * 8e10 / megabyte

func measureParameters(run *experiment.Run) {
	p := experiment.Try(example.Solve())
	judge := func(what string, paper, ours, slack float64) {
		run.Holds("the paper's example, "+what, number(paper), number(ours), math.Abs(ours/paper-1) <= slack)
	}
	judge("n", 455_334, p.Counters, 0.01)
	judge("b, rounded up", 19, math.Ceil(p.Bits), 0)
	judge("m", 20, p.PerFlow, 0.05)
	judge("T", 8e10, p.Threshold, 0.05)
	run.Config(example)
	axis := plot.LogAxis("memory at a point (MB)")
	storage := run.Draw("3", "Permanent storage and memory",
		fmt.Sprintf("Solutions of the paper's four equations, for a mean time stamp of %.0f units, the largest with which its "+
			"example takes 0.1 bit, and for t_min as it must be in that example or off by so much.", exampleStamp),
		axis, plot.Axis{Label: "bits a packet", Scale: plot.Log, Min: 0.01, Max: 1})
	threshold := run.Draw("4", "Threshold and memory", "The same solutions.", axis, plot.LogAxis("T (time units)"))
	table := run.Table("", "Solutions by memory", "t_min, of the example's", "memory (MB)", "n", "b", "m", "T", "bits a packet")
	for i, t := range []struct {
		name  string
		least float64
	}{{"t_min 0.2 % less", 0.998}, {"t_min of the example", 1}, {"t_min 0.05 % more", 1.0005}} {
		bits, most := plot.Series{Name: t.name}, plot.Series{Name: t.name}
		for mb := 0.25; mb <= 128; mb *= 2 {
			r := example
			r.MemoryBits, r.Least = mb*megabyte, r.Least*t.least
			p := experiment.Try(r.Solve())
			bits.Add(mb, p.BitsPerPacket(exampleStamp))
			most.Add(mb, p.Threshold)
			table.Row(t.least, number(mb), number(p.Counters), number(p.Bits), number(p.PerFlow), number(p.Threshold),
				number(p.BitsPerPacket(exampleStamp)))
		}
		storage.Series, threshold.Series = append(storage.Series, bits), append(threshold.Series, most)
		if i == 1 {
			first, last := bits.Y[0], bits.Y[len(bits.Y)-1]
			grown := most.Y[len(most.Y)-1] / most.Y[0]
			memory := most.X[len(most.X)-1] / most.X[0]
			run.Holds("storage of a packet with 0.25 MB and with 128 MB", "less with more memory", fmt.Sprintf("%.3f and %.3f bits", first, last),
				last < 0.9*first)
			run.Holds("growth of T, of that of the memory", "more than 1", number(grown/memory), grown > 1.1*memory)
		}
	}
	run.Note(
		"By eqs. (13) and (14) a packet takes b·2^(1−b) times its mean time stamp: the width of a counter decides, and the memory does "+
			"not occur. By the other two the width hardly depends on the memory either. What moves it is t_min, of which a thousandth changes "+
			"everything: by eqs. (14) and (15) m·T/n is nearly t_max whatever the memory, which leaves eq. (22) to fix t_min rather than the "+
			"parameters. The paper's Figs. 3 and 4 must be of something else that grows with the memory.",
		"Eq. (22) is taken with (n−m)² where the paper prints n−m. The example holds only with a part of the delays in the time stamps "+
			"(eq. 12) of 1, that is, for delays as large as the time stamps themselves: see colate-6 for what the equations say about real ones.",
	)
}
