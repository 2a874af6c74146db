package figlds

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/flowsim"
	"github.com/hoplag/hoplag/bench/perflow"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
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
	rows int
	reading
	spared perflow.Coverage // large flows with a small collision in some row
}

func measureByRows(run *experiment.Run) {
	intervals := run.Pick(2, 3)
	var configs []lds.Config
	var of []*division
	for _, rows := range rowsOf {
		configs = append(configs, shape(run, cells/rows, 1, everything(rows)...))
		of = append(of, &division{rows: rows, reading: newReading("")})
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
			of[r].ask(run, iv, s)
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
	errors := []plot.Series{{Name: "Fig. 6, median", Paper: true, Pair: 1}, {Name: "Fig. 6, 95th percentile", Paper: true, Pair: 2},
		{Name: "joint, median", Pair: 1}, {Name: "joint, 95th percentile", Pair: 2}}
	table := run.Table("rows", "70,000 cells in rows: median / 95th percentile of the relative error", "rows", "Fig. 6, ≥ 100 packets",
		"≥ 1,000 packets", "all flows", "joint, counts known, ≥ 100 packets", "≥ 1,000 packets", "all flows", "small collisions")
	for _, d := range of {
		for i, share := range []float64{paper.SmallCollisions(load, d.rows, 1), d.spared.Share()} {
			collisions[i].Add(float64(d.rows), 1-share)
		}
		for i, off := range []float64{d.read.median(fromHundred), d.read.high(fromHundred), d.decoded.median(fromHundred),
			d.decoded.high(fromHundred)} {
			errors[i].Add(float64(d.rows), 100*off)
		}
		table.Row(d.rows, d.read.cells(fromHundred, fromThousand, all), d.decoded.cells(fromHundred, fromThousand, all),
			fmt.Sprintf("%.3f", d.spared.Share()))
	}
	run.Figures(plot.Figure{
		Name: "a", Title: "Flows of more than 50 packets that share each of their cells with more than 50",
		Caption: fmt.Sprintf("Of %d intervals, and by the paper's model, 1 − Q, with the share of large flows that the traffic has.", intervals),
		X:       axis, Y: plot.LogAxis("share of large flows"), Series: collisions,
	}, plot.Figure{
		Name: "b", Title: "Relative error, flows of 100 packets and more, by rows of 70,000 cells",
		Caption: "Median and 95th percentile of the paper's estimator (Fig. 6) and of joint decoding with known counts, from the same cells.",
		X:       axis, Y: offAxis, Series: errors,
	})
}

func judgeRows(run *experiment.Run, of []*division) {
	one, four := of[0], of[3]
	run.Holds("large flows with a small collision in their row, 1 row", "0.91", fmt.Sprintf("%.3f", one.spared.Share()),
		one.spared.Share() > 0.89)
	run.Holds("in some of 4 rows", "0.985", fmt.Sprintf("%.3f", four.spared.Share()), four.spared.Share() > 0.975)
	most := slices.MaxFunc(of, func(a, b *division) int { return cmp.Compare(a.spared.Share(), b.spared.Share()) })
	run.Holds("number of rows with the most such flows", "4", fmt.Sprint(most.rows), most.rows == 4)
	best := slices.MinFunc(of, func(a, b *division) int { return cmp.Compare(a.read.median(fromHundred), b.read.median(fromHundred)) })
	run.Holds("number of rows with the smallest median error by Fig. 6, "+classes[fromHundred].Name, "4",
		fmt.Sprintf("%d: %s, with 4: %s", best.rows, best.read.cell(fromHundred), four.read.cell(fromHundred)), best.rows == 4)
	run.Beats("joint decoding with 4 rows against Fig. 6 with its best number of rows, "+classes[fromHundred].Name,
		four.decoded.median(fromHundred), best.read.median(fromHundred), 0.05)
}

var layouts = experiment.Experiment{
	Name: "ours-lds-layouts", Title: "Spreads that differ by row, nested offsets, and one offset for all rows",
	Claim: "Ours: of 70,000 cells in four rows, no layout with spreads by row, nested offsets or one offset is better than the default, " +
		"whose rows sample, throughout: read and decoded, with loss and without; nor by much in the mean of all.",
	Weight: 60, Quick: 6, Measure: measureLayouts,
}

// A layout is a sketch of four rows that package lds does not have. Each row
// has its own spread, and a packet's offset along a flow's cells comes from a
// hash for each row, or from one hash for all.
type layout struct {
	name    string
	spreads [4]int
	rates   [4]float64
	one     bool // offset for all rows; in rows of lower spread it is nested in that of a higher one
}

// The first is the default, which the others are set beside.
var layoutsTried = []layout{
	{"k = 1, rows sample 1, 1, 10, 1 % (default)", [4]int{1, 1, 1, 1}, [4]float64{1, 1, 0.1, 0.01}, false},
	{"k = 1, 1, 2, 2, rows sample 1, 1, 10, 1 %", [4]int{1, 1, 2, 2}, [4]float64{1, 1, 0.1, 0.01}, false},
	{"k = 1, 1, 2, 4, rows sample 1, 1, 30, 3 %", [4]int{1, 1, 2, 4}, [4]float64{1, 1, 0.3, 0.03}, false},
	{"k = 1, 1, 2, 4, rows sample 1, 1, 1, 10 %", [4]int{1, 1, 2, 4}, [4]float64{1, 1, 1, 0.1}, false},
	{"k = 1, 1, 4, 4, rows sample 1, 1, 1, 10 %", [4]int{1, 1, 4, 4}, [4]float64{1, 1, 1, 0.1}, false},
	{"k = 1, 1, 16, 16", [4]int{1, 1, 16, 16}, [4]float64{1, 1, 1, 1}, false},
	{"k = 1, 1, 16, 16, nested", [4]int{1, 1, 16, 16}, [4]float64{1, 1, 1, 1}, true},
	{"k = 1, 1, 4, 16, nested", [4]int{1, 1, 4, 16}, [4]float64{1, 1, 1, 1}, true},
	{"k = 1, 1, 1, 16", [4]int{1, 1, 1, 16}, [4]float64{1, 1, 1, 1}, false},
	{"k = 16", [4]int{16, 16, 16, 16}, [4]float64{1, 1, 1, 1}, false},
	{"k = 16, one offset", [4]int{16, 16, 16, 16}, [4]float64{1, 1, 1, 1}, true},
}

// A grid holds the cells of a layout at both points.
type grid struct {
	layout
	columns        int
	sum            []float64
	sent, received []uint32
	digest         []uint64 // sent less received
}

// at returns a cell of flow f in row r.
func (g *grid) at(f hashing.Flow, r, offset int) int {
	home := int(hashing.Mix(uint64(f), uint64(r)) % uint64(g.columns))
	return r*g.columns + (home+offset)%g.columns
}

// pass adds a packet.
func (g *grid) pass(f hashing.Flow, p flowsim.Packet, arrives bool) {
	chosen := float64(hashing.Mix(uint64(p.ID), 9)>>11) / (1 << 53)
	for r, rate := range g.rates {
		if chosen >= rate {
			continue
		}
		word := uint64(r)
		if g.one {
			word = 0
		}
		part := float64(hashing.Mix(uint64(p.ID), 16+word)>>11) / (1 << 53)
		at := g.at(f, r, int(part*float64(g.spreads[r])))
		g.sent[at]++
		g.digest[at] += uint64(p.ID)
		if arrives {
			g.received[at]++
			g.digest[at] -= uint64(p.ID)
			g.sum[at] += float64(p.Delay)
		}
	}
}

func (g *grid) usable(at int) bool { return g.sent[at] == g.received[at] && g.digest[at] == 0 }

// read answers from the cell that may hold the fewest packets of others, by an
// upper bound of what it stands for, as lds.Estimate does.
func (g *grid) read(f hashing.Flow) float64 {
	best, mean := math.Inf(1), math.NaN()
	for r, rate := range g.rates {
		for offset := range g.spreads[r] {
			at := g.at(f, r, offset)
			if n := float64(g.sent[at]); n > 0 && g.usable(at) {
				part := rate / float64(g.spreads[r])
				bound := (n + (1-part)*3*(1.5+math.Sqrt(n+2.25))) / part
				if bound < best {
					best, mean = bound, g.sum[at]/n
				}
			}
		}
	}
	return mean
}

// decode is joint decoding. A row with a lower spread than the highest lists
// each of its cells several times.
func (g *grid) decode(run *experiment.Run, iv *interval) answer {
	most := 1
	for _, k := range g.spreads {
		most = max(most, k)
	}
	p := joint.Problem{
		Sum: g.sum, Count: make([]float64, len(g.sum)), Unusable: make([]bool, len(g.sum)),
		Rows: 4, CellsPerRow: most, Rates: g.rates[:], Packets: iv.packets,
	}
	for at, n := range g.sent {
		p.Count[at], p.Unusable[at] = float64(n), !g.usable(at)
	}
	for _, f := range iv.keys {
		for r, k := range g.spreads {
			for i := range most {
				p.Cells = append(p.Cells, uint32(g.at(f, r, i*k/most)))
			}
		}
	}
	result := experiment.Try(p.Solve(run.Context(), joint.Options{MeansOnly: true}))
	return usable(&result)
}

func measureLayouts(run *experiment.Run) {
	columns := run.Pick(part*17500, 17500)
	iv := newInterval(run, 0)
	readings := make([][]reading, len(chosenLoss)) // by loss and layout
	for l, loss := range experiment.Each(run, chosenLoss) {
		table := run.Table("loss-"+fmt.Sprint(loss), fmt.Sprintf("70,000 cells at a loss of %s: median / 95th percentile", percent(loss)),
			"rows", "read: answers, ≥ 100 packets", "errors", "≥ 1,000: answers", "errors", "decoded, ≥ 100", "≥ 1,000")
		for _, layout := range experiment.Each(run, layoutsTried) {
			n := 4 * columns
			g := &grid{layout, columns, make([]float64, n), make([]uint32, n), make([]uint32, n), make([]uint64, n)}
			for i := range iv.Flows {
				for p := range iv.Flows[i].Packets() {
					g.pass(iv.keys[i], p, !iv.loses(p, loss))
				}
			}
			r := newReading(layout.name)
			r.read.add(iv, func(i int) float64 { return g.read(iv.keys[i]) }, nil)
			r.decoded.add(iv, g.decode(run, iv), nil)
			table.Row(layout.name, r.cells())
			readings[l] = append(readings[l], r)
		}
	}
	judgeLayouts(run, readings)
	run.Config("layouts", layoutsTried, "losses", chosenLoss, "columns", columns)
	run.Note("A flow without an answer counts as an error of 100 %. Package lds has one spread for all rows, with offsets of their own.",
		"Spreads in the rows that sample, or in one that does not, are for joint decoding under loss, and for flows of thousands of packets; "+
			"they cost those who read cells, who need no flow records, and those who lose nothing or compare often. One offset for all rows, or "+
			"nested ones, lose to offsets of their own where rows are read and gain little where they are decoded.")
}

// judgeLayouts sets every layout beside the default, by the medians of two
// classes of flows, read and decoded, at each loss.
func judgeLayouts(run *experiment.Run, readings [][]reading) {
	const near = 0.05 // medians that differ by less are as good
	table := run.Table("beside-default", "Medians of the tables above, divided by those of the default", "rows", "geometric mean",
		"without loss", "least", "greatest", "better by 5 %", "worse by 5 %", "of")
	best, everywhere := math.Inf(1), 0
	var rival string
	for k, layout := range layoutsTried[1:] {
		var logs, lossless, better, worse float64
		least, greatest, n := math.Inf(1), 0.0, 0.0
		for l, list := range readings {
			theirs, ours := list[k+1].medians(), list[0].medians()
			for i, x := range theirs {
				factor := x / ours[i]
				least, greatest = min(least, factor), max(greatest, factor)
				logs += math.Log(factor)
				n++
				if l == 0 {
					lossless += math.Log(factor) / float64(len(theirs))
				}
				switch {
				case factor < 1-near:
					better++
				case factor > 1+near:
					worse++
				}
			}
		}
		mean := math.Exp(logs / n)
		if mean < best {
			best, rival = mean, layout.name
		}
		if worse == 0 && better > 0 {
			everywhere++
		}
		table.Row(layout.name, number(mean), number(math.Exp(lossless)), number(least), number(greatest), better, worse, n)
	}
	run.Claim("geometric mean of all medians, beside the default's: the best other layout ("+rival+")", number(best), "1",
		experiment.Judge(1, best, 0.1)).Headline = true
	run.Keeps("layouts that are better than the default somewhere and worse nowhere, up to 5 %", "ours: none", fmt.Sprint(everywhere),
		everywhere == 0)
}

// medians returns those of flows of 100 packets and more and of 1,000 and
// more, read and decoded. None counts as smaller than 0.01 %.
func (r reading) medians() (list [4]float64) {
	for i, m := range []*method{r.read, r.decoded} {
		list[2*i], list[2*i+1] = max(m.median(fromHundred), 1e-4), max(m.median(fromThousand), 1e-4)
	}
	return list
}
