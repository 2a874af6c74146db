package joint

import (
	"math"
	"math/bits"
	"slices"
)

// A weighted is a Problem with the weights of its entries: the part of a flow's packets expected in a cell.
type weighted struct {
	*Problem
	width   int       // number of cells of a flow
	uniform float64   // the weight of all entries, if part is nil
	part    []float32 // by entry
	class   []uint8   // by flow: of size
	slack   float64
}

// slack is noise beyond the model, as a part of packets' variance: clocks tick and hashes are not perfect.
const (
	slack      = 0.01
	slackExact = 1e-6 // where there are fewer flows than cells, which determine them, if that is solved in time
	slackMore  = 128  // times as much, up to slack, if it is not
)

// weigh returns p with its weights, and variances.
func weigh(given *Problem) *weighted {
	of := *given
	p := &of
	if !slices.ContainsFunc(p.Doubt, func(d float64) bool { return d > 0 }) {
		p.Doubt = nil
	}
	if p.Variance == nil {
		p.Variance = make([]float64, len(p.Sum))
	}
	q := &weighted{Problem: p, width: p.Rows * p.CellsPerRow, uniform: 1 / float64(p.CellsPerRow)}
	q.class = make([]uint8, len(p.Packets))
	for f, w := range p.Packets {
		q.class[f] = uint8(min(bits.Len64(uint64(min(max(w, 1), math.MaxInt64)))-1, sizeCount-1))
	}
	q.slack = slack
	if p.CellsPerRow == 1 && p.Doubt == nil && p.Count != nil && len(p.Packets) < p.exactCells() {
		q.slack = slackExact
	}
	if !slices.ContainsFunc(p.Rates, func(rate float64) bool { return rate != 1 }) {
		return q
	}
	q.part = make([]float32, len(p.Cells))
	for i := range q.part {
		q.part[i] = float32(q.uniform * p.Rates[i%q.width/p.CellsPerRow])
	}
	return q
}

// exactCells returns the number of cells that hold all packets of their flows, each of which is in one cell of a row.
func (p *Problem) exactCells() (n int) {
	seen := make([]bool, len(p.Sum))
	for i, c := range p.Cells {
		if !seen[c] && p.usable(int(c)) && (p.Rates == nil || p.Rates[i%p.Rows] == 1) {
			seen[c] = true
			n++
		}
	}
	return n
}

// of returns the weight of an entry of Cells.
func (p *weighted) of(i int) float64 {
	if p.part == nil {
		return p.uniform
	}
	return float64(p.part[i])
}

// run returns the cells of flow f.
func (p *weighted) run(f int) []uint32 { return p.Cells[f*p.width : (f+1)*p.width] }

// scatter adds to each cell the weights of the flows in it, times x of each flow, or times 1 if x is nil.
func (p *weighted) scatter(u, x []float64) {
	for f, w := range p.Packets {
		if x != nil {
			w *= x[f]
		}
		if p.part == nil {
			w *= p.uniform
			run := p.run(f)
			for ; len(run) >= 4; run = run[4:] {
				u[run[0]] += w
				u[run[1]] += w
				u[run[2]] += w
				u[run[3]] += w
			}
			for _, c := range run {
				u[c] += w
			}
			continue
		}
		part := p.part[f*p.width:]
		for i, c := range p.run(f) {
			u[c] += w * float64(part[i])
		}
	}
}

// gather returns the weighted sum of the values in flow f's cells.
func (p *weighted) gather(f int, of []float64) (total float64) {
	if p.part == nil {
		run := p.run(f)
		for ; len(run) >= 4; run = run[4:] {
			total = total + of[run[0]] + of[run[1]] + of[run[2]] + of[run[3]]
		}
		for _, c := range run {
			total += of[c]
		}
		return total * p.uniform
	}
	part := p.part[f*p.width:]
	for i, c := range p.run(f) {
		total += float64(part[i]) * of[c]
	}
	return total
}
