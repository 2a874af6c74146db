package lds

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/hoplag/hoplag/estimate"
)

// A Demand says what a sketch, a table, or both together must do.
type Demand struct {
	Flows int // number of flows in an interval (n), at least 1

	// Shape is that of the Pareto distribution of sizes, 0.1 to 10: the fraction x^−Shape of the flows has more
	// than x packets. The paper's traffic has 0.8.
	Shape float64
	// Large is the size in packets from which a flow should be measured well (x), at least 1: held by a table,
	// or in a cell of a sketch to which other flows bring no more packets.
	Large float64
	// Loss is the fraction of packets lost, 0 to 0.5. A flow is measured well only if such a cell loses no packet.
	Loss float64
	// Failure is the fraction of the large flows that may be measured badly (ε), above 0 and below 1. Zero means
	// as few as fit into Memory.
	Failure float64
	// Memory is the largest size on the wire, in bytes. Zero means as many as Failure requires.
	Memory int
	// All asks for an answer for small flows too. A table alone has none for those that it does not hold.
	All bool
	// Base supplies what is not planned of a sketch: identity, spread, widths, tolerance. The table has its
	// identity and widths.
	Base Config
}

// A Forecast is what was planned and what to expect of it.
type Forecast struct {
	Config  Config      // of the sketch; without rows there is none
	Table   TableConfig // of the table; without flows there is none
	Failure float64     // fraction of large flows measured badly
	Held    float64     // fraction of all flows in the table
	Memory  int         // bytes on the wire, of all encodings

	// Others are the choices that were not made: what a table, a sketch or both would give.
	Others []Forecast
}

const (
	mostPlannedRows = 4   // with 70,000 cells, more were no better for large flows
	someSizes       = 256 // quantiles that stand for the sizes of flows
	someBuckets     = 8   // quantiles that stand for the limits of a table's buckets
)

// Plan returns a sketch, a table, or both in one memory, half for each: the smallest for Failure, or the one
// with the fewest failures in Memory. Of equals it prefers the table, whose answers are the most accurate. The
// error wraps [estimate.ErrConfig].
//
// For a sketch it tries one to four rows and adds up what other flows bring to cells. If packets are lost, it
// also tries rows that sample.
func Plan(d Demand) (Forecast, error) {
	if err := d.validate(); err != nil {
		return Forecast{}, err
	}
	var all []Forecast
	var failed error
	least := math.Inf(1)
	for _, kind := range []struct{ table, sketch bool }{{true, false}, {true, true}, {false, true}} {
		if d.All && !kind.sketch {
			continue
		}
		if f, err := d.smallest(kind.table, kind.sketch); err == nil {
			all = append(all, f)
		} else if f.Failure < least {
			failed, least = err, f.Failure
		}
	}
	if len(all) == 0 {
		return Forecast{}, failed
	}
	slices.SortStableFunc(all, func(a, b Forecast) int {
		if d.Failure == 0 {
			return cmp.Compare(math.Round(a.Failure*1e9), math.Round(b.Failure*1e9))
		}
		return cmp.Compare(a.Memory, b.Memory)
	})
	all[0].Others = all[1:]
	return all[0], nil
}

func (d *Demand) validate() error {
	least := 0 // of Memory
	if d.Failure == 0 {
		least = 1
	}
	one := d.Base // whatever rows and columns it has
	one.Rows, one.Columns, one.Rates = 1, maxColumns, [MaxRows]float64{1}
	return cmp.Or(within("Flows", d.Flows, 1, math.MaxInt), within("Shape", d.Shape, 0.1, 10), within("Large", d.Large, 1, math.Inf(1)),
		within("Loss", d.Loss, 0, 0.5), within("Failure", d.Failure, 0, math.Nextafter(1, 0)),
		within("Memory", d.Memory, least, math.MaxInt), one.Validate())
}

// smallest returns the smallest choice of a kind that keeps Failure, or the best one in Memory.
func (d *Demand) smallest(table, sketch bool) (Forecast, error) {
	const largest = 1 << 30
	memory := cmp.Or(d.Memory, largest)
	if d.Failure > 0 {
		memory = min(memory, sort.Search(memory, func(m int) bool {
			f, ok := d.in(m, table, sketch)
			return ok && f.Failure <= d.Failure
		}))
	}
	f, ok := d.in(memory, table, sketch)
	switch {
	case !ok:
		return f, estimate.Invalid("lds", "Memory", d.Memory, "more: not one bucket of flows, or row of cells that has intervals, fits")
	case d.Failure > 0 && f.Failure > d.Failure:
		return f, estimate.Invalid("lds", "Failure", d.Failure, fmt.Sprintf("%.3g or more, of what losses and %d bytes leave", f.Failure, memory))
	}
	return f, nil
}

// in returns the best choice of a kind in the given memory, if there is one.
func (d *Demand) in(memory int, table, sketch bool) (f Forecast, ok bool) {
	f.Failure = 1
	if table && sketch {
		memory /= 2
	}
	if table {
		f.Table = TableConfig{Identity: d.Base.Identity, SumBits: d.Base.SumBits, DigestBits: d.Base.DigestBits}
		rest := max(0, memory-f.Table.encodedBytes())
		f.Table.Flows = min(rest/(bucketFlows*f.Table.FlowBytes()+1)*bucketFlows, mostHeld)
		f.Memory = f.Table.encodedBytes()
		f.Failure, f.Held = d.tableFailure(f.Table.Flows)
	}
	if sketch {
		c, failure := d.sketchIn(memory)
		f.Config = c
		f.Memory += c.encodedBytes()
		f.Failure *= failure
	}
	return f, (!table || f.Table.Flows > 0) && (!sketch || f.Config.Rows > 0)
}

// sketchIn returns the sketch with the fewest failures in the given memory, without rows if there is none. Its
// last rows sample, if packets are lost.
func (d *Demand) sketchIn(memory int) (best Config, least float64) {
	least = 2
	for rows := 1; rows <= mostPlannedRows; rows++ {
		c := d.Base
		c.Rows, c.Columns = rows, 0
		c.Columns = min((memory-c.encodedBytes())/c.CellBytes()/rows, maxColumns)
		if c.Columns < c.Spread+nearCells { // there would be no intervals
			continue
		}
		small := smallSum(float64(d.Flows)/float64(c.Columns)*float64(c.Spread), d.Shape, d.Large)
		for sampling := 0; sampling < rows && (sampling == 0 || d.Loss > 0); sampling++ {
			c.Rates = [MaxRows]float64{}
			for r, rate := 0, 1.0; r < rows; r++ {
				if r >= rows-sampling {
					rate /= 10
				}
				c.Rates[r] = rate
			}
			if f := d.sketchFailure(&c, small); f < least {
				best, least = c, f
			}
		}
	}
	return best, least
}

// over returns the mean of f over the sizes of flows of so many packets and more.
func (d *Demand) over(least float64, f func(packets float64) float64) (mean float64) {
	for i := range someSizes {
		mean += f(math.Ceil(least*math.Pow((float64(i)+0.5)/someSizes, -1/d.Shape))) / someSizes
	}
	return mean
}

// sketchFailure returns the fraction of large flows that have no cell with a small collision and without
// losses, if cells are independent.
func (d *Demand) sketchFailure(c *Config, small float64) float64 {
	return d.over(d.Large, func(packets float64) float64 {
		none := 1.0
		for _, rate := range c.Rates[:c.Rows] {
			own := rate * (packets + d.Large) / float64(c.Spread) // with as many of others as may be
			whole := math.Exp(-d.Loss * own)
			sampled := 1.0
			if rate < 1 {
				sampled = -math.Expm1(-rate * packets)
			}
			none *= math.Pow(1-small*whole*sampled, float64(c.Spread))
		}
		return none
	})
}

// tableFailure returns the fraction of large flows that a table of some rooms does not hold, of which every
// cell loses a packet, or which one point holds later because it lost the first, and the fraction of all flows
// that it holds. The numbers that packets draw are even, so a flow of n packets draws below a limit with
// probability 1 − (1−limit)^n. Flows fall into buckets at random, so as many are expected below the limit of a
// bucket as a Gamma distribution of the shape bucketFlows says (here by E. Wilson and M. Hilferty, 1931).
func (d *Demand) tableFailure(rooms int) (failure, held float64) {
	below := func(packets, limit float64) float64 { return -math.Expm1(packets * math.Log1p(-min(limit, 1-1e-15))) }
	share := func(limit float64) float64 {
		return d.over(1, func(packets float64) float64 { return below(packets, limit) })
	}
	for i := range someBuckets {
		const ninth = 1.0 / (9 * bucketFlows)
		normal := math.Sqrt2 * math.Erfinv((2*float64(i)+1)/someBuckets-1)
		full, limit := math.Pow(1-ninth+normal*math.Sqrt(ninth), 3)*float64(rooms)/float64(d.Flows), 1.0
		for step := 0.5; full < 1 && step > 1e-12; step /= 2 {
			if share(limit-step) > full {
				limit -= step
			}
		}
		held += share(limit) / someBuckets
		failure += d.over(d.Large, func(packets float64) float64 {
			spoilt := 1.0
			for _, part := range []float64{0.9, 0.09, 0.01} {
				spoilt *= -math.Expm1(-d.Loss * part * packets)
			}
			return 1 - below(packets, limit)*(1-d.Loss)*(1-spoilt)
		}) / someBuckets
	}
	return failure, held
}

const latticeSteps = 400 // into which smallSum divides the packets up to large

// smallSum returns the probability that a Poisson number of flows, of the given mean, have at most large
// packets together, if x^−shape of them have more than x. It follows Panjer's recursion,
//
//	g(0) = e^−λ,  g(s) = λ/s · Σ j·p(j)·g(s−j),
//
// over whole packets, or larger steps beyond latticeSteps, to which sizes are rounded up.
func smallSum(mean, shape, large float64) float64 {
	tail := func(x float64) float64 { return math.Pow(max(x, 1), -shape) }
	step, steps := max(1, large/latticeSteps), int(min(large, latticeSteps))
	exactly, sums := make([]float64, steps+1), make([]float64, steps+1) // p(j), times j
	sums[0] = math.Exp(-mean)
	total := sums[0]
	for s := 1; s <= steps; s++ {
		exactly[s] = float64(s) * (tail(float64(s-1)*step) - tail(float64(s)*step))
		for j := 1; j <= s; j++ {
			sums[s] += exactly[j] * sums[s-j]
		}
		sums[s] *= mean / float64(s)
		total += sums[s]
	}
	return min(total, 1)
}
