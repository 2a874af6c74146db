package figlds

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/flowsim"
	"github.com/hoplag/hoplag/bench/perflow"
	"github.com/hoplag/hoplag/hashing"
)

const (
	probes    = 1000 // references a second of RLI
	reference = 1    // among the columns below, the one with half as many cells as flows
)

// columnsOf are the columns of the paper's three sketches of four rows.
var columnsOf = []int{1750, 17500, 175000}

var comparison = experiment.Experiment{
	Name: "lds-9", Title: "Error of flows' means, beside other methods (Fig. 9)",
	Claim: "With half as many cells as flows (17,500 × 4), the sketch is far more accurate than NetFlow's multi-point estimator at 1 " +
		"and 10 % sampling, RLI with 1,000 probes a second and the mean of all packets, for flows of 1,000 packets and more, of 100 and " +
		"more, and for all; with a tenth of that memory it still is; RLI is better than the multi-point estimator (section 5.1, Fig. 9).",
	Weight: 12, Quick: 1, Measure: measureComparison,
}

func measureComparison(run *experiment.Run) {
	intervals := run.Pick(3, 5)
	mean, rli := newMethod("mean of all packets"), newMethod("RLI, 1 kHz")
	mpe := []*method{newMethod("multi-point, 1 %"), newMethod("multi-point, 10 %")}
	sketches, configs := newSketches(run)
	for n := range run.Times(intervals) {
		iv := newInterval(run, n)
		mean.add(iv, same(iv.Mean), nil)
		rli.add(iv, iv.interpolated(probes), nil)
		for i, rate := range experiment.Each(run, []float64{0.01, 0.1}) {
			mpe[i].add(iv, iv.multiPoint(iv.netFlow(rate)), nil)
		}
		for i, s := range iv.observe(0, nil, configs...) {
			sketches[i].add(iv, iv.estimated(s), nil)
		}
	}
	others := []*method{mean, rli, mpe[0], mpe[1]}
	drawComparison(run, intervals, slices.Concat(sketches, others))
	judgeSketches(run, sketches, others)
	run.Holds("RLI is better than the multi-point estimator at 10 %: median, "+classes[fromHundred].Name, "yes",
		percent(rli.median(fromHundred))+" against "+percent(mpe[1].median(fromHundred)),
		rli.median(fromHundred) < 0.95*mpe[1].median(fromHundred))
	run.Config("intervals", intervals, "sketches", configs, "RLI probes a second", probes, "NetFlow sampling", []float64{0.01, 0.1})
	run.Note("The delays here have nothing to do with when a packet is sent, which is what the sketch is for: interpolation in time then "+
		"gives the mean of all, whoever does it. On the paper's trace, some of a flow's delay shows in its neighbours'.",
		"A reference of RLI is given the delay of a packet drawn at random. The multi-point estimator is the mean of all flows' first and "+
			"last samples while the flow lasts.")
}

func drawComparison(run *experiment.Run, intervals int, methods []*method) {
	for i, figure := range []struct {
		class int
		least float64
	}{{fromThousand, 0.01}, {fromHundred, 0.1}, {all, 1}} {
		f := run.Draw(string(rune('a'+i)), "Relative error of the mean delay, "+classes[figure.class].Name+" (Fig. 9)",
			fmt.Sprintf("Distribution over the flows of %d intervals. Errors of 0 are off the left end.", intervals), errorAxis(figure.least),
			shareAxis)
		for _, m := range methods {
			f.Add(m.cdf(figure.class))
		}
	}
	table := run.Table("methods", "Relative error of flows' means: median / 95th percentile", "method", classes[fromThousand].Name,
		classes[fromHundred].Name, classes[all].Name)
	for _, m := range methods {
		table.Row(m.name, m.cells(fromThousand, fromHundred, all))
	}
}

// judgeSketches compares the sketches with the best of the other methods.
func judgeSketches(run *experiment.Run, sketches, others []*method) {
	for i, paper := range []string{"better, for large flows most", "far better"} {
		for _, c := range []int{fromThousand, fromHundred, all} {
			best := slices.MinFunc(others, func(a, b *method) int { return cmp.Compare(a.median(c), b.median(c)) })
			s := sketches[i]
			run.Holds(fmt.Sprintf("median error of %s, against the best of the others: %s", s.name, classes[c].Name), paper,
				fmt.Sprintf("%s against %s (%s)", percent(s.median(c)), percent(best.median(c)), best.name), s.median(c) < best.median(c))
		}
	}
}

// interpolated is RLI's linear interpolation: each packet has the delay on the
// straight line between the references before and after it; there are
// perSecond references a second. A reference has the delay of a packet drawn
// at random, because it cannot be of every flow, and takes one of the paths.
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

// A record is what NetFlow keeps of a flow whose packets were sampled: the
// first and the last of them, which are the same if there is only one.
type record struct{ first, last flowsim.Packet }

// netFlow returns NetFlow's records with consistent sampling at a rate, by
// flow; nil for flows without a sample.
func (iv *interval) netFlow(rate float64) (by []*record) {
	threshold := hashing.Threshold(rate)
	by = make([]*record, len(iv.Flows))
	for i := range iv.Flows {
		for p := range iv.Flows[i].Packets() {
			switch {
			case hashing.Sampled(uint64(p.ID), threshold) == 0:
			case by[i] == nil:
				by[i] = &record{p, p}
			default:
				by[i].last = p
			}
		}
	}
	return by
}

// multiPoint is the multi-point estimator: the mean of the samples of all
// flows from the first to the last of this one. As in the paper, flows without
// a sample have the mean of all packets.
func (iv *interval) multiPoint(records []*record) answer {
	var samples perflow.Samples
	for _, r := range records {
		if r == nil {
			continue
		}
		samples = append(samples, perflow.Sample{At: r.first.Sent, Value: float64(r.first.Delay)})
		if r.last != r.first {
			samples = append(samples, perflow.Sample{At: r.last.Sent, Value: float64(r.last.Delay)})
		}
	}
	between := samples.Between()
	return func(i int) float64 {
		if r := records[i]; r != nil {
			return between(r.first.Sent, r.last.Sent)
		}
		return iv.Mean
	}
}
