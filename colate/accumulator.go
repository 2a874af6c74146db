package colate

import (
	"fmt"
	"math"
	"slices"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
)

// absentFlows is the number of flows that never existed and that an
// accumulator follows beside those it was made for. Estimates of these are
// pure noise, so they calibrate the estimate of a flow: see
// [Result.MeanInterval].
const absentFlows = 199

// An accumulator follows some flows through the epochs of two points, one pair
// of epochs after another, and adds up the delays of the packets that both
// points recorded. Its size does not depend on the number of epochs.
type accumulator struct {
	config  Config // without the fields in which points may differ
	flows   []joint.FlowRecord
	at      []uint32 // counters: PerFlow for each flow, then those of absent flows
	order   []uint32 // cells, by counter
	table   *cellTable
	samples *sampling

	own       []tally
	absent    []absentTally // absentFlows for each flow
	reference float64       // a delay subtracted from those of all packets
	begun     bool
	epochs    int     // pairs added
	missing   int     // pairs in which only one point has packets
	unread    int     // pairs that could not be read
	sent      float64 // packets at the first point, in pairs that were read
	unseen    float64 // of these, in pairs in which the second has none
	scatter   scatter // of all packets

	// Of the current table: absent flows' cells, and what they say together.
	others  *sampleOfCells
	noise   []float32 // of each cell and epoch, what it adds to a sum
	common  common
	cells   []flowCell // of one flow
	scratch []float64
}

// A tally adds up what a flow's cells say, epoch by epoch: the delays of its
// packets above the reference, including the noise of others, which falls in
// the cells of absent flows alike.
type tally struct {
	sum     float64 // delays above the reference
	counted float64 // the flow's packets, less what a typical cell has
	passed  float64 // the same at the first point, with what was lost
	sampled float64 // Σ packets × how many each of those in settled cells stands for, less 1
	chance  float64 // of that, what their number adds, where it is not known better
	shown   float64 // the packets counted in settled cells, scaled to all
	told    float64 // and all the packets counted in those epochs
	usual   float64 // Σ packets × how much longer than the reference all packets took in these epochs
	cells   int     // settled cells and epochs
	large   bool    // its cells are too narrow
	scatter

	// Epochs on which the flow's cells are silent: like all others, which lost
	// much, or unlike them.
	filled, filling float64 // packets, and how much longer all took in these epochs
	dark            float64 // packets
	darkEpochs      int
	darkSpan        span
	low, high       float64 // of all packets' means, over the epochs
}

// An absentTally is the tally of an absent flow. Its cells take the places of
// the flow's, with the same weights.
type absentTally struct{ sum, counted float64 }

// A scatter is how far cells are from the mean of all: Σ squares over packets,
// Σ of these squared, and their degrees of freedom.
type scatter struct{ squares, fourths, degrees float64 }

// An offset is how far a cell is from the mean of all in the epochs between two
// cuts of equal level, which it answers for together.
type offset struct{ off, packets, epochs float64 }

func (o *offset) add(off, packets float64) {
	o.off += off
	o.packets += packets
	o.epochs++
}

// add adds an offset, and begins another.
func (s *scatter) add(o *offset) {
	if o.packets > 0 {
		square := o.off * o.off / o.packets * o.epochs
		s.squares += square
		s.fourths += square * square
		s.degrees += o.epochs
	}
	*o = offset{}
}

// variance returns the variance of a packet's delay.
func (s *scatter) variance() float64 { return s.squares / max(s.degrees, 1) }

// like returns the variance of a flow's delays, given the scatter of all: the
// flow's own, and as much of that of all as it may have had without its cells
// showing it. That is all of it where a few slow packets make it, of which cells
// like these show three or fewer.
func (s *scatter) like(all *scatter) float64 {
	shown := all.squares * all.squares / max(all.fourths, 1) * s.degrees / max(all.degrees, 1)
	return s.variance() + all.variance()*min(1, 3/max(shown, 1))
}

// A flowCell is one of a flow's cells in the current table.
type flowCell struct {
	sight
	share   float64 // of the flow's packets in it; 0 if the cell is not used
	areas   [room]float64
	weights [room]float64 // by which an epoch's excess adds to the flow's
	apart   offset
}

// newAccumulator returns an empty accumulator for flows at points of Config c.
// A record of 0 packets means that the flow's number of packets is unknown; it
// is then read from the counters, if they show it. The error wraps
// [estimate.ErrConfig].
func newAccumulator(c Config, flows []joint.FlowRecord) (*accumulator, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if len(flows) == 0 {
		return nil, estimate.Invalid("colate", "number of flows", 0, "at least 1")
	}
	m := c.PerFlow
	cells, noise := (len(flows)+absentFlows)*m, absentFlows*m
	a := &accumulator{
		config: c.comparable(), flows: slices.Clone(flows),
		at: make([]uint32, cells), order: make([]uint32, cells),
		table: newCellTable(c, cells, room), own: make([]tally, len(flows)), absent: make([]absentTally, len(flows)*absentFlows),
		noise: make([]float32, noise*room), cells: make([]flowCell, m), scratch: make([]float64, 2*m),
	}
	a.samples = newSampling(&a.config, flows, 0)
	a.others = newSampleOfCells(a.table, noise)
	for k := range a.others.cells {
		a.others.cells[k] = len(flows)*m + k
	}
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
	clear(a.own)
	clear(a.absent)
	a.reference, a.begun, a.scatter = 0, false, scatter{}
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

// add adds what two points recorded in the same epoch. Add epochs in order of
// time. It returns [estimate.ErrMismatch] if the Configs or the times of the
// epochs differ.
func (a *accumulator) add(up, down *Recorder) error {
	if err := matched(up, down, a.config); err != nil {
		return err
	}
	for i, at := range a.at {
		a.table.put(i, up.words[at], down.words[at])
	}
	s := up.span()
	if up.packets == 0 {
		s = down.span()
	}
	for i, r := range []*Recorder{up, down} {
		a.samples.whole(r, i == 1)
	}
	a.samples.match(s, min(up.limit, down.limit))
	a.end(s, up.packets, down.packets, true)
	return nil
}

func (r *Recorder) span() span { return span{r.start, r.start + r.config.Period} }

// matched returns why two epochs cannot be compared.
func matched(up, down *Recorder, c Config) error {
	for _, r := range []*Recorder{up, down} {
		if r.config.comparable() != c {
			return fmt.Errorf("colate: %w: epoch of %+v, not of %+v", estimate.ErrMismatch, r.config, c)
		}
	}
	if up.packets != 0 && down.packets != 0 && up.span() != down.span() {
		return fmt.Errorf("colate: %w: epochs of %d and %d ns from %d and %d on", estimate.ErrMismatch,
			up.config.Period, down.config.Period, up.start, down.start)
	}
	return nil
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
	a.common = a.others.learn()
	if !a.begun {
		a.reference, a.begun = a.common.usual, true
	}
	a.spreadNoise()
	for f := range a.flows {
		a.tally(f)
	}
	t.live = 0
}

// spreadNoise turns the areas of absent flows' cells into what they add to a
// sum of delays above the reference. A cell that is not settled is taken to be
// like all; the others stand for its noise.
func (a *accumulator) spreadNoise() {
	o, k := a.others, &a.common
	for i, cell := range o.cells {
		var apart offset
		for e := range a.table.epochs {
			n := a.table.packets(cell, e)
			y := n * (k.mean[e] - a.reference)
			if o.sights[i].begins>>e&1 != 0 {
				a.scatter.add(&apart)
			}
			if o.sights[i].settled>>e&1 != 0 {
				off := o.areas[i*room+e] - n*k.mean[e]
				y += off / math.Sqrt(max(k.seen[e], 0.01))
				if a.table.live>>e&1 != 0 && o.totals[i] <= k.limit {
					apart.add(off, n)
				}
			}
			a.noise[i*room+e] = float32(y)
		}
		a.scatter.add(&apart)
	}
}

// tally adds the epochs of the table to flow f, and to its absent flows.
func (a *accumulator) tally(f int) {
	t, own, m := a.table, &a.own[f], a.config.PerFlow
	limit := a.use(f)
	var lost [room]float64
	kept, cells := 0.0, 0.0
	for j := range a.cells {
		if c := &a.cells[j]; c.share > 0 {
			kept += c.share
			cells++
			t.losses(f*m+j, c.sight, &lost)
		}
	}
	if kept == 0 {
		own.large = true
		return
	}
	for e := range t.epochs {
		lost[e] /= cells
	}
	for j := range a.cells {
		a.cells[j].weigh(&lost, a.cells[j].weights[:t.epochs])
	}
	for e := range t.epochs {
		if t.live>>e&1 != 0 {
			a.tallyEpoch(own, f*m, e, kept, cells)
			own.low, own.high = min(own.low, a.common.mean[e]-a.reference), max(own.high, a.common.mean[e]-a.reference)
			continue
		}
		for j := range a.cells {
			a.cells[j].weights[e] = 0
		}
	}
	for j := range a.cells {
		own.scatter.add(&a.cells[j].apart)
	}
	a.tallyAbsent(f, limit, kept)
}

// use reads the cells of a flow, and leaves out those that are too full, of other
// packets or for their width. It returns how many packets a cell of an absent
// flow may have.
func (a *accumulator) use(f int) float64 {
	t, m := a.table, a.config.PerFlow
	totals, at := a.scratch[:m], a.at[f*m:][:m]
	for j := range a.cells {
		c := &a.cells[j]
		c.sight, c.share, totals[j] = t.read(f*m+j, c.areas[:]), 0, t.total(f*m+j)
		a.cells[slices.Index(at, at[j])].share += 1 / float64(m)
	}
	median := middle(totals, a.scratch[m:m])
	own := max(median-a.common.full, 0) * float64(m)
	most := math.Ldexp(1, int(a.config.CountBits)-1) * float64(max(a.epochs+a.missing, 1))
	large, settled := 0, 0
	for j := range a.cells {
		c := &a.cells[j]
		expected := a.common.full + own*c.share
		if totals[j] > expected+margin(expected) || a.flows[f].Packets*c.share > most {
			c.share = 0
		}
		for e := range t.epochs {
			if c.share > 0 && c.settled>>e&1 != 0 {
				settled++
				if math.Abs(c.areas[e]) > largestSum(&a.config) {
					large++
				}
			}
		}
	}
	if 20*large > settled {
		for j := range a.cells {
			a.cells[j].share = 0
		}
	}
	return a.common.full + margin(median)
}

// tallyEpoch adds an epoch. The flow's settled cells stand for the others, by
// the packets in them and the inverse of their chances.
func (a *accumulator) tallyEpoch(own *tally, first, e int, kept, cells float64) {
	t, typical := a.table, a.common.cell[e]
	var n, sent, in, area, settled, lost, expected float64
	for j := range a.cells {
		c := &a.cells[j]
		if c.share == 0 {
			continue
		}
		x, y := t.packets(first+j, e), t.sent(first+j, e)
		n += x
		sent += y
		lost += max(y-x, 0)
		expected += a.common.gone[e] * y
		if c.settled>>e&1 != 0 {
			settled += c.weights[e]
			in += c.weights[e] * x
			area += c.weights[e] * c.areas[e]
			own.cells++
		}
	}
	counted, passed := (n-cells*typical)/kept, (sent-cells*typical*math.Exp(a.common.loss[e]))/kept
	own.counted += counted
	own.passed += passed
	counted = max(counted, 0)
	const some = 20 // packets
	if settled == 0 || in == 0 && n > some {
		for j := range a.cells {
			a.cells[j].weights[e] = 0
		}
		a.silent(own, e, counted, passed, lost <= 2*expected+5*math.Sqrt(expected)+5)
		return
	}
	// Cells hold alike, but of many packets it is known how many they hold.
	stand := (n + some) / (in + some*settled/cells)
	own.told += n
	own.shown += in * cells / settled
	own.sum += stand * (area - in*a.reference) / kept
	own.usual += counted * (a.common.mean[e] - a.reference)
	own.degrees--
	stands := -1.0
	for j := range a.cells {
		c := &a.cells[j]
		if x := t.packets(first+j, e); c.share > 0 && c.settled>>e&1 != 0 {
			c.weights[e] *= stand / kept
			stands += c.weights[e] * c.weights[e] * x / max(n, 1) * kept
			if c.begins>>e&1 != 0 {
				own.scatter.add(&c.apart)
			}
			if in > 0 {
				c.apart.add(c.areas[e]-x*area/in, x)
			}
		} else {
			c.weights[e] = 0
		}
	}
	stands = max(stands, 1/kept-1, 0)
	own.sampled += counted * stands
	own.chance += max(1-counted*kept/max(n, 1), 0) * counted * stands
}

// silent adds an epoch in which the flow has no settled cell. If its packets
// were lost like those of others, they waited like them.
func (a *accumulator) silent(own *tally, e int, counted, passed float64, alike bool) {
	noise := 3*math.Sqrt(a.common.cell[e]*float64(a.config.PerFlow)) + 3
	if a.common.known[e] && (alike || passed < noise) {
		own.filled += counted
		own.filling += counted * (a.common.mean[e] - a.reference)
		return
	}
	if passed < noise {
		return
	}
	if own.darkEpochs++; own.darkEpochs == 1 {
		own.darkSpan.start = a.table.spans[e].start
	}
	own.darkSpan.end = a.table.spans[e].end
	own.dark += max(passed, 0)
}

// tallyAbsent adds what the flow's weights make of the cells of absent flows.
func (a *accumulator) tallyAbsent(f int, limit, kept float64) {
	m, t, usual := len(a.cells), a.table, 0.0
	for e := range t.epochs {
		if t.live>>e&1 != 0 {
			usual += a.common.cell[e]
		}
	}
	for i := range absentFlows {
		sum, counted, used := 0.0, 0.0, 0.0
		for j := range a.cells {
			c, k := &a.cells[j], i*m+j
			if c.share == 0 || a.others.totals[k] > limit {
				continue
			}
			used += c.share
			counted += a.others.totals[k] - usual
			noise := a.noise[k*room:][:t.epochs]
			for e, w := range c.weights[:t.epochs] {
				sum += w * float64(noise[e])
			}
		}
		scale := kept / max(used, 1e-9)
		to := &a.absent[f*absentFlows+i]
		to.sum += scale * sum
		to.counted += scale * counted / kept
	}
}
