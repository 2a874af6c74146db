package colate

import (
	"fmt"
	"math"
	"slices"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
)

// absentFlows is the number of flows that never existed and that an
// accumulator follows beside its own. Estimates of these are pure noise, and
// calibrate those of a flow: see [Result.MeanInterval].
const absentFlows = 199

// An accumulator follows some flows through the epochs of two points. Its size does not
// depend on the number of epochs.
type accumulator struct {
	config  Config // without the fields in which points may differ
	flows   []joint.FlowRecord
	at      []uint32 // counters: PerFlow for each flow, then those of absent flows
	order   []uint32 // cells, by counter
	table   *cellTable
	samples *sampling

	tallies   []tally // of the flows, then of absent flows
	reference float64 // a delay subtracted from those of all packets
	begun     bool
	epochs    int     // pairs added
	missing   int     // pairs in which only one point has packets
	unread    int     // pairs that could not be read
	sent      float64 // packets at the first point, in pairs that were read
	unseen    float64 // of these, in pairs in which the second has none

	// Of the current table.
	common common
	cells  []flowCell // of one flow
	totals []float64  // of these
	margin float64    // of the flows' cells, on average
}

// A tally adds up what a flow's cells say, epoch by epoch: the delays of its
// packets above the reference, with the noise of others above what they have in
// a typical cell.
type tally struct {
	sum     float64 // delays above the reference
	noise   float64 // Σ weights of cells, squared, × margins: the variance of others' noise goes with it
	margin  float64 // packets of another flow that a cell may hold without being left out
	counted float64 // the flow's packets, less what a typical cell has
	passed  float64 // the same at the first point, with what was lost
	gone    float64 // packets that all of its cells lost
	sampled float64 // Σ packets × how many each of those in settled cells stands for, less 1
	between float64 // Σ squares by which the sum may be off, as it is not known how many packets are in cells left out
	shown   float64 // the packets counted in settled cells, scaled to all
	told    float64 // and all the packets counted in those epochs
	late    crossed
	large   bool // its cells are too narrow
	scatter

	unread     float64 // packets in epochs next to one that was not read, in which no cell of the flow is settled
	dark       float64 // and in others
	darkEpochs int
	darkSpan   span
	low, high  float64 // of all packets' means, over the epochs
}

// A flowCell is one of a flow's cells in the current table.
type flowCell struct {
	sight
	share  float64 // of the flow's packets in it; 0 if the cell is not used
	margin float64 // by how many packets it may be fuller than expected
	apart  [room]offset
}

// newAccumulator returns an empty accumulator for flows at points of Config c. The error
// wraps [estimate.ErrConfig].
func newAccumulator(c Config, flows []joint.FlowRecord) (*accumulator, error) {
	if len(flows) == 0 {
		return nil, estimate.Invalid("colate", "number of flows", 0, "at least 1")
	}
	m, all := c.PerFlow, len(flows)+absentFlows
	a := &accumulator{
		config: c.comparable(), flows: slices.Clone(flows), at: make([]uint32, all*m), order: make([]uint32, all*m),
		table: newCellTable(c, all*m, room), tallies: make([]tally, all), cells: make([]flowCell, m), totals: make([]float64, m),
	}
	a.samples = &sampling{config: &a.config}
	return a, a.aim(flows)
}

// aim empties the accumulator, which then follows as many other flows.
func (a *accumulator) aim(flows []joint.FlowRecord) error {
	c, m := &a.config, a.config.PerFlow
	for i, f := range flows {
		if !(f.Packets >= 0 && f.Packets < 1<<60) || !(f.Doubt >= 0 && f.Doubt < 1<<60) {
			return estimate.Invalid("colate", fmt.Sprintf("flow %d", i), f, "packets and doubt from 0 to 2^60")
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
	for i := range a.order {
		a.order[i] = uint32(i)
	}
	slices.SortFunc(a.order, func(i, j uint32) int { return int(a.at[i]) - int(a.at[j]) })
	a.table.keep(0)
	a.samples.aim(flows)
	clear(a.tallies)
	a.reference, a.begun, a.common = 0, false, common{}
	a.epochs, a.missing, a.unread, a.sent, a.unseen = 0, 0, 0, 0, 0
	return nil
}

// neighbour returns the counter that an absent flow has instead of this one.
// Any counter would do; one in the same block is read with it.
func (c *Config) neighbour(at uint32, absent int) uint32 {
	from, to := c.blockOf(int(at) / c.blockSize())
	length := to - from
	if length == 1 { // an odd one, at the end
		return uint32(absent % c.counters())
	}
	return uint32(from + (int(at)-from+1+absent%(length-1))%length)
}

// add adds a pair of epochs. Add them in order of time.
func (a *accumulator) add(up, down *Recorder, s span) {
	for i, at := range a.at {
		a.table.put(i, up.words[at], down.words[at])
	}
	a.samples.add(up, down, s)
	a.end(s, up.packets, down.packets, true)
}

// pair returns what two points recorded in one epoch, folded alike, and when that was.
// It returns [estimate.ErrMismatch] if the Configs or the times of the epochs differ.
func pair(up, down *Recorder) (*Recorder, *Recorder, span, error) {
	if err := made(up, down); err != nil {
		return nil, nil, span{}, err
	}
	up, down = alike(up, down)
	of := up
	if up.packets == 0 {
		of = down
	}
	s := span{of.start, of.start + of.config.Period}
	if a, b := up.config.comparable(), down.config.comparable(); a != b {
		return nil, nil, s, fmt.Errorf("colate: %w: epochs of %+v and %+v", estimate.ErrMismatch, a, b)
	}
	if down.packets != 0 && s != (span{down.start, down.start + down.config.Period}) {
		return nil, nil, s, fmt.Errorf("colate: %w: epochs of %d and %d ns from %d and %d on", estimate.ErrMismatch,
			up.config.Period, down.config.Period, up.start, down.start)
	}
	return up, down, s, nil
}

// end finishes a pair of epochs that was put into the table. If only the
// second point has packets, they were on their way. If only the first has,
// they were on their way or lost, perhaps together with the point's records.
// Such an epoch, and one that does not count, only helps to settle others.
func (a *accumulator) end(s span, up, down uint64, counts bool) {
	if counts {
		a.sent += float64(up)
		switch {
		case up > 0 && down > 0:
			a.epochs++
		case up > 0 || down > 0:
			a.missing++
		}
		if down == 0 {
			a.unseen += float64(up)
		}
	}
	a.table.end(s, counts && down > 0, a.flush)
}

// flush adds the epochs of the table that count to the tallies.
func (a *accumulator) flush() {
	t := a.table
	if t.live == 0 {
		return
	}
	a.common.learn(t, len(a.flows)*a.config.PerFlow, 1)
	if !a.begun {
		a.reference, a.begun = a.common.usual, true
	}
	a.margin = 0
	for f := range a.tallies {
		a.tally(f)
	}
	t.live = 0
}

// tally adds the epochs of the table to flow f.
func (a *accumulator) tally(f int) {
	t, own, m := a.table, &a.tallies[f], a.config.PerFlow
	wide, kept, cells, widest := a.use(f), 0.0, 0.0, 0.0
	for j := range a.cells {
		if c := &a.cells[j]; c.share > 0 {
			kept += c.share
			cells++
			widest = max(widest, c.margin)
		}
	}
	if !wide || kept == 0 {
		own.large = true
		return
	}
	own.margin += widest
	if f < len(a.flows) {
		a.lookBack(own, f*m)
	}
	for e := range t.epochs {
		if t.live>>e&1 != 0 {
			a.tallyEpoch(own, f*m, e, kept, cells)
			above := a.common.mean[e] - a.reference
			own.low, own.high = min(own.low, above), max(own.high, above)
		}
	}
	for j := range a.cells {
		own.take(a.cells[j].apart[:t.epochs])
	}
}

// lookBack looks for packets that were sent before the table, in a flow's own cells.
func (a *accumulator) lookBack(own *tally, first int) {
	mean := a.common.mean
	for e := range a.table.epochs {
		n, area := 0.0, 0.0
		for j := range a.cells {
			if a.cells[j].settled>>e&1 != 0 {
				n += a.table.packets(first+j, e)
				area += a.cells[j].areas[e]
			}
		}
		mean[e] = max(mean[e], area/max(n, 1))
	}
	for j := range a.cells {
		own.late.add(a.table, first+j, &a.cells[j].sight, &mean)
	}
}

// use reads the cells of a flow, and leaves out those that are too full of other
// packets. It reports whether they are wide enough.
func (a *accumulator) use(f int) bool {
	t, m := a.table, a.config.PerFlow
	at := a.at[f*m:][:m]
	for j := range a.cells {
		c := &a.cells[j]
		t.read(f*m+j, &c.sight)
		c.share, a.totals[j] = 0, t.total(f*m+j)
		a.cells[slices.Index(at, at[j])].share += 1 / float64(m)
	}
	median, own := middle(a.totals), 0.0
	if f < len(a.flows) {
		own = max(median-a.common.full, 0) * float64(m)
		a.margin += margin(a.common.full+own/float64(m)) / float64(len(a.flows))
	}
	most := math.Ldexp(1, int(a.config.CountBits)-1) * float64(max(a.epochs+a.missing, 1))
	tooMany := own > 0 && a.flows[f].Packets > most*float64(m)
	large, settled := 0, 0
	for j := range a.cells {
		c := &a.cells[j]
		expected := a.common.full + own*c.share
		if c.margin = margin(expected); f >= len(a.flows) {
			c.margin = a.margin
		}
		if t.total(f*m+j) > expected+c.margin {
			c.share = 0
		}
		for e := range t.epochs {
			if t.live>>e&1 != 0 {
				a.tallies[f].gone += t.gone(f*m+j, e)
			}
			if c.share > 0 && c.settled>>e&1 != 0 {
				settled++
				if math.Abs(c.areas[e]) > largestSum(&a.config) {
					large++
				}
			}
		}
	}
	return !tooMany && 20*large <= settled
}

// tallyEpoch adds an epoch. The flow's settled cells stand for the others, by
// the packets in them.
func (a *accumulator) tallyEpoch(own *tally, first, e int, kept, cells float64) {
	t, typical, above := a.table, a.common.cell[e], a.common.mean[e]-a.reference
	var n, sent, in, area, settled, stands, squares float64
	all := true
	for j := range a.cells {
		all = all && (a.cells[j].share == 0 || a.cells[j].settled>>e&1 != 0)
	}
	for j := range a.cells {
		c := &a.cells[j]
		if c.share == 0 {
			continue
		}
		x := t.packets(first+j, e)
		n += x
		sent += t.sent(first+j, e)
		if c.settled>>e&1 != 0 {
			settled++
			if all { // none stands for others
				c.stands[e] = 1
			}
			stands += c.stands[e]
			in += c.stands[e] * x
			squares += c.stands[e] * c.stands[e] * x
			area += c.stands[e] * c.areas[e]
		}
	}
	const some = 20 // packets
	counted, passed := (n-cells*typical)/kept, (sent-cells*a.common.sent[e])/kept
	own.counted += counted
	own.passed += passed
	if settled == 0 || in == 0 && n > some {
		expected := sent * a.common.gone[e]
		switch noise := 3*math.Sqrt(typical*float64(a.config.PerFlow)) + 3; {
		case passed <= noise: // none of the flow's
		case t.edge(e) && sent-n <= 2*expected+5*math.Sqrt(expected)+5: // like others: they were on their way
			own.unread += passed
		default:
			own.goDark(t.spans[e], passed)
		}
		return
	}
	// Cells hold alike, but of many packets it is known how many they hold.
	stand := (n + some) / (in + some*stands/cells)
	own.told += n
	own.shown += in * cells / stands
	own.sum += (stand*(area-in*a.reference) - cells*typical*above) / kept
	// Each packet in a settled cell stands for so many.
	scale := stand / kept
	own.sampled += max(counted, 0) * max(squares*scale*scale/max(n, 1)*kept-1, 1/kept-1, 0)
	mean := area/max(in, 1e-9) - a.reference
	left, unsure := max(counted, 0)*max(1/kept-1, 0), in*(stand-n/max(in, 1))/kept
	own.between += (left + unsure*unsure) * mean * mean
	own.degrees--
	for j := range a.cells {
		c := &a.cells[j]
		if c.share == 0 || c.settled>>e&1 == 0 {
			continue
		}
		x, w := t.packets(first+j, e), c.stands[e]
		own.noise += scale * scale * w * w * c.margin
		c.apart[c.set[e]].add(c.areas[e]-x*area/max(in, 1e-9), x, w)
	}
}

// goDark adds an epoch of which the flow's cells do not tell.
func (t *tally) goDark(epoch span, packets float64) {
	if t.darkEpochs++; t.darkEpochs == 1 {
		t.darkSpan.start = epoch.start
	}
	t.darkSpan.end = epoch.end
	t.dark += packets
}
