package rli

import "math"

// ratios holds the ratio of what was seen to what was expected, by doublings of
// two times. Coarser cells complete cells that have little evidence. All are
// ratios of sums, so that estimates multiplied by them add up to what was seen.
type ratios struct {
	prior      float64 // if nothing was seen; 0 for unknown
	reluctance float64 // evidence with which a cell counts as much as the coarser one around it
	root       bool    // values are square roots of ratios
	cells      [octaves * octaves]cell
	values     [octaves * octaves]float64
	samples    int
	next       int // number of samples at which values is computed anew
}

// A cell is the sum of what was seen, the sum of what was expected, and the
// amount of evidence behind them.
type cell struct{ seen, expected, evidence float64 }

const (
	octaves    = 32
	ratiosSize = 32*octaves*octaves + 40

	// With a prior, no factor exceeds this.
	most = 4
	// With more evidence than this, the older fades.
	fading = 1024
)

// octave returns the octave of a time, which is not negative. Many times are
// whole numbers of nanoseconds, apart from rounding.
func octave(x float64) int {
	// The exponent of 1 is 1023.
	return min(max(int(math.Float64bits(x+1.0/1024)>>52)-1022, 0), octaves-1)
}

// cellOf returns the cell of two times.
func cellOf(since, left float64) int { return octave(since)*octaves + octave(left) }

// learn takes in what was seen and what was expected.
func (r *ratios) learn(at int, seen, expected, evidence float64) {
	c := &r.cells[at]
	if c.evidence >= fading {
		*c = cell{c.seen / 2, c.expected / 2, c.evidence / 2}
	}
	*c = cell{c.seen + seen, c.expected + expected, c.evidence + evidence}
	if r.samples++; r.samples >= r.next {
		r.next = r.samples + 1 + min(r.samples/16, fading)
		r.workOut()
	}
}

// workOut completes each cell from those around it, from coarse to fine.
func (r *ratios) workOut() {
	for i := range r.values {
		r.values[i] = r.prior
	}
	for width := octaves; width > 0; width /= 2 {
		for i := 0; i < octaves; i += width {
			for k := 0; k < octaves; k += width {
				r.complete(i, k, width)
			}
		}
	}
	for i := range r.values {
		if r.root {
			r.values[i] = math.Sqrt(r.values[i])
		}
	}
}

// complete refines the values of a square of cells by what was seen in it.
func (r *ratios) complete(i, k, width int) {
	var all cell
	for row := i; row < i+width; row++ {
		for _, c := range r.cells[row*octaves+k : row*octaves+k+width] {
			all = cell{all.seen + c.seen, all.expected + c.expected, all.evidence + c.evidence}
		}
	}
	if all.expected <= 0 || all.evidence <= 0 {
		return
	}
	value, weight := all.seen/all.expected, r.reluctance
	switch {
	case r.root:
		value = min(value, most*most)
	case r.prior > 0:
		value = min(max(value, 0), most)
	case width == octaves:
		weight = 0
	}
	value = (all.evidence*value + weight*r.values[i*octaves+k]) / (all.evidence + weight)
	for row := i; row < i+width; row++ {
		for at := row*octaves + k; at < row*octaves+k+width; at++ {
			r.values[at] = value
		}
	}
}
