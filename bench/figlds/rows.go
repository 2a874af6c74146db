package figlds

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/perflow"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/lds"
	"github.com/hoplag/hoplag/lds/paper"
)

var byRows = experiment.Experiment{
	Name: "lds-rows", Title: "How many rows 70,000 cells should be divided into",
	Claim: "With half as many cells as flows, a flow has only small collisions, of 50 packets or fewer, in some row with a probability " +
		"of 0.91 in one row and of 0.985 in four, which is the best number (section 3.1).",
	Weight: 45, Quick: 4, Measure: measureByRows,
}

const (
	cells = 70_000
	small = 50 // packets of a small collision, x in section 3.1
)

var rowsOf = []int{1, 2, 3, 4, 5, 6, 8}

// A division is the result of one number of rows.
type division struct {
	rows   int
	read   *method
	spared perflow.Coverage // large flows with a small collision in some row
}

func measureByRows(run *experiment.Run) {
	intervals := run.Pick(2, 3)
	var configs []lds.Config
	var of []*division
	for _, rows := range rowsOf {
		configs = append(configs, shape(run, cells/rows, 1, everything(rows)...))
		of = append(of, &division{rows: rows, read: newMethod("")})
	}
	var large, flows int
	for n := range run.Times(intervals) {
		iv := newInterval(run, n)
		observed := iv.observe(0, nil, configs...)
		flows += len(iv.Flows)
		for i := range iv.Flows {
			if iv.Flows[i].Size <= small {
				continue
			}
			large++
			for r, s := range observed {
				of[r].spared.Count(s.up.Packets(iv.keys[i])-uint64(iv.Flows[i].Size) <= small)
			}
		}
		for r, s := range experiment.Each(run, observed) {
			of[r].read.add(iv, iv.estimated(s), nil)
		}
	}
	perCell := float64(flows) / float64(intervals) / float64(configs[0].Columns)
	load := perCell * float64(large) / float64(flows)
	drawRows(run, of, intervals, load)
	judgeRows(run, of)
	run.Config("intervals", intervals, "sketches", configs, "small", small, "large flows a cell", load)
	run.Note("The paper's model blames a collision on one large flow. With few cells a row there are many flows to a cell, and their small " +
		"ones add up: 8 flows to a cell with 4 rows bring more than 50 packets together far more often than one of them does. lds.Plan adds " +
		"them up.")
}

func drawRows(run *experiment.Run, of []*division, intervals int, load float64) {
	axis := plot.Axis{Label: "rows", Min: 1, Max: 8}
	collisions := []plot.Series{{Name: "the paper's model", Paper: true}, {Name: "measured"}}
	table := run.Table("rows", "70,000 cells in rows: median / 95th percentile of the relative error", "rows", "Fig. 6, ≥ 100 packets",
		"≥ 1,000 packets", "all flows", "small collisions")
	for _, d := range of {
		for i, share := range []float64{paper.SmallCollisions(load, d.rows, 1), d.spared.Share()} {
			collisions[i].Add(float64(d.rows), 1-share)
		}
		table.Row(d.rows, d.read.cells(fromHundred, fromThousand, all), fmt.Sprintf("%.3f", d.spared.Share()))
	}
	run.Figures(plot.Figure{
		Name: "a", Title: "Flows of more than 50 packets that share each of their cells with more than 50",
		Caption: fmt.Sprintf("Of %d intervals, and by the paper's model, 1 − Q, with the share of large flows that the traffic has.",
			intervals),
		X: axis, Y: plot.LogAxis("share of large flows"), Series: collisions,
	})
}

func judgeRows(run *experiment.Run, of []*division) {
	one, four := of[0], of[3]
	run.Holds("large flows with a small collision in their row, 1 row", "0.91", fmt.Sprintf("%.3f", one.spared.Share()),
		one.spared.Share() > 0.89)
	run.Holds("in some of 4 rows", "0.985", fmt.Sprintf("%.3f", four.spared.Share()), four.spared.Share() > 0.975)
	most := slices.MaxFunc(of, func(a, b *division) int { return cmp.Compare(a.spared.Share(), b.spared.Share()) })
	run.Holds("number of rows with the most such flows", "4", fmt.Sprint(most.rows), most.rows == 4)
}
