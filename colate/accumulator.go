package colate

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
)

// absentFlows is the number of flows that never existed and that an
// [Accumulator] follows beside each flow it was made for. Estimates of these
// are pure noise, so they calibrate the estimate of the flow: see
// [Result.MeanInterval].
const absentFlows = 199

// An Accumulator follows some flows through the epochs of two points, one pair
// of epochs after another, and adds up the delays of the packets that both
// points recorded.
//
//	a, err := colate.NewAccumulator(config, flows)
//	for each minute {
//		err = a.Add(up, down)
//	}
//	r, err := a.Estimate(0) // of flows[0]
//
// Its size does not depend on the number of epochs: some 10 MB for one flow of
// [DefaultConfig], and 80 kB for each further flow.
//
// It has a single writer and no locks.
type Accumulator struct {
	config Config // without the fields in which points may differ
	flows  []joint.FlowRecord
	at     []uint32 // counters: PerFlow for each flow, then those of absent flows
	order  []uint32 // cells, by counter
	table  *cellTable

	own       []ownTally
	absent    []tally // absentFlows for each flow
	reference float64 // a delay subtracted from those of all packets, for precision
	begun     bool
	epochs    int     // pairs added
	missing   int     // pairs in which only one point has packets
	unread    int     // pairs that could not be read
	sent      float64 // packets at the first point, in pairs that were read
	unseen    float64 // of these, in pairs in which the second has none

	// Of the current chunk: groups of each cell, and its number of packets.
	groups [][]group
	memory []group
	totals []float64
	common common
	sorted []float64 // scratch
}

// NewAccumulator returns an empty Accumulator for flows at points of Config c.
// A record of 0 packets means that the flow's number of packets is unknown; it
// is then read from the counters, if they show it. The error wraps
// [estimate.ErrConfig].
func NewAccumulator(c Config, flows []joint.FlowRecord) (*Accumulator, error) {
	return newAccumulator(c, flows, mostCuts)
}

// newAccumulator returns an Accumulator that matches the given number of
// epochs at a time.
func newAccumulator(c Config, flows []joint.FlowRecord, room int) (*Accumulator, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if len(flows) == 0 {
		return nil, estimate.Invalid("colate", "number of flows", 0, "at least 1")
	}
	for i, f := range flows {
		if !(f.Packets >= 0 && f.Packets < 1<<60) || !(f.Doubt >= 0 && f.Doubt < 1<<60) {
			return nil, estimate.Invalid("colate", fmt.Sprintf("flow %d", i), f, "packets and doubt from 0 to 2^60")
		}
	}
	m := c.PerFlow
	cells := (len(flows) + absentFlows) * m
	a := &Accumulator{
		config: c.comparable(), flows: slices.Clone(flows),
		at: make([]uint32, cells), order: make([]uint32, cells),
		table: newCellTable(c, cells, room),
		own:   make([]ownTally, len(flows)), absent: make([]tally, len(flows)*absentFlows),
		groups: make([][]group, cells), totals: make([]float64, cells),
	}
	for i, f := range flows {
		for j := range m {
			a.at[i*m+j] = uint32(position(c.Identity, f.Flow, uint64(j), uint64(c.Counters)))
		}
	}
	for i := range absentFlows {
		for j := range m {
			a.at[(len(flows)+i)*m+j] = c.neighbour(a.at[j], i)
		}
	}
	for i := range a.order {
		a.order[i] = uint32(i)
	}
	slices.SortFunc(a.order, func(i, j uint32) int { return int(a.at[i]) - int(a.at[j]) })
	return a, nil
}

// neighbour returns the counter that an absent flow has instead of this one.
// Any counter would do; one in the same block is read with it.
func (c *Config) neighbour(at uint32, absent int) uint32 {
	from, to := c.blockOf(int(at) / c.blockSize())
	length := to - from
	if length == 1 { // an odd one, at the end
		return uint32(absent % c.Counters)
	}
	return uint32(from + (int(at)-from+1+absent%(length-1))%length)
}

// Reset empties the accumulator. It then follows other flows, as many as
// before.
func (a *Accumulator) Reset() {
	a.table.clear()
	clear(a.own)
	clear(a.absent)
	a.begun, a.epochs, a.missing, a.unread = false, 0, 0, 0
	a.sent, a.unseen, a.reference = 0, 0, 0
}

// Config returns the configuration that epochs must have to be added.
func (a *Accumulator) Config() Config { return a.config }

// Epochs returns how many pairs of epochs were added, and how many times only
// one point's epoch was available.
func (a *Accumulator) Epochs() (pairs, missing int) { return a.epochs, a.missing + a.unread }

// read returns the fraction of the packets that is in epochs read at both
// points.
func (a *Accumulator) read() float64 {
	pairs := float64(a.epochs + a.missing)
	return (1 - a.unseen/a.sent) * pairs / (pairs + float64(a.unread))
}

// Add adds what two points recorded in the same epoch. Add epochs in order of
// time. It returns [estimate.ErrMismatch] if the Configs or the times of the
// epochs differ.
func (a *Accumulator) Add(up, down *Recorder) error {
	for _, r := range []*Recorder{up, down} {
		if r.config.comparable() != a.config {
			return fmt.Errorf("colate: %w: epoch of %+v, accumulator of %+v", estimate.ErrMismatch, r.config, a.config)
		}
	}
	both := up.packets != 0 && down.packets != 0
	if both && (up.start != down.start || up.config.Period != down.config.Period) {
		return fmt.Errorf("colate: %w: epochs of %d and %d ns from %d and %d on", estimate.ErrMismatch,
			up.config.Period, down.config.Period, up.start, down.start)
	}
	for i, at := range a.at {
		a.table.put(i, up.words[at], down.words[at])
	}
	a.end(up.packets, down.packets)
	return nil
}

// end finishes a pair of epochs that was put into the table. If only the
// second point has packets, they were on their way. If only the first has,
// they were on their way or lost, perhaps together with the point's records.
func (a *Accumulator) end(up, down uint64) {
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
	if a.table.epochs++; a.table.epochs == a.table.room {
		a.flush()
	}
}

// flush adds the table to the tallies, and empties it.
func (a *Accumulator) flush() {
	if a.table.epochs == 0 {
		return
	}
	a.memory = a.memory[:0]
	for i := range a.groups {
		a.totals[i] = a.table.total(i)
		from := len(a.memory)
		a.memory = a.table.groups(a.memory, i)
		a.groups[i] = a.memory[from:len(a.memory):len(a.memory)]
	}
	m := a.config.PerFlow
	typical := a.middle(a.totals[len(a.flows)*m:])
	if !a.begun {
		a.reference, a.begun = a.meanDelay(), true
	}
	_, limit := limits(typical, typical)
	a.learn(limit)
	for f := range a.flows {
		a.tallyFlow(f, typical)
	}
	a.table.clear()
}

// meanDelay returns the mean delay of the packets in absent flows' groups.
func (a *Accumulator) meanDelay() float64 {
	sum, n := 0.0, 0.0
	for _, groups := range a.groups[len(a.flows)*a.config.PerFlow:] {
		for i := range groups {
			sum += groups[i].sum
			n += float64(groups[i].count)
		}
	}
	return sum / max(n, 1)
}

// limits returns the largest numbers of packets with which a cell is used: for
// a flow with this median, and for an absent flow, given what others typically
// have. They allow three deviations more, of a Poisson number. A fuller cell
// is shared with an elephant, which gives itself away by its count, whatever
// its delay.
func limits(median, typical float64) (own, absent float64) {
	room := 3*math.Sqrt(median) + 2
	return median + room, typical + room
}

// middle returns the median.
func (a *Accumulator) middle(totals []float64) float64 {
	a.sorted = append(a.sorted[:0], totals...)
	slices.Sort(a.sorted)
	return a.sorted[len(a.sorted)/2]
}

// tallyFlow adds the table's groups of one flow, and those of all absent flows
// that stand in for it: in the same places, where its own packets allow a
// group. So noise affects them as it affects the flow.
func (a *Accumulator) tallyFlow(f int, typical float64) {
	m := a.config.PerFlow
	first := f * m
	var masks [MaxPerFlow]uint64
	limit, limitAbsent := limits(a.middle(a.totals[first:first+a.config.full()]), typical)
	thin := a.choose(masks[:m], first, limit, typical)
	own := &a.own[f]
	var v view
	a.look(&v, first, masks[:m], limit, thin)
	sums := a.gather(&own.tally, &v, first, masks[:m], limit)
	own.large += a.large(first, masks[:m], limit)
	told := uint64(0)
	for e := range a.table.epochs {
		if v.told(e) {
			told |= 1 << e
			own.reached += v.plain[e] / v.parts[e]
		}
	}
	own.settle(&v, &a.common, told, a.table.epochs)
	gone := a.gone(first, limit)
	own.shade.add(&v, &a.common, &gone, thin, a.table.epochs)
	own.addFourth(a.groups[first:first+m], masks[:m], a.reference, &sums)
	for i := range absentFlows {
		t, first := &a.absent[f*absentFlows+i], (len(a.flows)+i)*m
		a.look(&v, first, masks[:m], limitAbsent, thin)
		a.gather(t, &v, first, masks[:m], limitAbsent)
		t.settle(&v, &a.common, told, a.table.epochs)
	}
}

// choose decides which epochs each cell of a flow speaks for. Full cells speak
// for all that they can. The thickest of the thin cells speak for the rest, if
// most of the packets in them are the flow's. It returns the epochs left to
// thin cells.
func (a *Accumulator) choose(masks []uint64, first int, limit, typical float64) (thin uint64) {
	full, told, kept := a.config.full(), uint64(0), 0.0
	var own [mostCuts]float64
	for j := range full {
		if a.totals[first+j] <= limit {
			masks[j] = cover(a.groups[first+j])
			told |= a.occupied(first+j, masks[j])
			kept += a.config.part(j)
			for e := range a.table.epochs {
				own[e] += a.table.packets(first+j, e) - a.common.epochs[e].cell
			}
		}
	}
	for j := full; j < len(masks); j++ {
		part := a.config.part(j) / max(kept, a.config.part(0))
		expected, mostly := typical, uint64(0)
		for e := range a.table.epochs {
			expected += max(own[e], 0) * part
			if own[e]*part >= max(a.common.epochs[e].cell, leastThin) {
				mostly |= 1 << e
			}
		}
		if limit, _ := limits(expected, 0); a.totals[first+j] > limit {
			continue
		}
		for i := range a.groups[first+j] {
			if g := &a.groups[first+j][i]; g.mask&told == 0 && g.mask&^mostly == 0 {
				masks[j] |= g.mask
			}
		}
		occupied := a.occupied(first+j, masks[j])
		told |= occupied
		thin |= occupied
	}
	return thin
}

// leastThin is the smallest number of a flow's packets expected in a thin cell
// and epoch: fewer would stand for too many.
const leastThin = 4

// occupied returns the epochs of a mask in which a cell has packets.
func (a *Accumulator) occupied(cell int, mask uint64) (in uint64) {
	for ; mask != 0; mask &= mask - 1 {
		if e := bits.TrailingZeros64(mask); a.table.packets(cell, e) > 0 {
			in |= 1 << e
		}
	}
	return in
}

// gone returns how many packets a flow's cells lost in each epoch, or had on
// their way at its end but not at its beginning.
func (a *Accumulator) gone(first int, limit float64) (gone [mostCuts]float64) {
	kept := 0.0
	for j := range a.config.full() {
		if a.totals[first+j] <= limit {
			kept += a.config.part(j)
			for e := range a.table.epochs {
				gone[e] += a.table.gone(first+j, e)
			}
		}
	}
	for e := range gone {
		gone[e] /= max(kept, a.config.part(0))
	}
	return gone
}

// look collects what the cells of a flow say about each epoch, from groups
// that lie within the masks.
func (a *Accumulator) look(v *view, first int, masks []uint64, limit float64, thin uint64) {
	*v = view{}
	kept, full := 0.0, a.config.full()
	for j := range full {
		if a.totals[first+j] <= limit {
			kept++
			for e := range a.table.epochs {
				v.present[e] += a.table.packets(first+j, e)
			}
		}
	}
	a.each(first, masks, limit, func(j int, g *group) {
		if v.plainly(g, a.table, first+j, a.config.part(j)); j < full {
			v.cover(g.mask)
		}
	})
	v.open(kept, thin)
	a.each(first, masks, limit, func(j int, g *group) { v.count(g, a.table, first+j) })
	taken := max(kept, 1) * a.config.part(0)
	for e := range a.table.epochs {
		v.present[e] /= taken
		if v.stands[e] = v.present[e]; thin>>e&1 != 0 && v.told(e) {
			// Others have as many packets in a thin cell as in a full one.
			v.stands[e] = max(v.present[e]+a.common.epochs[e].cell*(1/v.parts[e]-1/a.config.part(0)), 0)
		}
	}
}

// each calls f for the groups of a flow's cells that lie within the masks.
func (a *Accumulator) each(first int, masks []uint64, limit float64, f func(j int, g *group)) {
	for j, mask := range masks {
		if a.totals[first+j] > limit {
			continue
		}
		for i := range a.groups[first+j] {
			if g := &a.groups[first+j][i]; g.mask&^mask == 0 {
				f(j, g)
			}
		}
	}
}

// gather adds these groups.
func (a *Accumulator) gather(t *tally, v *view, first int, masks []uint64, limit float64) (sums epochSums) {
	a.each(first, masks, limit, func(j int, g *group) {
		if t.seen = true; g.count > 0 {
			t.add(g, v.add(g, a.table, first+j, a.reference), a.reference, &sums)
		}
	})
	t.addSpread(sums[:a.table.epochs], v)
	return sums
}

// large returns how many groups may have wrapped.
func (a *Accumulator) large(first int, masks []uint64, limit float64) (n float64) {
	largest := math.Ldexp(a.config.Unit(), int(a.config.sumBits())-3)
	a.each(first, masks, limit, func(_ int, g *group) {
		if g.count > 0 && math.Abs(g.sum) > largest {
			n++
		}
	})
	return n
}
