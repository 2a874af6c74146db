package figlds

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/perflow"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lds"
)

const (
	probes    = 1000 // references a second of RLI
	reference = 1    // among the columns below, the one with half as many cells as flows
)

// columnsOf are the columns of the paper's three sketches of four rows.
var columnsOf = []int{1750, 17500, 175000}

// ranges are classes of flows by their mean delay over that of all packets.
var ranges = []struct {
	name string
	most float64
}{{"< 0.5", 0.5}, {"0.5–0.75", 0.75}, {"0.75–1.25", 1.25}, {"1.25–1.75", 1.75}, {"> 1.75", 1e9}}

// reported are the paper's medians for the last bins of sizes, with 70,000 cells.
var reported = []float64{0.012, 0.004, 0.0006}

// Comparison compares the sketch with other methods, as the paper does.
var Comparison = experiment.Experiment{
	Name: "lds-9", Title: "Error of flows' means, beside other methods, by size and by delay (Figs. 9 and 10)",
	Claim: "With half as many cells as flows (17,500 × 4), the sketch is far more accurate than NetFlow's multi-point estimator at 1 " +
		"and 10 % sampling, RLI with 1,000 probes a second and the mean of all packets, for flows of 1,000 packets and more, of 100 and " +
		"more, and for all; with a tenth of that memory it still is; RLI is better than the multi-point estimator (section 5.1, Fig. 9). " +
		"With 70,000 cells, the median error is 1.2 % for flows of 500 to 999 packets, 0.4 % from 1,000 and 0.06 % from 10,000 on; 7,000 " +
		"cells do well from 1,000 packets on; errors grow as a flow's delay departs from the mean of all (Fig. 10).",
	Weight: 300, Quick: 1.5, Measure: measureComparison,
}

// A survey holds the errors of all methods, and those of the reference sketch by flows' delays.
type survey struct {
	mean, rli        *method
	multiPoint       [2]*method // sampling 1 and 10 %
	sketches, others []*method
	byDelay          []*method
}

func measureComparison(run *experiment.Run) {
	intervals := run.Pick(1, 5)
	s := &survey{mean: newMethod("mean of all packets"), rli: newMethod("RLI, 1 kHz"),
		multiPoint: [2]*method{newMethod("multi-point, 1 %"), newMethod("multi-point, 10 %")}}
	s.others = []*method{s.mean, s.rli, s.multiPoint[0], s.multiPoint[1]}
	var configs []lds.Config
	for _, columns := range columnsOf {
		s.sketches = append(s.sketches, newMethod(fmt.Sprintf("LDS %s × 4", number(float64(columns)))))
		configs = append(configs, shape(run, columns))
	}
	for _, r := range ranges {
		s.byDelay = append(s.byDelay, newMethod("delay "+r.name))
	}
	for n := range intervals {
		s.add(newInterval(run, n), configs)
	}
	s.tabulate(run)
	s.judge(run)
	run.Note("The delays here have nothing to do with when a packet is sent, which is what the sketch is for: interpolation in time then "+
		"gives the mean of all, whoever does it. On the paper's trace, some of a flow's delay shows in its neighbours'. Here it is far from "+
		"its neighbours', by a factor of 2.5 up or down as a rule; what they add to its cell weighs the more.",
		"A reference of RLI is given the delay of a packet drawn at random. The multi-point estimator is the mean of all flows' first and "+
			"last samples while the flow lasts.",
		"Errors are relative: of the same deviation in nanoseconds, a fast flow has the larger error.")
}

// add asks all methods about an interval.
func (s *survey) add(iv *interval, configs []lds.Config) {
	s.mean.add(iv, same(iv.Mean), nil)
	s.rli.add(iv, iv.interpolated(probes), nil)
	for i, rate := range []float64{0.01, 0.1} {
		s.multiPoint[i].add(iv, iv.multiPoint(rate), nil)
	}
	observed := iv.observe(0, configs...)
	for i, p := range observed {
		s.sketches[i].add(iv, iv.estimated(p), nil)
	}
	least := 0.0
	for i, r := range ranges {
		s.byDelay[i].add(iv, iv.estimated(observed[reference]), func(i int) bool {
			x := iv.Flows[i].Mean / iv.Mean
			return least <= x && x < r.most
		})
		least = r.most
	}
}

// tabulate shows all methods, and the reference sketch by flows' delays.
func (s *survey) tabulate(run *experiment.Run) {
	t := run.Table("Relative error of flows' means: median / 95th percentile; by mean delay, over that of all packets, of "+
		s.sketches[reference].Name, "packets", "flows")
	methods := slices.Concat(s.sketches, s.others, s.byDelay)
	for _, m := range methods {
		t.Columns = append(t.Columns, m.Name)
	}
	for c, class := range classes {
		row := []string{class.Name, number(float64(len(s.mean.Of(class))))}
		for _, m := range methods {
			row = append(row, m.cell(c))
		}
		t.Row(row)
	}
}

// judge compares the sketches with the best of the other methods, and with
// what the paper reports of sizes and delays.
func (s *survey) judge(run *experiment.Run) {
	for i, paper := range []string{"better, for large flows most", "far better (twice, say)"} {
		for _, c := range []int{fromThousand, fromHundred, all} {
			best := slices.MinFunc(s.others, func(a, b *method) int { return cmp.Compare(a.median(c), b.median(c)) })
			m := s.sketches[i]
			run.Holds(fmt.Sprintf("median error of %s, against the best of the others: %s", m.Name, classes[c].Name), paper,
				fmt.Sprintf("%s against %s (%s)", percent(m.median(c)), percent(best.median(c)), best.Name), float64(i+1)*m.median(c) < best.median(c))
		}
	}
	rli, netFlow := s.rli.median(fromHundred), s.multiPoint[1].median(fromHundred)
	run.Holds("RLI is better than the multi-point estimator at 10 %: median, "+classes[fromHundred].Name, "yes",
		percent(rli)+" against "+percent(netFlow), rli < netFlow)
	for b, value := range reported {
		c := len(classes) - len(reported) + b
		ours := s.sketches[reference].median(c)
		run.Within("median error with 70,000 cells, flows of "+classes[c].Name+" packets", "at most "+percent(value), ours, value, 0)
	}
	large, small := s.sketches[0].median(fromThousand), s.mean.median(fromThousand)
	run.Holds("median error with 7,000 cells, "+classes[fromThousand].Name+", against the mean of all packets", "significantly better",
		percent(large)+" against "+percent(small), large < small/2)
	fast, middle, slow := s.byDelay[0].median(fromHundred), s.byDelay[2].median(fromHundred), s.byDelay[4].median(fromHundred)
	run.Holds("errors by delay, "+classes[fromHundred].Name+": less than half the mean of all, near the mean, and above 1.75 times",
		"slightly larger at both ends (by up to a half, say)", percent(fast)+", "+percent(middle)+", "+percent(slow),
		min(fast, slow) > middle && max(fast, slow) <= 1.5*middle)
}

// interpolated is RLI's linear interpolation: each packet has the delay on the straight line between the
// references before and after it; there are perSecond references a second. A reference has the delay of a
// packet drawn at random, because it cannot be of every flow, and takes one of the paths.
func (iv *interval) interpolated(perSecond float64) answer {
	n := int(iv.Config.Seconds*perSecond) + 2
	random := rand.New(rand.NewPCG(iv.seed, 1))
	references := make([]float64, 0, n)
	seen := 0
	for i := range iv.Flows {
		for p := range iv.Flows[i].Packets() {
			if seen++; len(references) < n {
				references = append(references, float64(p.Delay))
			} else if k := random.IntN(seen); k < n {
				references[k] = float64(p.Delay)
			}
		}
	}
	// With fewer packets than references, some are used again.
	for i := 0; len(references) < n; i++ {
		references = append(references, references[i])
	}
	random.Shuffle(n, func(i, j int) { references[i], references[j] = references[j], references[i] })
	return func(i int) float64 {
		f := &iv.Flows[i]
		var sum float64
		for p := range f.Packets() {
			x := float64(p.Sent) / 1e9 * perSecond
			k := int(x)
			sum += references[k] + (references[k+1]-references[k])*(x-float64(k))
		}
		return sum / float64(f.Size)
	}
}

// multiPoint is the multi-point estimator on what NetFlow keeps of flows whose packets were sampled
// consistently at a rate, the first and the last sample of each: the mean of these over all flows, from this
// flow's first to its last. As in the paper, flows without a sample have the mean of all packets.
func (iv *interval) multiPoint(rate float64) answer {
	threshold := hashing.Threshold(rate)
	ends := make([][]perflow.Sample, len(iv.Flows))
	var samples perflow.Samples
	for i := range iv.Flows {
		for p := range iv.Flows[i].Packets() {
			if hashing.Sampled(uint64(p.ID), threshold) == 1 {
				ends[i] = append(ends[i][:min(len(ends[i]), 1)], perflow.Sample{At: p.Sent, Value: float64(p.Delay)})
			}
		}
		samples = append(samples, ends[i]...)
	}
	between := samples.Between()
	return func(i int) float64 {
		if r := ends[i]; len(r) > 0 {
			return between(r[0].At, r[len(r)-1].At)
		}
		return iv.Mean
	}
}
