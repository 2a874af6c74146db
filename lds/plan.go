package lds

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/hoplag/hoplag/estimate"
)

// A Demand says what a sketch must do.
type Demand struct {
	Flows int    // number of flows in an interval (n), at least 1
	Sizes Pareto // their sizes

	// Large is the size in packets from which on a flow should be measured
	// well (x), at least 1. As many packets of other flows, over all its cells
	// in a row, are a small collision.
	Large float64

	// Loss is the fraction of packets lost, 0 to 0.5. A flow is measured well
	// only if a cell with a small collision loses no packet.
	Loss float64

	// Rate is the number of packets a second of all flows, and Delay their
	// approximate delay in nanoseconds, or more. If packets are lost, an
	// [Accumulator] says nothing about cells in which some packet is always on
	// its way, so Plan does not count on rows that hold more than two at a
	// time. Zero ignores packets on their way.
	Rate, Delay float64

	// Comparisons is the number of parts in which the interval is compared,
	// for an [Accumulator]: 1 to 1,024. Zero means as many as Failure needs,
	// and one without Failure.
	Comparisons int

	// Failure is the fraction of the large flows that may be measured badly
	// (ε), above 0 and below 1. Zero means as few as fit into Memory.
	Failure float64

	// Memory is the largest size of a sketch on the wire in bytes. Zero means
	// as many as Failure needs.
	Memory int

	// Base supplies what is not planned: identity, spread, widths, tolerance.
	// Plan also keeps its rates if they fit the planned rows. Otherwise all
	// rows see every packet or, if packets are lost and that is better, some
	// of them sample.
	Base Config
}

// A Forecast is a planned sketch and what to expect of it.
type Forecast struct {
	Config      Config
	Comparisons int     // parts in which to compare an interval
	Load        float64 // large flows per cell (z)
	Failure     float64 // fraction of large flows measured badly
	Survivable  float64 // number of large flows measured well
	Outstanding float64 // packets on their way at a time in a cell of the row that holds the fewest
	Memory      int     // bytes of cells on the wire
}

const (
	// With 70,000 cells, more rows than four were no better for large flows,
	// and worse by half with joint decoding: lds-rows of the project's bench.
	mostPlannedRows = 4
	mostComparisons = 1 << 10
	mostRate        = 1e12 // packets a second
	mostDelay       = 1e13 // ns
	// The approximate number of packets of others, relative to the flow's, in
	// a cell with a small collision.
	usualCollision = 0.5
	// With two packets on their way in a cell at a time, a seventh of all cuts
	// finds it empty.
	mostOutstanding = 2
)

// Plan returns a sketch for a demand. With Failure alone it returns the
// smallest sketch, with Memory alone the one with the fewest failures that
// fits, and with both the smallest, if it fits. The error wraps
// [estimate.ErrConfig].
//
// It tries one to four rows with [SmallSums]. It arrives at fewer and larger
// rows than the paper's formulas (lds/paper), which would not keep the
// promise. If packets are lost, it also tries rows that sample, and compares
// more often before it takes more memory, because that costs less.
func Plan(d Demand) (Forecast, error) {
	if err := d.validate(); err != nil {
		return Forecast{}, err
	}
	least, most := d.Comparisons, d.Comparisons
	if d.Comparisons == 0 {
		least, most = 1, 1
		if d.Failure > 0 && d.Loss > 0 {
			most = mostComparisons
		}
	}
	var best Forecast
	var failed error
	for n := least; n <= most; n *= 2 {
		f, err := d.plan(n)
		if err != nil {
			failed = err
			continue
		}
		// Comparing twice as often costs twice the bytes. It is worth it if
		// the sketch is less than half as large.
		if best.Memory == 0 || f.Memory*f.Comparisons < best.Memory*best.Comparisons {
			best = f
		}
	}
	if best.Memory == 0 {
		return Forecast{}, failed
	}
	if err := best.Config.Validate(); err != nil {
		return Forecast{}, err
	}
	return best, nil
}

func (d *Demand) validate() error {
	c := &d.Base
	cellBytes := c.CellBytes()
	bad := func(field string, got any, want string) error { return estimate.Invalid("lds", field, got, want) }
	switch {
	case d.Flows < 1:
		return bad("Flows", d.Flows, "1 or more")
	case !(d.Sizes.Shape > 0 && d.Sizes.Scale > 0):
		return bad("Sizes", d.Sizes, "a positive shape and scale")
	case !(d.Large >= 1):
		return bad("Large", d.Large, "1 or more")
	case !(d.Loss >= 0 && d.Loss <= 0.5):
		return bad("Loss", d.Loss, "0 to 0.5")
	case !(d.Rate >= 0 && d.Rate <= mostRate):
		return bad("Rate", d.Rate, "0 to 1e12 packets a second")
	case !(d.Delay >= 0 && d.Delay <= mostDelay):
		return bad("Delay", d.Delay, "0 to 1e13 ns")
	case d.Comparisons < 0 || d.Comparisons > mostComparisons:
		return bad("Comparisons", d.Comparisons, fmt.Sprintf("0 to %d", mostComparisons))
	case !(d.Failure >= 0 && d.Failure < 1):
		return bad("Failure", d.Failure, "0 to below 1")
	case c.Spread < 1 || c.Spread > maxSpread:
		return bad("Base.Spread", c.Spread, fmt.Sprintf("1 to %d", maxSpread))
	case d.Memory < 0 || d.Memory == 0 && d.Failure == 0:
		return bad("Memory", d.Memory, "more than 0 where Failure is not given")
	case d.Memory > 0 && d.Memory < cellBytes*c.Spread:
		return bad("Memory", d.Memory, fmt.Sprintf("at least a row of %d cells, %d bytes", c.Spread, cellBytes*c.Spread))
	}
	return nil
}

// plan plans for a given number of comparisons.
func (d *Demand) plan(comparisons int) (Forecast, error) {
	c := d.Base
	cellBytes := c.CellBytes()
	c.Rows = 0
	least := math.Inf(1)
	for rows := 1; rows <= mostPlannedRows; rows++ {
		for _, rates := range d.rates(rows) {
			fails := func(columns int) float64 { return d.failure(rows, columns, comparisons, rates) }
			columns := min(d.Memory/cellBytes/rows, maxColumns)
			if d.Failure > 0 {
				columns = fewestColumns(c.Spread, func(columns int) bool { return fails(columns) <= d.Failure })
			}
			if columns < c.Spread || columns > maxColumns {
				continue
			}
			// The cost to minimise: cells, or failures.
			cost := float64(rows) * float64(columns)
			if d.Failure == 0 {
				cost = fails(columns)
			}
			if cost < least {
				c.Rows, c.Columns, c.Rates, least = rows, columns, rates, cost
			}
		}
	}
	need := c.Rows * c.Columns * cellBytes
	switch {
	case c.Rows == 0:
		reach := fmt.Sprintf("what %d rows of %d columns can reach", mostPlannedRows, maxColumns)
		return Forecast{}, estimate.Invalid("lds", "Failure", d.Failure, reach)
	case d.Memory > 0 && need > d.Memory:
		return Forecast{}, estimate.Invalid("lds", "Memory", d.Memory, fmt.Sprintf("at least %d for a Failure of %g", need, d.Failure))
	}
	outstanding := d.outstanding(c.Columns, slices.Min(c.Rates[:c.Rows]))
	if d.Loss > 0 && outstanding > mostOutstanding {
		want := fmt.Sprintf("at most %.3g ns for so many packets a second and so few cells", d.Delay*mostOutstanding/outstanding)
		return Forecast{}, estimate.Invalid("lds", "Delay", d.Delay, want)
	}
	large := float64(d.Flows) * d.Sizes.Tail(d.Large)
	failure := d.failure(c.Rows, c.Columns, comparisons, c.Rates)
	return Forecast{
		Config: c, Comparisons: comparisons, Memory: need,
		Outstanding: outstanding,
		Load:        large / float64(c.Rows) / float64(c.Columns),
		Failure:     failure,
		Survivable:  large * (1 - failure),
	}, nil
}

// rates returns the rates to try for the given number of rows.
func (d *Demand) rates(rows int) [][MaxRows]float64 {
	if fitted := fitRates(d.Base.Rates, rows); d.Loss == 0 {
		return [][MaxRows]float64{fitted}
	}
	all := fitRates([MaxRows]float64{}, rows)
	choices := [][MaxRows]float64{all}
	for first := rows - 1; first > 0; first-- { // the first row that samples
		rates := all
		for r, rate := first, 0.1; r < rows; r, rate = r+1, rate/10 {
			rates[r] = rate
		}
		choices = append(choices, rates)
	}
	return choices
}

// failure returns the fraction of large flows that have no cell with a small
// collision and without losses. Like [SmallSums] it assumes independent cells.
func (d *Demand) failure(rows, columns, comparisons int, rates [MaxRows]float64) float64 {
	spread := float64(d.Base.Spread)
	small := smallSum(float64(d.Flows)/float64(columns)*spread, d.Sizes, d.Large)
	none := 1.0
	for _, rate := range rates[:rows] {
		if d.Loss > 0 && d.outstanding(columns, rate) > mostOutstanding {
			continue
		}
		packets := rate * d.Large * (1 + usualCollision) / spread
		whole := math.Exp(-d.Loss * packets / float64(comparisons))
		sampled := 1.0
		if rate < 1 {
			sampled = -math.Expm1(-rate * d.Large)
		}
		none *= math.Pow(1-small*whole*sampled, spread)
	}
	return none
}

// outstanding returns how many packets are on their way at a time in a cell of
// a row.
func (d *Demand) outstanding(columns int, rate float64) float64 {
	return rate * d.Rate / float64(columns) * d.Delay / 1e9
}

// fewestColumns returns the smallest number of columns, from least on, that is
// enough, or more than maxColumns if there is none.
func fewestColumns(least int, enough func(columns int) bool) int {
	return least + sort.Search(maxColumns+1-least, func(more int) bool { return enough(least + more) })
}

// fitRates returns rates if it has one rate for each row and none beyond, and
// otherwise rates of 1.
func fitRates(rates [MaxRows]float64, rows int) [MaxRows]float64 {
	fit := true
	for r, rate := range rates {
		fit = fit && (rate != 0) == (r < rows)
	}
	if fit {
		return rates
	}
	rates = [MaxRows]float64{}
	for r := range rows {
		rates[r] = 1
	}
	return rates
}
