package rli

import "math"

// ratios averages the ratio of what was seen to what was expected, by
// doublings of two times. Coarser cells complete cells that have few samples.
type ratios struct {
	prior   float64 // if nothing was seen; 0 for unknown
	cells   [octaves * octaves]cell
	values  [octaves * octaves]float64
	samples int
	next    int // number of samples at which values is computed anew
}

// A cell is the sum of what was seen and the sum of what was expected.
type cell struct{ seen, expected, samples float64 }

const (
	octaves    = 32
	ratiosSize = 32*octaves*octaves + 24

	// With this many samples a cell counts as much as the coarser one around
	// it: shrinkage without a prior, reluctance with one.
	shrinkage, reluctance = 4, 16
	// With a prior, no ratio exceeds this.
	most = 4
	// With more samples than this, older ones fade.
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
func (r *ratios) learn(at int, seen, expected float64) {
	c := &r.cells[at]
	if c.samples >= fading {
		*c = cell{c.seen / 2, c.expected / 2, c.samples / 2}
	}
	*c = cell{c.seen + seen, c.expected + expected, c.samples + 1}
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
}

// complete refines the values of a square of cells by what was seen in it: by
// the average of its cells' ratios or, with a prior, by the ratio of sums.
func (r *ratios) complete(i, k, width int) {
	var all cell
	average := 0.0
	for row := i; row < i+width; row++ {
		for _, c := range r.cells[row*octaves+k : row*octaves+k+width] {
			if c.expected > 0 {
				all = cell{all.seen + c.seen, all.expected + c.expected, all.samples + c.samples}
				average += c.samples * c.seen / c.expected
			}
		}
	}
	if all.samples == 0 {
		return
	}
	weight := float64(shrinkage)
	switch {
	case r.prior > 0:
		average = all.samples * min(max(all.seen/all.expected, 0), most)
		weight = reluctance
	case width == octaves:
		weight = 0
	}
	value := (average + weight*r.values[i*octaves+k]) / (all.samples + weight)
	for row := i; row < i+width; row++ {
		for at := row*octaves + k; at < row*octaves+k+width; at++ {
			r.values[at] = value
		}
	}
}
