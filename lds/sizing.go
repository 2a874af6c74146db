package lds

import (
	"fmt"
	"math"
	"sort"

	"github.com/hoplag/hoplag/estimate"
)

// Pareto is a distribution of flow sizes in packets: Pr[size > x] is
// (Scale/x)^Shape from Scale on. The paper's traffic has Shape 0.8, Scale 1.
type Pareto struct {
	Shape float64 // above 0; below 1 the mean is infinite
	Scale float64 // the smallest size, above 0
}

// FitPareto returns the most likely Pareto distribution for the sizes given,
// of flows of at least scale packets; smaller ones are passed over. It returns
// [estimate.ErrNoSamples] if no size exceeds scale.
//
// Whole packets are not a continuous quantity: with a scale below ten or so
// the shape comes out too large; fit the tail.
func FitPareto(sizes []uint64, scale uint64) (Pareto, error) {
	var n, logs float64
	for _, size := range sizes {
		if size >= scale && scale > 0 {
			n++
			logs += math.Log(float64(size) / float64(scale))
		}
	}
	if !(logs > 0) {
		return Pareto{}, fmt.Errorf("lds: %w: no flow has more than %d packets", estimate.ErrNoSamples, scale)
	}
	return Pareto{Shape: n / logs, Scale: float64(scale)}, nil
}

// Tail returns Pr[size > x] (P in section 3).
func (p Pareto) Tail(x float64) float64 {
	if x <= p.Scale {
		return 1
	}
	return math.Pow(p.Scale/x, p.Shape)
}

// SmallCollisions returns the probability that a flow has a cell in which the
// flows it collides with bring few packets: Q = 1 − (z·R·k)^(R·k) for R rows
// and a Spread of k, where z, the load, is the number of large flows per cell
// of the sketch, nP/C (sections 3.1 and 3.2). It blames every large collision
// on a single large flow; where it has no meaning, from zRk = 1 on, it is 0.
//
// Many smaller flows together are to blame as well, the more there are to a
// cell: of the paper's example, with four rows, it promises 0.985 where
// [SmallSums] says 0.93 and simulation 0.95, and two or three rows are better.
func SmallCollisions(load float64, rows, spread int) float64 {
	places := float64(rows) * float64(spread)
	return 1 - min(1, math.Pow(load*places, places))
}

// SmallSums returns what [SmallCollisions] approximates, with the packets of
// all colliding flows added up: the probability that in at least one of a
// flow's Rows × Spread cells, others bring at most large/Spread packets.
// flowsPerCell is n/C, the number of flows per cell of the sketch. What it
// shares with the paper's model is that cells are independent, and that a flow
// has the same part of its packets in each of its cells of a row.
func SmallSums(flowsPerCell float64, sizes Pareto, large float64, rows, spread int) float64 {
	places := float64(rows) * float64(spread)
	return 1 - math.Pow(1-smallSum(flowsPerCell*places, sizes, large), places)
}

// latticeSteps is in how many steps smallSum divides the packets up to large.
const latticeSteps = 400

// smallSum is the probability that a Poisson number of flows, of the given
// mean, have at most large packets together. It follows Panjer's recursion,
//
//	g(0) = e^−λ,  g(s) = λ/s · Σ j·p(j)·g(s−j),
//
// over whole packets, or over steps of more if large is beyond latticeSteps,
// to which sizes are rounded up.
func smallSum(mean float64, sizes Pareto, large float64) float64 {
	step := max(1, large/latticeSteps)
	steps := int(min(large, latticeSteps))
	exactly := make([]float64, steps+1) // p(j), times j
	for j := 1; j <= steps; j++ {
		exactly[j] = float64(j) * (sizes.Tail(float64(j-1)*step) - sizes.Tail(float64(j)*step))
	}
	sums := make([]float64, steps+1)
	sums[0] = math.Exp(-mean)
	total := sums[0]
	for s := 1; s <= steps; s++ {
		for j := 1; j <= s; j++ {
			sums[s] += exactly[j] * sums[s-j]
		}
		sums[s] *= mean / float64(s)
		total += sums[s]
	}
	return min(total, 1)
}

// OptimalRows returns the number of rows, not rounded, that makes
// [SmallCollisions] greatest at a given load and a Spread of 1: 1/(e·z), or 1
// if that is less. With a Spread of k it is a k-th of that.
func OptimalRows(load float64) float64 {
	return max(1, 1/(math.E*load))
}

// TargetRows returns the number of rows, not rounded, with which the
// probability of large collisions is held at failure with the fewest cells:
// −ln ε for a Spread of 1, and a k-th of that for k, at least 1 (section 3.2).
func TargetRows(failure float64, spread int) float64 {
	return max(1, -math.Log(failure)/float64(spread))
}

// Survivable returns how many large flows, of those whose share among all the
// flows is large, are expected to have only small collisions in a single row
// of cells cells: nP(1 − nP/C), at most C/4, at n = C/(2P) flows.
func Survivable(flows, large, cells float64) float64 {
	return max(0, flows*large*(1-flows*large/cells))
}

// A Demand is what a sketch is planned for.
type Demand struct {
	Flows int    // how many flows there are in an interval (n), at least 1
	Sizes Pareto // how large they are

	// Large is from how many packets on a flow is to be measured well (x), at
	// least 1: so many packets of other flows, over all its cells in a row, are
	// a small collision.
	Large float64

	// Failure is what part of the large flows may have large collisions in
	// all of their cells (ε), above 0 and below 1. Zero means as few as fit
	// into Memory.
	Failure float64

	// Memory is how many bytes a sketch may have on the wire. Zero means as
	// many as Failure needs.
	Memory int

	// Base gives what is not planned: seed, spread, widths, tolerance. Its
	// rates are kept too if they fit the rows planned; otherwise every row
	// samples every packet.
	Base Config
}

// A Forecast is what a planned sketch is expected to do.
type Forecast struct {
	Load       float64 // large flows per cell (z)
	Failure    float64 // the part of large flows that have large collisions only, by SmallSums
	Survivable float64 // how many large flows have a cell with small collisions
	Memory     int     // bytes on the wire
}

// Plan returns a sketch for a demand: with Failure alone the smallest, with
// Memory alone the one with the fewest large collisions that fits, and with
// both the smallest, if it fits. The error wraps [estimate.ErrConfig].
//
// It tries all numbers of rows with [SmallSums], and comes to fewer and larger
// rows than [OptimalRows] and [TargetRows], with which the promise would not be
// kept. For [Decode], which gains from more equations a flow, two to four rows
// are about equally good.
func Plan(d Demand) (Config, Forecast, error) {
	bad := func(field string, got any, want string) (Config, Forecast, error) {
		return Config{}, Forecast{}, fmt.Errorf("lds: %w: %s is %v, want %s", estimate.ErrConfig, field, got, want)
	}
	c := d.Base
	cellBytes := c.CellBytes()
	switch {
	case d.Flows < 1:
		return bad("Flows", d.Flows, "1 or more")
	case !(d.Sizes.Shape > 0 && d.Sizes.Scale > 0):
		return bad("Sizes", d.Sizes, "a positive shape and scale")
	case !(d.Large >= 1):
		return bad("Large", d.Large, "1 or more")
	case !(d.Failure >= 0 && d.Failure < 1):
		return bad("Failure", d.Failure, "0 to below 1")
	case c.Spread < 1 || c.Spread > MaxSpread:
		return bad("Base.Spread", c.Spread, fmt.Sprintf("1 to %d", MaxSpread))
	case d.Memory < 0 || d.Memory == 0 && d.Failure == 0:
		return bad("Memory", d.Memory, "more than 0 where Failure is not given")
	case d.Memory > 0 && d.Memory < cellBytes*c.Spread:
		return bad("Memory", d.Memory, fmt.Sprintf("at least a row of %d cells, %d bytes", c.Spread, cellBytes*c.Spread))
	}
	failure := func(rows, columns int) float64 {
		return 1 - SmallSums(float64(d.Flows)/float64(rows)/float64(columns), d.Sizes, d.Large, rows, c.Spread)
	}
	c.Rows = 0
	if d.Failure > 0 {
		for rows := 1; rows <= MaxRows; rows++ {
			columns := fewestColumns(c.Spread, func(columns int) bool { return failure(rows, columns) <= d.Failure })
			if columns <= MaxColumns && (c.Rows == 0 || int64(rows)*int64(columns) < int64(c.Rows)*int64(c.Columns)) {
				c.Rows, c.Columns = rows, columns
			}
		}
		if c.Rows == 0 {
			return bad("Failure", d.Failure, fmt.Sprintf("what %d rows of %d columns can reach", MaxRows, MaxColumns))
		}
		if need := int64(c.Rows) * int64(c.Columns) * int64(cellBytes); d.Memory > 0 && need > int64(d.Memory) {
			return bad("Memory", d.Memory, fmt.Sprintf("at least %d for a Failure of %g", need, d.Failure))
		}
	} else {
		cells := d.Memory / cellBytes
		least := math.Inf(1)
		for rows := 1; rows <= min(MaxRows, cells/c.Spread); rows++ {
			columns := min(cells/rows, MaxColumns)
			if f := failure(rows, columns); f < least {
				c.Rows, c.Columns, least = rows, columns, f
			}
		}
	}
	c.Rates = fitRates(c.Rates, c.Rows)
	if err := c.Validate(); err != nil {
		return Config{}, Forecast{}, err
	}
	large := float64(d.Flows) * d.Sizes.Tail(d.Large)
	forecast := Forecast{
		Load:    large / float64(c.Rows) / float64(c.Columns),
		Failure: failure(c.Rows, c.Columns),
		Memory:  c.Rows * c.Columns * cellBytes,
	}
	forecast.Survivable = large * (1 - forecast.Failure)
	return c, forecast, nil
}

// fewestColumns is the least number of columns, from least on, that is enough;
// beyond MaxColumns if not even that is.
func fewestColumns(least int, enough func(columns int) bool) int {
	return least + sort.Search(MaxColumns+1-least, func(more int) bool { return enough(least + more) })
}

// fitRates returns the rates if there is one for each row and none beyond, and
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
