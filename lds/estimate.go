package lds

import (
	"fmt"
	"math"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// Errors are made once, so that answering with them allocates nothing.
var (
	errNoSamples = fmt.Errorf("lds: %w", estimate.ErrNoSamples)
	errAbsent    = fmt.Errorf("%w: no packet of the flow was sent", errNoSamples)
	errUnlike    = fmt.Errorf("%w: in each cell of the flow the points' packets differ too much, or the sum may have wrapped", errNoSamples)
)

// A Result is what two sketches say about one flow.
type Result struct {
	// Delay is from the least contaminated of the flow's cells (Fig. 6). N counts the packets of the row that
	// contributed most: a packet is in every row and counts once.
	estimate.Delay

	// DegreesOfFreedom is what StdDev rests on: the number of selected cells beyond the first of each row. With 0, as always with a
	// Spread of 1, the deviation is unknown. Flows that share the cells add to it by how far they are from this one.
	DegreesOfFreedom uint64

	// MeanError is the expected root mean square error of Mean, in nanoseconds. It is +Inf if cells do not reveal it, as when rows
	// have only some dozens of columns, and no more than rounding only if equal rows prove that the flow is alone in its cells.
	MeanError float64

	// Late is by how much Mean may be greater because packets came twice, or had been taken for lost, or may have come
	// that were taken for lost in earlier reports, which an [Accumulator] allows for until it has seen 45 intervals: how
	// long those took is unknown, and others may not have taken as long.
	Late float64

	far        float64 // how far Mean is off with a confidence of farConfidence
	less, more float64 // by how much Mean may be less and more, by what the report's ends owe

	// Share is the fraction of the flow's packets behind the answer, as far as counts tell: 1 unless cells of a spread flow are unusable.
	Share float64

	// Sent and Received are [Sketch.Packets] at the two points: those of the flow and of some of its neighbours. Lost is an upper
	// bound of the flow's losses, from the row that shows fewest: it includes losses of neighbours, and packets on their way.
	// Overdue is a lower bound of what the same cells lost for certain; only an [Accumulator] knows of any. In the single interval
	// of [Estimate] a packet that was on its way when it began, or that arrived twice, hides a loss.
	Sent, Received, Lost, Overdue uint64

	// Usable is how many of the flow's Rows × Spread cells were of use.
	Usable int
}

// Estimate returns the delay of flow f between two points, from its cells in their sketches of one interval
// (Fig. 6): the least loaded of the usable ones, and those that hold up to Config.Tolerance more.
//
// If rows sample at different rates, Estimate compares cells by an upper bound of the packets they stand for, where section 4.2
// divides counts by rates, so that a cell that happened to sample few of many packets does not pass for the purest. From a cell
// that lost packets, it takes the delays of the others as if the lost ones had been sent at the mean time of all its packets. A
// cell whose sum may have wrapped (Config.SumBits) has no part in the answer.
//
// It returns [estimate.ErrNoSamples] if no cell of the flow tells anything, or if the sketches prove that the flow had no packets;
// all of the Result but its Delay is valid even then. It returns [estimate.ErrMismatch] if the Configs or the intervals differ.
//
// Flows that share the selected cells draw the mean towards theirs.
func Estimate(up, down *Sketch, f hashing.Flow) (Result, error) {
	if err := match(up, down, true); err != nil {
		return Result{}, err
	}
	result := Result{Sent: up.Packets(f), Received: down.Packets(f), Lost: lost(up, down, f)}
	if result.Sent == 0 {
		return result, errAbsent
	}
	var near [mostNearby]uint32
	var contents [mostNearby]content
	list := up.config.nearby(&near, f)
	cells := newPairs(up, down, list)
	v := view{&up.config, cells.apart, cells.single, contents[:0]}
	for _, at := range list {
		v.cells = append(v.cells, cells.at(int(at)))
	}
	if !v.read(&result) {
		return result, errUnlike
	}
	if result.Late = cells.late(f); math.IsInf(result.Late, 1) {
		result.Late, result.MeanError = 0, math.Inf(1)
	}
	result.Mean += float64(cells.around.delay)
	result.MeanError += rounding * math.Abs(result.Mean)
	return result, nil
}

// read sets the mean, beyond the centre, and all that goes with it, from the best of the flow's cells: the
// least loaded, where one that lost packets counts as loaded by more. It reports whether there is one.
func (v *view) read(result *Result) bool {
	c := v.config
	var best *content
	var loads [MaxRows * maxSpread]float64 // +Inf for cells that are not usable
	least, purest := math.Inf(1), 0
	for r, rate := range c.Rates[:c.Rows] {
		for i, own := 0, v.own(r); i < c.Spread; i++ {
			one, load := &own[i], math.Inf(1)
			if one.usable && one.packets > 0 {
				result.Usable++
				load = one.load(rate, v.apart)
			}
			if loads[r*c.Spread+i] = load; load < least {
				best, least, purest = one, load, r
			}
		}
	}
	if best == nil {
		return false
	}
	// A row's cells hold different packets, so their sums reveal the deviation. Two rows hold the same packets.
	var mean, squares, packets float64
	for r := range c.Rows {
		var row estimate.Cells
		for i, one := range v.own(r) {
			if loads[r*c.Spread+i] <= (1+c.Tolerance)*least {
				row.Add(one.beyond, uint64(one.packets+0.5))
			}
		}
		if n := float64(row.N()); n > 0 {
			packets += n
			mean += (row.Mean() - mean) * n / packets
			squares += row.Variance() * float64(row.DegreesOfFreedom())
			result.DegreesOfFreedom += row.DegreesOfFreedom()
			result.N = max(result.N, row.N())
			result.Share = max(result.Share, float64(row.Cells())/float64(c.Spread))
		}
	}
	if result.Mean = mean; result.DegreesOfFreedom > 0 {
		result.StdDev = math.Sqrt(squares / float64(result.DegreesOfFreedom))
	}
	o := others{view: v, row: purest}
	result.MeanError, result.far = o.meanError(best)
	return true
}

// Packets returns an upper bound of flow f's packets at this point: the count of the least loaded of its rows,
// which includes flows that share its cells (section 4.3, a count-min sketch). If that row samples, the bound
// is three deviations up. It is 0 if the sketch proves that the flow had no packet.
func (s *Sketch) Packets(f hashing.Flow) uint64 {
	made(s.config.Rows > 0, "Sketch")
	least := math.Inf(1)
	for r, rate := range s.config.Rates[:s.config.Rows] {
		least = min(least, atMost(float64(s.rowPackets(r, f)), rate))
	}
	return uint64(math.Ceil(least))
}

func (s *Sketch) rowPackets(r int, f hashing.Flow) (n uint64) {
	for offset := range s.config.Spread {
		n += uint64(s.cells[s.config.at(r, f, offset)].count())
	}
	return n
}

// lost returns the smallest loss that a row shows: how many fewer packets flow f's cells hold downstream, at most if the row samples.
func lost(up, down *Sketch, f hashing.Flow) uint64 {
	least := math.Inf(1)
	for r, rate := range up.config.Rates[:up.config.Rows] {
		sent, received := up.rowPackets(r, f), down.rowPackets(r, f)
		least = min(least, atMost(float64(sent-min(sent, received)), rate))
	}
	return uint64(math.Round(least))
}

// atMost bounds the number of packets of which n were sampled at a rate, at three deviations of the sampling (Wilson's).
func atMost(n, rate float64) float64 {
	const deviations = 3.0
	noise := (1 - rate) * deviations * (deviations/2 + math.Sqrt(n+deviations*deviations/4))
	return (n + noise) / rate
}
