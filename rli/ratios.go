package rli

import (
	"math"

	"github.com/hoplag/hoplag/hashing"
)

// ratios holds ratios of what was seen to what was expected, by the mix of flows and doublings of two times; coarser
// cells complete those with little evidence. They are of sums, so that estimates times them add up to what was seen.
type ratios struct {
	prior      float64 // if nothing was seen; 0 if unknown
	reluctance float64 // evidence with which a cell counts as much as the coarser one around it
	most       float64
	root       bool   // values are square roots of ratios
	cells      []cell // of all mixes, or only one for all
	values     []float32
	samples    int
	next       int // number of samples at which values is computed anew
}

// A cell holds the sums of what was seen, of what was expected, and of the evidence for them.
type cell struct{ seen, expected, evidence float64 }

func (c *cell) learn(seen, expected, evidence float64) {
	if c.evidence >= fading {
		*c = cell{c.seen / 2, c.expected / 2, c.evidence / 2}
	}
	*c = cell{c.seen + seen, c.expected + expected, c.evidence + evidence}
}

const (
	mixes    = 4
	octaves  = 32
	square   = octaves * octaves
	cellSize = 28 // with its value

	most   = 4    // no factor exceeds this
	fading = 1024 // with more evidence, the older fades
)

// octave returns the octave of a time, not negative; many are whole nanoseconds, but for rounding.
func octave(x float64) int {
	return min(max(int(math.Float64bits(x+1.0/1024)>>52)-1022, 0), octaves-1) // the exponent of 1 is 1023
}

// newRatios returns ratios for a number of mixes, 1 or all.
func newRatios(mixes int, prior, reluctance, most float64, root bool) ratios {
	n := mixes * square
	r := ratios{prior: prior, reluctance: reluctance, most: most, root: root, cells: make([]cell, n), values: make([]float32, n)}
	r.workOut()
	return r
}

// cellOf returns the cell of a mix and two times.
func cellOf(m mix, x, y float64) int { return int(m)*square + octave(x)*octaves + octave(y) }

func (r *ratios) at(cell int) float64 { return float64(r.values[cell&(len(r.values)-1)]) }

func (r *ratios) learn(at int, seen, expected, evidence float64) {
	r.cells[at&(len(r.cells)-1)].learn(seen, expected, evidence)
	if r.samples++; r.samples >= r.next {
		r.next = r.samples + 1 + min(r.samples/16, fading)
		r.workOut()
	}
}

// workOut completes each cell from those around it, from coarse to fine.
func (r *ratios) workOut() {
	value := r.prior
	if len(r.cells) > square {
		all := r.sum(0, 0, len(r.cells)/octaves, octaves)
		value = all.refine(value, r.reluctance, r.most)
	}
	for mix := 0; mix < len(r.cells); mix += square {
		r.complete(mix/octaves, 0, octaves, value)
	}
}

func (r *ratios) sum(i, k, height, width int) (all cell) {
	for row := i; row < i+height; row++ {
		for _, c := range r.cells[row*octaves+k : row*octaves+k+width] {
			all = cell{all.seen + c.seen, all.expected + c.expected, all.evidence + c.evidence}
		}
	}
	return all
}

// complete sets a square of cells to a value refined by what was seen in it, and then in its parts.
func (r *ratios) complete(i, k, width int, value float64) {
	all := r.sum(i, k, width, width)
	value = all.refine(value, r.reluctance, r.most)
	if all.expected > 0 && width > 1 {
		half := width / 2
		for _, part := range [][2]int{{i, k}, {i, k + half}, {i + half, k}, {i + half, k + half}} {
			r.complete(part[0], part[1], half, value)
		}
		return
	}
	if r.root {
		value = math.Sqrt(value)
	}
	for row := i; row < i+width; row++ {
		for at := row*octaves + k; at < row*octaves+k+width; at++ {
			r.values[at] = float32(value)
		}
	}
}

// refine returns the ratio, drawn to what coarser cells say, if that is not 0.
func (c *cell) refine(coarser, reluctance, most float64) float64 {
	switch {
	case c.expected <= 0 || c.evidence <= 0:
		return coarser
	case coarser == 0:
		reluctance = 0
	}
	return (c.evidence*min(max(c.seen/c.expected, 0), most) + reluctance*coarser) / (c.evidence + reluctance)
}

// A mix says how flows take turns in a busy period. Where all packets ahead are of its own flow, a packet waits
// for its own sender only; where flows take turns, they met, and the queue grew.
type mix int32

// turns counts how often flows took turns in a period so far.
type turns struct {
	flow             hashing.Flow // of the latest packet
	packets, changes int32
}

func (t *turns) meet(f hashing.Flow) {
	if f != t.flow && t.packets > 0 {
		t.changes++
	}
	t.flow = f
	t.packets++
}

func (t *turns) mix() mix {
	switch {
	case t.changes == 0:
		return 0
	case t.changes*8 < t.packets:
		return 1
	case t.changes*2 < t.packets:
		return 2
	}
	return 3
}
