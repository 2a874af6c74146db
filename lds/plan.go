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

	// Shape is that of the Pareto distribution of sizes, 0.1 to 10: x^−Shape of the flows have x packets or more; 0.8 in the paper.
	Shape float64
	// Large is the size in packets from which a flow should be measured well (x), at least 1: held by a table,
	// or in a cell of a sketch to which other flows bring no more packets.
	Large float64
	// Loss is the fraction of packets lost, 0 to 0.5. A flow is measured well only if such a cell loses no packet.
	Loss float64
	// Failure is the fraction of the large flows that may be measured badly (ε), above 0 and below 1. Zero: as few as EncodedSize allows.
	Failure float64
	// EncodedSize is the largest size of all encodings together in bytes. Zero means as many as Failure needs.
	EncodedSize int
	// Base supplies identity and widths, and the spread and tolerance of a sketch.
	Base Config
}

// A Forecast is what was planned and what to expect of it: a sketch, a table or both, so a Config alone would not tell.
type Forecast struct {
	Config      Config      // of the sketch; without rows there is none
	Table       TableConfig // of the table; without flows there is none
	Failure     float64     // fraction of large flows measured badly
	Held        float64     // fraction of all flows in the table
	EncodedSize int         // bytes, of all encodings

	// Others are the choices that were not made: what a table, a sketch or both would give. A table alone has no
	// answer for flows that it does not hold. If small flows want one too, take the first choice with a sketch.
	Others []Forecast
}

const (
	mostPlannedRows = 4   // with 70,000 cells, more were no better for large flows
	someSizes       = 256 // quantiles that stand for the sizes of flows
	someBuckets     = 32  // quantiles that stand for the limits of a table's buckets
)

// Plan returns a sketch, a table, or both in one memory, half for each: the smallest for Failure, or the one with the fewest failures in
// EncodedSize, by flows. Of equals it prefers the table, whose answers are the most accurate. The error wraps [estimate.ErrConfig].
//
// For a sketch it tries one to four rows, and rows that sample if packets are lost. For a table it takes flows to come side by side:
// where all large ones come before the others, up to a twelfth more may fail.
func Plan(d Demand) (Forecast, error) {
	if err := d.validate(); err != nil {
		return Forecast{}, err
	}
	var all []Forecast
	var failed error
	least := math.Inf(1)
	for _, kind := range []struct{ table, sketch bool }{{true, false}, {true, true}, {false, true}} {
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
			large := max(1, float64(d.Flows)*math.Pow(math.Ceil(d.Large), -d.Shape))
			return cmp.Compare(math.Round(a.Failure*large), math.Round(b.Failure*large))
		}
		return cmp.Compare(a.EncodedSize, b.EncodedSize)
	})
	all[0].Others = all[1:]
	return all[0], nil
}

func (d *Demand) validate() error {
	least := 0 // of EncodedSize
	if d.Failure == 0 {
		least = 1
	}
	one := d.Base // whatever rows and columns it has
	one.Rows, one.Columns, one.Rates = 1, maxColumns, [MaxRows]float64{1}
	return cmp.Or(within("Flows", d.Flows, 1, math.MaxInt), within("Shape", d.Shape, 0.1, 10), within("Large", d.Large, 1, math.Inf(1)),
		within("Loss", d.Loss, 0, 0.5), within("Failure", d.Failure, 0, math.Nextafter(1, 0)),
		within("EncodedSize", d.EncodedSize, least, math.MaxInt), one.Validate())
}

// smallest returns the smallest choice of a kind that keeps Failure, or the best one in EncodedSize.
func (d *Demand) smallest(table, sketch bool) (Forecast, error) {
	const largest = 1 << 30
	memory := cmp.Or(d.EncodedSize, largest)
	if d.Failure > 0 {
		memory = min(memory, sort.Search(memory, func(m int) bool {
			f, ok := d.in(m, table, sketch)
			return ok && f.Failure <= d.Failure
		}))
	}
	f, ok := d.in(memory, table, sketch)
	switch {
	case !ok:
		return f, estimate.Invalid("lds", "EncodedSize", d.EncodedSize, "more: not one bucket of flows, or row of cells that has intervals, fits")
	case d.Failure > 0 && f.Failure > d.Failure:
		return f, estimate.Invalid("lds", "Failure", d.Failure, fmt.Sprintf("%.3g or more, of what losses and %d bytes leave", f.Failure, memory))
	}
	return f, nil
}

func (d *Demand) in(memory int, table, sketch bool) (f Forecast, ok bool) {
	var all [someSizes]chances
	for i, n := range d.sizes(d.Large) {
		all[i] = chances{packets: n, unheld: 1, unread: 1}
	}
	if table && sketch {
		memory /= 2
	}
	if table {
		f.Table = TableConfig{Identity: d.Base.Identity, SumBits: d.Base.SumBits, DigestBits: d.Base.DigestBits}
		rest := max(0, memory-f.Table.encodedBytes())
		f.Table.Flows = min(rest/(bucketFlows*f.Table.flowBytes()+1)*bucketFlows, mostHeld)
		f.EncodedSize, f.Held = f.Table.encodedBytes(), d.inTable(f.Table.Flows, all[:])
	}
	if sketch {
		f.Config = d.sketchIn(memory, all[:])
		f.EncodedSize += f.Config.encodedBytes()
	}
	for _, x := range all { // the same losses spoil a table and a sketch
		f.Failure += (x.unheld*x.unread + (1-x.unheld)*min(x.spoilt, x.unread)) / someSizes
	}
	return f, (!table || f.Table.Flows > 0) && (!sketch || f.Config.Rows > 0)
}

// A chances holds a large flow's chances: that a table does not hold it, that each of its cells there is empty
// or lost a packet, and that no cell of a sketch is good.
type chances struct{ packets, unheld, spoilt, unread float64 }

// sketchIn returns the sketch with the fewest failures in the given memory, and sets these. It is without rows
// if there is none. Its last rows sample, if packets are lost.
func (d *Demand) sketchIn(memory int, all []chances) (best Config) {
	least := math.Inf(1)
	for rows := 1; rows <= mostPlannedRows; rows++ {
		c := d.Base
		c.Rows, c.Columns = rows, 0
		c.Columns = min((memory-c.encodedBytes())/c.cellBytes()/rows, maxColumns)
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
			var unread [someSizes]float64
			failed := 0.0
			for i := range all {
				unread[i] = d.unread(&c, small, all[i].packets)
				failed += all[i].unheld * unread[i]
			}
			if failed < least {
				best, least = c, failed
				for i := range all {
					all[i].unread = unread[i]
				}
			}
		}
	}
	return best
}

// sizes returns quantiles of the sizes of flows of a number of packets and more.
func (d *Demand) sizes(least float64) (sizes [someSizes]float64) {
	for i := range sizes {
		sizes[i] = math.Floor(math.Ceil(least) * math.Pow((float64(i)+0.5)/someSizes, -1/d.Shape))
	}
	return sizes
}

// unread returns the chance that a flow of a number of packets has no cell with a small collision and without losses. A row has the
// flow's packets that rows of higher rates have, or fewer. So the row of the highest rate that lost none of them tells which rows
// did. What others bring to rows is independent. A row's cells have k neighbours each, where k is the Spread, and 2k − 1 together.
func (d *Demand) unread(c *Config, small, packets float64) (none float64) {
	spread, lost := float64(c.Spread), 1.0 // the chance that all rows so far lost one of the flow's packets
	cells := 2 - 1/spread                  // as many have so many neighbours
	for r, rate := range c.Rates[:c.Rows] {
		loses := -math.Expm1(packets / spread * math.Log1p(-d.Loss*rate))
		good := 1.0
		for _, rate := range c.Rates[r:c.Rows] {
			empty := math.Exp(packets / spread * (math.Log1p(-rate) - math.Log1p(-d.Loss*rate)))
			good *= math.Pow(1-small*(1-empty)*math.Exp(-d.Loss*rate*d.Large/spread), cells)
		}
		none += max(0, lost-loses) * good
		lost = min(lost, loses)
	}
	return none + lost
}

// inTable sets how the large flows fare in a table of some rooms, and returns the fraction of all flows that it holds. A flow gets in
// with one packet, and stays if more come in time: nearly as if it drew well twice, and Poisson numbers of times in proportion to its
// packets (TestPlansOfAnyDemand). Both points hold it from one packet on unless that is lost, or limits differ, by what was lost
// before. By bucket, as many are expected to stay as a Gamma distribution says (here by E. Wilson and M. Hilferty, 1931).
func (d *Demand) inTable(rooms int, large []chances) (held float64) {
	sizes := d.sizes(1)
	stays := func(draws float64) float64 { return 1 - (1+draws)*math.Exp(-draws) }
	share := func(rate float64) (sum float64) {
		stay := 0.0
		for i, n := range sizes {
			if i == 0 || n != sizes[i-1] { // most flows are of a few packets
				stay = stays(n * rate)
			}
			sum += stay / someSizes
		}
		return sum
	}
	for i := range large {
		large[i].unheld, large[i].spoilt = 0, spoilt(large[i].packets, d.Loss, 0, tableParts[:])
	}
	for i := range someBuckets {
		const ninth = 1.0 / (9 * bucketFlows)
		normal := math.Sqrt2 * math.Erfinv((2*float64(i)+1)/someBuckets-1)
		full, power := math.Pow(1-ninth+normal*math.Sqrt(ninth), 3)*float64(rooms)/float64(d.Flows), 40.0
		if full >= 1 {
			held += 1.0 / someBuckets
			continue
		}
		for step := 64.0; step > 1e-3; step /= 2 {
			if share(math.Exp2(power-step)) > full {
				power -= step
			}
		}
		held += full / someBuckets
		for k := range large {
			large[k].unheld += (1 - stays(large[k].packets*(1-d.Loss)*math.Exp2(power))*sq(1-d.Loss)) / someBuckets
		}
	}
	return held
}

var tableParts = [flowCells]float64{0.9, 0.09, 0.01} // of a flow's packets, by cell

// spoilt returns the chance that each cell of a flow is empty or lost a packet. A cell is good as often as it lost
// none, except for how often it is empty: the chances of both, of several cells together, add up with their signs. A
// packet is among those that may not be there with a probability of out.
func spoilt(packets, loss, out float64, parts []float64) float64 {
	if len(parts) == 0 {
		return math.Exp(packets * math.Log1p(-min(1, out)))
	}
	rest := parts[1:]
	return spoilt(packets, loss, out, rest) - spoilt(packets, loss, out+loss*parts[0], rest) + spoilt(packets, loss, out+parts[0], rest)
}

const latticeSteps = 400 // into which smallSum divides the packets up to large

// smallSum returns the probability that a Poisson number of flows, of the given mean, have at most large
// packets together, if x^−shape of them have x or more. It follows Panjer's recursion,
//
//	g(0) = e^−λ,  g(s) = λ/s · Σ j·p(j)·g(s−j),
//
// over whole packets, or larger steps beyond latticeSteps, to which sizes are rounded up.
func smallSum(mean, shape, large float64) float64 {
	tail := func(x float64) float64 { return math.Pow(math.Floor(x)+1, -shape) } // more than x
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
