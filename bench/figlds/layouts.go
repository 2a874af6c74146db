package figlds

import (
	"fmt"
	"math"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/flowsim"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
)

var layouts = experiment.Experiment{
	Name: "ours-lds-layouts", Title: "Spreads that differ by row, nested offsets, and one offset for all rows",
	Claim: "Ours: of 70,000 cells in four rows, the default, whose rows sample, bears loss as well as rows of different spreads do, " +
		"which a sketch could have instead.",
	Weight: 90, Quick: 8, Measure: measureLayouts,
}

// A layout is a sketch of four rows that package lds does not have: each row
// with a spread of its own, and a packet's offset along a flow's cells by a hash
// for each row, or by one hash for all.
type layout struct {
	name    string
	spreads [4]int
	rates   [4]float64
	one     bool // offset for all rows; in rows of lower spread it is nested in that of a higher one
}

var layoutsTried = []layout{
	{"k = 1, rows sample 1, 1, 10, 1 % (default)", [4]int{1, 1, 1, 1}, [4]float64{1, 1, 0.1, 0.01}, false},
	{"k = 1, 1, 16, 16", [4]int{1, 1, 16, 16}, [4]float64{1, 1, 1, 1}, false},
	{"k = 1, 1, 16, 16, nested", [4]int{1, 1, 16, 16}, [4]float64{1, 1, 1, 1}, true},
	{"k = 1, 1, 4, 16, nested", [4]int{1, 1, 4, 16}, [4]float64{1, 1, 1, 1}, true},
	{"k = 16, one offset", [4]int{16, 16, 16, 16}, [4]float64{1, 1, 1, 1}, true},
	{"k = 16", [4]int{16, 16, 16, 16}, [4]float64{1, 1, 1, 1}, false},
	{"k = 1, 1, 1, 16", [4]int{1, 1, 1, 16}, [4]float64{1, 1, 1, 1}, false},
	{"k = 1, 1, 4, 4, rows sample 1, 1, 1, 10 %", [4]int{1, 1, 4, 4}, [4]float64{1, 1, 1, 0.1}, false},
}

// A grid is the cells of a layout at both points.
type grid struct {
	layout
	columns        int
	sum            []float64
	sent, received []uint32
	digest         []uint64 // sent less received
}

func newGrid(l layout, columns int) *grid {
	n := 4 * columns
	return &grid{l, columns, make([]float64, n), make([]uint32, n), make([]uint32, n), make([]uint64, n)}
}

// at is a cell of flow f in row r.
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

// read answers by the cell that may hold the fewest packets of others, by an
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

// decode is joint decoding. A row of a lower spread than the highest has each of
// its cells several times.
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
	columns := 17500
	if run.Quick {
		columns = int(part * float64(columns))
	}
	iv := newInterval(run, 0)
	for _, loss := range experiment.Each(run, chosenLoss) {
		table := run.Table("loss-"+fmt.Sprint(loss), fmt.Sprintf("70,000 cells at a loss of %s: median / 95th percentile", percent(loss)),
			"rows", "read: answers, ≥ 100 packets", "errors", "≥ 1,000: answers", "errors", "decoded, ≥ 100", "≥ 1,000")
		var default100, best100 float64
		for k, l := range experiment.Each(run, layoutsTried) {
			g := newGrid(l, columns)
			for i := range iv.Flows {
				for p := range iv.Flows[i].Packets() {
					g.pass(iv.keys[i], p, !iv.loses(p, loss))
				}
			}
			r := newReading(l.name)
			r.read.add(iv, func(i int) float64 { return g.read(iv.keys[i]) }, nil)
			r.decoded.add(iv, g.decode(run, iv), nil)
			table.Row(l.name, r.cells())
			if k == 0 {
				default100, best100 = r.decoded.median(fromHundred), math.Inf(1)
			} else {
				best100 = min(best100, r.decoded.median(fromHundred))
			}
		}
		run.Beats(fmt.Sprintf("%s loss: median of joint decoding, %s, the best of the others and the default", percent(loss),
			classes[fromHundred].Name), default100, best100, 0.05)
	}
	run.Config("layouts", layoutsTried, "losses", chosenLoss, "columns", columns)
	run.Note("A flow without an answer counts as an error of 100 %. Package lds has one spread for all rows, with offsets of their own.")
}
