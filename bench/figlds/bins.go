package figlds

import (
	"fmt"
	"slices"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/hashing"
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
			sketches[i].add(iv, iv.estimated(s), nil)
		}
		least := 0.0
		for i, r := range ranges {
			byDelay[i].add(iv, iv.estimated(observed[reference]), func(i int) bool {
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
	run.Note("The paper's numbers are of another trace. Here a flow's delay is far from its neighbours', by a factor of 2.5 up or down as a "+
		"rule; what they add to its cell weighs the more.",
		"Errors are relative: of the same deviation in nanoseconds, a fast flow has the larger error.")
}

// reported are the paper's medians for the last bins, with 70,000 cells.
var reported = []float64{0.012, 0.004, 0.0006}

func drawBySize(run *experiment.Run, intervals int, methods, byDelay []*method) {
	median := run.Draw("a", "Median relative error by size (Fig. 10, top)",
		fmt.Sprintf("Flows of %d intervals together; bars from the lowest to the highest median of an interval. Hollow: "+
			"what the paper reports of its trace.", intervals), binAxis, offAxis)
	delays := run.Draw("b", "Median relative error by size and delay (Fig. 10, bottom)",
		"LDS 17,500 × 4, the same flows, by their mean delay over that of all packets.", binAxis, offAxis)
	for i, m := range methods {
		m.Look.Pair = i + 1
		median.Add(m.byBin())
	}
	paper := median.Line(plot.Series{Name: "70,000 cells, as reported", Kind: plot.Markers, Paper: true, Pair: reference + 1})
	for b, value := range reported {
		paper.Add(float64(len(bins)-len(reported)+b), 100*value)
	}
	for _, m := range byDelay {
		delays.Add(m.byBin())
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

var weighted = experiment.Experiment{
	Name: "lds-12", Title: "Flows that count for more than others (Fig. 12)",
	Claim: "Of 90 % bronze, 9 % silver and 1 % gold flows, with weights such as 1, 10 and 100, those of a higher weight are measured far " +
		"better than without weights, and bronze ones hardly worse, because few flows are of the others (section 5.3, Fig. 12).",
	Weight: 11, Quick: 2, Measure: measureWeighted,
}

// customers are the classes of section 5.3, each with its number of flows in a
// hundred.
var customers = []struct {
	name string
	most uint64
}{{"bronze", 90}, {"silver", 99}, {"gold", 100}}

// weights are those of Fig. 12, and none.
var weights = [][3]uint32{{1, 1, 1}, {1, 25, 100}, {1, 10, 100}, {1, 50, 2500}}

// A weighing is the result of one size and choice of weights: bronze, silver
// and gold.
type weighing [3]*method

// weightSizes are columns of the sketches.
var weightSizes = []int{10_000, 25_000}

func measureWeighted(run *experiment.Run) {
	intervals := run.Pick(5, 5)
	found := make([][]weighing, len(weightSizes)) // by size and weights
	var configs []lds.Config
	for s, columns := range weightSizes {
		configs = append(configs, shape(run, columns, 1, everything(4)...))
		for range weights {
			found[s] = append(found[s], weighing{newMethod("bronze"), newMethod("silver"), newMethod("gold")})
		}
	}
	for n := range run.Times(intervals) {
		iv := newInterval(run, n)
		customer := make([]int, len(iv.keys))
		for i, f := range iv.keys {
			for h := uint64(hashing.Word(iv.seed, uint64(f))) % 100; h >= customers[customer[i]].most; {
				customer[i]++
			}
		}
		for w, weights := range experiment.Each(run, weights) {
			for s, observed := range iv.observe(0, func(i int) uint32 { return weights[customer[i]] }, configs...) {
				for c, m := range found[s][w] {
					m.add(iv, iv.estimated(observed), func(i int) bool { return customer[i] == c })
				}
			}
		}
	}
	tabulateWeighted(run, found)
	judgeWeighted(run, found)
	run.Config("intervals", intervals, "sketches", configs, "weights", weights)
	run.Note("Bronze is taken to be not highly penalised where its median grows by less than a quarter. Without weights all customers are " +
		"one, but for chance: of gold there are few flows of 100 packets and more.")
}

func tabulateWeighted(run *experiment.Run, found [][]weighing) {
	table := run.Table("weights", "Relative error of flows' means: median / 95th percentile", "cells", "weights", "flows", "bronze",
		"silver", "gold")
	for s, n := range weightSizes {
		cells := number(float64(4 * n))
		for w, weights := range weights {
			name := fmt.Sprintf("%d, %d, %s", weights[0], weights[1], number(float64(weights[2])))
			m := found[s][w]
			for _, c := range []int{fromHundred, all} {
				table.Row(cells, name, classes[c].Name, m[0].cell(c), m[1].cell(c), m[2].cell(c))
			}
		}
	}
}

func judgeWeighted(run *experiment.Run, found [][]weighing) {
	for s, n := range weightSizes {
		cells := number(float64(4*n)) + " cells"
		for w := 1; w < len(weights); w++ {
			for _, c := range []int{fromHundred, all} {
				bronze, silver, gold := found[s][w][0].median(c), found[s][w][1].median(c), found[s][w][2].median(c)
				run.Holds(fmt.Sprintf("%s, weights %v, %s: gold before silver before bronze, medians", cells, weights[w], classes[c].Name),
					"in this order", fmt.Sprintf("%s, %s, %s", percent(gold), percent(silver), percent(bronze)), gold < silver && silver < bronze)
			}
		}
		// The cost and benefit of the middle weights, 1, 10 and 100.
		for _, c := range []int{fromHundred, all} {
			bronze, before := found[s][2][0].median(c), found[s][0][0].median(c)
			run.Holds(fmt.Sprintf("%s, weights 1, 10 and 100: what they cost bronze, median, %s", cells, classes[c].Name), "not highly penalised",
				fmt.Sprintf("%s → %s, by a factor of %s", percent(before), percent(bronze), number(bronze/before)), bronze < 1.25*before)
			gold, before := found[s][2][2].median(c), found[s][0][2].median(c)
			run.Holds(fmt.Sprintf("%s, weights 1, 10 and 100: what they bring gold, median, %s", cells, classes[c].Name), "significantly better",
				fmt.Sprintf("%s → %s, by a factor of %s", percent(before), percent(gold), number(before/gold)), gold < before/2)
		}
	}
}
