package figlds

import (
	"fmt"
	"slices"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/lds"
)

var bySize = experiment.Experiment{
	Name: "lds-10", Title: "Error by size and delay of the flow (Fig. 10)",
	Claim: "With 70,000 cells, the median error is 1.2 % for flows of 500 to 999 packets, 0.4 % from 1,000 and 0.06 % from 10,000 on; " +
		"7,000 cells do well from 1,000 packets on; errors grow as a flow's delay departs from the mean of all (section 5.1, Fig. 10).",
	Weight: 6, Quick: 1, Measure: measureBySize,
}

// ranges are classes of flows by their mean delay over that of all packets.
var ranges = []struct {
	name string
	most float64
}{{"< 0.5", 0.5}, {"0.5–0.75", 0.75}, {"0.75–1.25", 1.25}, {"1.25–1.75", 1.75}, {"> 1.75", 1e9}}

// newSketches are the paper's three sketches, by name and by what they are.
func newSketches(run *experiment.Run) (methods []*method, configs []lds.Config) {
	for _, columns := range columnsOf {
		methods = append(methods, newMethod(fmt.Sprintf("LDS %s × 4", number(float64(columns)))))
		configs = append(configs, shape(run, columns, 1, everything(4)...))
	}
	return methods, configs
}

func measureBySize(run *experiment.Run) {
	intervals := run.Pick(3, 5)
	mean := newMethod("mean of all packets")
	sketches, configs := newSketches(run)
	byDelay := make([]*method, len(ranges)) // of the reference sketch
	for i, r := range ranges {
		byDelay[i] = newMethod("delay " + r.name)
	}
	for n := range run.Times(intervals) {
		iv := newInterval(run, n)
		observed := iv.observe(0, nil, configs...)
		mean.add(iv, same(iv.Mean), nil)
		for i, s := range experiment.Each(run, observed) {
			sketches[i].add(iv, iv.estimated(s, lds.Estimate), nil)
		}
		least := 0.0
		for i, r := range ranges {
			byDelay[i].add(iv, iv.estimated(observed[reference], lds.Estimate), func(i int) bool {
				x := iv.Flows[i].Mean / iv.Mean
				return least <= x && x < r.most
			})
			least = r.most
		}
	}
	methods := append(slices.Clone(sketches), mean)
	drawBySize(run, intervals, methods, byDelay)
	for b, value := range reported {
		c := len(classes) - len(reported) + b
		ours := sketches[reference].median(c)
		run.Claim("median error with 70,000 cells, flows of "+classes[c].Name+" packets", percent(value), percent(ours),
			experiment.Judge(ours, value, 0.25))
	}
	large, small := sketches[0].median(fromThousand), mean.median(fromThousand)
	run.Holds("median error with 7,000 cells, "+classes[fromThousand].Name+", against the mean of all packets", "significantly better",
		percent(large)+" against "+percent(small), large < small/2)
	fast, middle, slow := byDelay[0].median(fromHundred), byDelay[2].median(fromHundred), byDelay[4].median(fromHundred)
	run.Holds("errors by delay, "+classes[fromHundred].Name+": less than half the mean of all, near the mean, and above 1.75 times",
		"slightly larger at both ends", percent(fast)+", "+percent(middle)+", "+percent(slow), fast > middle && slow > middle)
	sizeTable(run, methods)
	run.Config("intervals", intervals, "sketches", configs)
	run.Note(
		"The paper's numbers are of another trace. Here a flow's delay is far from its neighbours', by a factor of 2.5 up or down as a rule; "+
			"what they add to its cell weighs the more.",
		"Errors are relative: of the same deviation in nanoseconds, a fast flow has the larger error.",
	)
}

// reported are the paper's medians for the last bins, with 70,000 cells.
var reported = []float64{0.012, 0.004, 0.0006}

func drawBySize(run *experiment.Run, intervals int, methods, byDelay []*method) {
	median := run.Draw("a", "Median relative error by size (Fig. 10, top)",
		fmt.Sprintf("Flows of %d intervals together; bars from the lowest to the highest median of an interval. Hollow: "+
			"what the paper reports of its trace.", intervals), binAxis, offAxis)
	high := run.Draw("b", "95th percentile of the relative error by size (Fig. 10, top)", "The same flows.", binAxis, offAxis)
	delays := run.Draw("c", "Median relative error by size and delay (Fig. 10, bottom)",
		"LDS 17,500 × 4, the same flows, by their mean delay over that of all packets.", binAxis, offAxis)
	for i, m := range methods {
		m.Look.Pair = i + 1
		median.Series = append(median.Series, m.byBin())
		high.Series = append(high.Series, m.ByClass(bins, 0.95))
	}
	paper := plot.Series{Name: "70,000 cells, as reported", Kind: plot.Markers, Paper: true, Pair: reference + 1}
	for b, value := range reported {
		paper.Add(float64(len(bins)-len(reported)+b), 100*value)
	}
	median.Series = append(median.Series, paper)
	for _, m := range byDelay {
		delays.Series = append(delays.Series, m.byBin())
	}
}

// sizeTable has a row for each bin.
func sizeTable(run *experiment.Run, methods []*method) {
	t := run.Table("sizes", "Relative error of flows' means: median / 95th percentile", "packets", "flows")
	for _, m := range methods {
		t.Columns = append(t.Columns, m.name)
	}
	for b := firstBin; b < len(classes); b++ {
		row := []string{classes[b].Name, number(float64(len(methods[0].Of(classes[b]))))}
		for _, m := range methods {
			row = append(row, m.cell(b))
		}
		t.Row(row)
	}
}
