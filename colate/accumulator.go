package colate

import (
	"fmt"
	"math"
	"slices"

	"github.com/hoplag/hoplag/estimate/joint"
)

// absentFlows is the number of flows that never existed and that an accumulator follows beside its own.
// Estimates of these are pure noise, and calibrate those of a flow: see [Result.MeanInterval].
const absentFlows = 199

// An accumulator follows some flows through the epochs of two points. Its size does not depend on the number of epochs.
type accumulator struct {
	comparison // of PerFlow counters for each flow, then for each absent flow
	flows      []joint.FlowRecord
	tallies    []tally   // of the flows, then of absent flows
	filled     []float64 // packets in the flows' cells

	// Of the current table.
	cells  []flowCell // of one flow, those that are used
	kept   float64    // the flow's packets in them, as a part of all
	totals []float64  // of all of a flow's cells
	margin float64    // of the flows' cells, on average
}

// A tally adds up what a flow's cells say, epoch by epoch: the delays of its packets above the reference, with
// the noise of others above what they have in a typical cell.
type tally struct {
	sum     float64 // delays above the reference
	counted float64 // the flow's packets, less what a typical cell has
	passed  float64 // the same at the first point, with what was lost
	sampled float64 // Σ packets × how many each of those in settled cells stands for, less 1
	between float64 // Σ squares by which the sum may be off, as it is not known how many packets are in cells left out
	came    float64 // packets in the flow's cells; those in use stand for all
	least   float64 // the flow's packets, as the emptiest of its cells shows
	unseen  float64 // by how many more packets of another flow one of its cells may hold than an absent flow's, over all tables
	large   bool    // its cells are too narrow
	late    crossed
	spread

	ends [2]float64 // packets on their way when the window began, and when it ended

	// Packets in epochs in which no cell of the flow is settled: next to one that was not read, and others, and when these were.
	unread, dark float64
	darkSpan     span
	low, high    float64 // of all packets' means, over the epochs
}

// A flowCell is one of a flow's cells in the current table.
type flowCell struct {
	sight
	at     int     // in the table
	share  float64 // of the flow's packets in it
	margin float64 // by how many packets it may be fuller than expected
}

// newAccumulator returns an accumulator for a number of flows at points of Config c, which aim empties.
func newAccumulator(c Config, flows int) *accumulator {
	m, all := c.PerFlow, flows+absentFlows
	a := &accumulator{
		comparison: newComparison(c.comparable(), all*m, room),
		flows:      make([]joint.FlowRecord, flows),
		tallies:    make([]tally, all), filled: make([]float64, flows*m), cells: make([]flowCell, m), totals: make([]float64, m),
	}
	a.take = a.tell
	return a
}

// aim empties the accumulator, which then follows these flows. The error wraps [estimate.ErrConfig].
func (a *accumulator) aim(flows []joint.FlowRecord) error {
	if len(flows) == 0 {
		return invalid("number of flows", 0, "at least 1")
	}
	c, m := &a.config, a.config.PerFlow
	for i, f := range flows {
		if !(f.Packets >= 0 && f.Packets < 1<<60) || !(f.Doubt >= 0 && f.Doubt < 1<<60) {
			return invalid(fmt.Sprintf("flow %d", i), f, "packets and doubt from 0 to 2^60")
		}
		for j := range m {
			a.at[i*m+j] = c.place(f.Flow, j)
		}
	}
	copy(a.flows, flows)
	for i := range absentFlows {
		for j := range m {
			a.at[(len(flows)+i)*m+j] = c.neighbour(a.at[j], i)
		}
	}
	slices.SortFunc(a.order, func(i, j uint32) int { return int(a.at[i]) - int(a.at[j]) })
	a.table.keep(0)
	a.samples.aim(flows)
	clear(a.tallies)
	clear(a.filled)
	a.common, a.table.inside, a.table.lone, a.pairs, a.epochs, a.unread = common{}, false, 0, 0, 0, 0
	return nil
}

// neighbour returns the counter that an absent flow has instead of this one. Any counter would do; one in the same
// block is read with it. The last block may be short, and goes on with the first.
func (c *Config) neighbour(at uint32, absent int) uint32 {
	size := c.blockSize()
	in := int(at) % size
	return uint32((int(at) - in + (in+1+absent%max(size-1, 1))%size) % c.counters())
}

// tell adds the epochs of the table that count to the tallies.
func (a *accumulator) tell() {
	a.common.learn(a.table, len(a.flows)*a.config.PerFlow, 1)
	a.margin = 0
	for f := range a.tallies {
		a.tally(f)
	}
	a.common.shown, a.common.varied = 0, 0
	for _, own := range a.tallies[:len(a.flows)] {
		a.common.shown += own.shown
		a.common.varied += own.shown * own.variance()
	}
}

// tally adds the epochs of the table to flow f.
func (a *accumulator) tally(f int) {
	t, own := a.table, &a.tallies[f]
	if !a.use(f) {
		own.large = true
		return
	}
	told, widest := uint32(0), 0.0
	for _, c := range a.cells {
		widest = max(widest, c.margin-a.margin)
	}
	own.unseen += widest
	for e := range t.counting() {
		if a.tallyEpoch(own, e) {
			told |= 1 << e
		}
		above := a.common.mean[e] - a.common.reference
		own.low, own.high = min(own.low, above), max(own.high, above)
	}
	for j := range a.cells {
		c := &a.cells[j]
		own.add(t, c.at, &c.sight, told, a.common.reference)
		own.late.add(t, c.at, &c.sight, &a.common)
		way := 0.0 // packets on their way when an epoch begins, as far as the cell is settled
		for e := range t.epochs {
			for end, at := range t.windowEnds() {
				own.ends[end] += way / a.kept * float64(at>>e&1)
			}
			if c.has(e) {
				way += t.gone(c.at, e)
			}
		}
	}
}

// use reads the cells of a flow, and takes those that are not too full of other
// packets. It reports whether there are any, and they are wide enough.
func (a *accumulator) use(f int) bool {
	t, m := a.table, a.config.PerFlow
	at := a.at[f*m:][:m]
	a.cells, a.kept = a.cells[:m], 0
	for j := range a.cells {
		c := &a.cells[j]
		c.at, c.share, a.totals[j] = f*m+j, 0, t.total(f*m+j)
		if f < len(a.flows) {
			a.filled[f*m+j] += a.totals[j]
		}
		t.read(c.at, &c.sight)
		a.cells[slices.Index(at, at[j])].share += 1 / float64(m)
	}
	own := max(middle(a.totals)-a.common.full, 0) * float64(m) // which sorts them
	a.tallies[f].least += max(a.totals[0]-a.common.full, 0) * float64(m)
	if f < len(a.flows) {
		a.margin += margin(a.common.full+own/float64(m)) / float64(len(a.flows))
	}
	for j := range a.cells {
		c := &a.cells[j]
		if c.margin = margin(a.common.full + own*c.share); f >= len(a.flows) {
			c.margin = max(a.margin, c.margin) // or it would not have what the flows' cells may have of others
		}
	}
	a.cells = slices.DeleteFunc(a.cells, func(c flowCell) bool {
		return c.share == 0 || t.total(c.at) > a.common.full+own*c.share+c.margin
	})
	large, settled := 0.0, 0.0 // packets
	for j := range a.cells {
		c := &a.cells[j]
		a.kept += c.share
		for e := range t.epochs {
			n := t.packets(c.at, e)
			settled += n * float64(c.settled>>e&1)
			large += n * c.large[e]
		}
	}
	most := math.Ldexp(1, int(a.config.CountBits)-1) * float64(max(a.pairs, 1))
	tooMany := f < len(a.flows) && own > 0 && a.flows[f].Packets > most*float64(m)
	return len(a.cells) > 0 && !tooMany && large <= someLarge*settled
}

// tallyEpoch adds an epoch. The flow's settled cells stand for the others, by
// the packets in them. It reports whether they tell the mean delay of those that came.
func (a *accumulator) tallyEpoch(own *tally, e int) bool {
	const some = 5 // packets
	t, cells, typical := a.table, float64(len(a.cells)), a.common.cell[e]
	// Packets that came, were sent, and were sent to cells that are not settled; cells that are, packets in them, and their times.
	var x struct{ n, sent, open, settled, in, area float64 }
	for j := range a.cells {
		c := &a.cells[j]
		x.n += t.packets(c.at, e)
		x.sent += t.sent(c.at, e)
		if !c.has(e) {
			x.open += t.sent(c.at, e)
			continue
		}
		x.settled++
		x.in += t.packets(c.at, e)
		x.area += c.areas[e]
	}
	counted, passed := (x.n-cells*typical)/a.kept, (x.sent-cells*a.common.sent[e])/a.kept
	own.came += x.n / a.kept
	own.counted += counted
	own.passed += passed
	if t.blank>>e&1 != 0 { // what never came may have been in an epoch that is lost
		own.unread += max(passed, 0) * x.open / max(x.sent, 1)
	}
	if x.settled == 0 || x.in == 0 && x.n > some {
		expected := x.sent * a.common.gone[e]
		switch noise := 3*math.Sqrt(typical*float64(a.config.PerFlow)) + 3; {
		case counted <= noise: // none of the flow's
		case t.edge(e) && x.sent-x.n <= 2*expected+5*math.Sqrt(expected)+5: // like others: they were on their way
			own.unread += counted
		default:
			if own.dark == 0 {
				own.darkSpan.start = t.spans[e].start
			}
			own.darkSpan.end = t.spans[e].end
			own.dark += counted
		}
		return false
	}
	// Cells hold alike, but of many packets it is known how many they hold.
	stand := (x.n + some) / (x.in + some*x.settled/cells)
	scale := stand / a.kept
	own.epoch(x.area-x.in*a.common.reference, x.in, x.settled)
	above := x.area/max(x.in, 1) - a.common.reference
	own.sum += (stand*(x.area-x.in*a.common.reference) - cells*typical*(a.common.mean[e]-a.common.reference)) / a.kept
	// Each packet in a settled cell stands for this many.
	own.sampled += max(counted, 0) * max(x.in*scale*scale/max(x.n, 1)*a.kept-1, 1/a.kept-1, 0)
	left, unsure := max(counted, 0)*max(1/a.kept-1, 0), x.in*(stand-x.n/max(x.in, 1))/a.kept
	own.between += (left + unsure*unsure) * above * above
	return true
}
