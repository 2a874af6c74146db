package colate

import (
	"fmt"
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
	config Config // without the fields in which points may differ
	flows  []joint.FlowRecord
	at     []uint32 // counters: PerFlow for each flow, then those of absent flows
	order  []uint32 // cells, by counter
	table  *cellTable

	parts     []float64 // of a flow's packets, for each of its cells; the first of two in one place has both
	own       []tally
	absent    []absentTally // absentFlows for each flow
	spreads   [absentFlows]spread
	trend     trend
	reference float64 // a delay subtracted from those of all packets
	begun     bool
	epochs    int     // pairs added
	missing   int     // pairs in which only one point has packets
	unread    int     // pairs that could not be read
	sent      float64 // packets at the first point, in pairs that were read
	unseen    float64 // of these, in pairs in which the second has none

	// Of the current table: what absent flows' cells show, their areas and
	// numbers of packets, and what they say together.
	sights  []sight
	areas   []float64
	totals  []float64
	noise   []float32 // of each cell and epoch, what it adds to a sum
	common  common
	cells   []flowCell // of one flow
	scratch []float64
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
		table: newCellTable(c, cells, room),
		parts: make([]float64, len(flows)*m),
		own:   make([]tally, len(flows)), absent: make([]absentTally, len(flows)*absentFlows),
		sights: make([]sight, noise), areas: make([]float64, noise*room), totals: make([]float64, noise),
		noise: make([]float32, noise*room), cells: make([]flowCell, m), scratch: make([]float64, noise),
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
			at := a.at[i*m:][:m]
			at[j] = c.place(f.Flow, j)
			a.parts[i*m+j] = 0
			a.parts[i*m+slices.Index(at, at[j])] += c.part(j)
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
	clear(a.own)
	clear(a.absent)
	a.spreads, a.trend, a.reference, a.begun = [absentFlows]spread{}, trend{}, 0, false
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

// read returns the fraction of the packets that is in epochs read at both
// points.
func (a *accumulator) read() float64 {
	pairs := float64(a.epochs + a.missing)
	return (1 - a.unseen/max(a.sent, 1)) * pairs / max(pairs+float64(a.unread), 1)
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
	r := up
	if up.packets == 0 {
		r = down
	}
	a.end(span{r.start, r.start + r.config.Period}, up.packets, down.packets, true)
	return nil
}

// matched returns why two epochs cannot be compared.
func matched(up, down *Recorder, c Config) error {
	for _, r := range []*Recorder{up, down} {
		if r.config.comparable() != c {
			return fmt.Errorf("colate: %w: epoch of %+v, not of %+v", estimate.ErrMismatch, r.config, c)
		}
	}
	if up.packets != 0 && down.packets != 0 && (up.start != down.start || up.config.Period != down.config.Period) {
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
	if a.table.live == 0 {
		return
	}
	t, first := a.table, len(a.flows)*a.config.PerFlow
	for k := range a.sights {
		a.sights[k] = t.read(first+k, a.areas[k*room:])
		a.totals[k] = t.total(first + k)
	}
	a.common = t.common(len(a.sights), func(k int) int { return first + k }, a.sights, a.areas, a.totals, a.scratch)
	if !a.begun {
		a.reference, a.begun = a.common.usual, true
	}
	a.spreadNoise()
	a.trend.add(t, &a.common)
	for f := range a.flows {
		a.tally(f)
	}
	t.live = 0
}
