package lds

import (
	"fmt"
	"math"
	"sync/atomic"

	"github.com/hoplag/hoplag/estimate"
)

// An Accumulator adds up the sketches of many intervals in a fixed amount of
// memory:
//
//	a, err := lds.NewAccumulator(config)
//	for each interval {
//		err := a.Add(number, up, down)
//	}
//	r, err := a.Estimate(flow)
//
// A loss spoils its cells until the next comparison only. Packets that cross
// the cut between two intervals spoil nothing if they arrive later
// ([estimate.Levels]). So points may compare often: at a loss of 1 %, a
// hundred comparisons answer for a flow of thousands of packets of which one
// comparison says nothing.
//
// For each cell it keeps the sums of a few runs of intervals in which all
// packets of the cell are accounted for, and the number of packets sent in
// each of 16 spans of time. [Accumulator.Estimate] and [Accumulator.Decode]
// work out how much of each flow the runs hold. An answer reports the share of
// the flow's packets behind it, and a flow with no packets in any run has no
// answer.
//
// An Accumulator has a single writer and no locks. Methods that only read may
// run concurrently while nobody writes.
type Accumulator struct {
	config Config
	levels *estimate.Levels
	cells  []history
	losses []loss
	known  atomic.Pointer[summary] // nil after Add

	begun     bool
	reset     bool   // nothing was added since Reset
	began     uint32 // the cut after which losses are counted
	last      uint64 // number of the interval added last
	intervals uint64
	missing   uint64
	perSpan   uint32 // intervals per span of time

	sum, packets float64 // of all groups
}

// NewAccumulator returns an Accumulator for sketches of the given Config. The
// error wraps [estimate.ErrConfig].
func NewAccumulator(c Config) (*Accumulator, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	n := c.Rows * c.Columns
	a := &Accumulator{
		config: c, levels: estimate.NewLevels(n, c.SumBits, c.DigestBits), perSpan: 1,
		cells: make([]history, n), losses: make([]loss, n),
	}
	a.split()
	return a, nil
}

// Config returns the configuration of the sketches.
func (a *Accumulator) Config() Config { return a.config }

// MemorySize returns the number of bytes that the cells take. It does not
// grow: about 640 bytes a cell, 45 MB for 4 rows of 17,500.
func (a *Accumulator) MemorySize() int {
	return a.levels.MemorySize() + len(a.cells)*(historySize+lossSize)
}

// Intervals returns how many intervals were added, and how many were missing
// between them.
func (a *Accumulator) Intervals() (added, missing uint64) { return a.intervals, a.missing }

// Add adds both points' sketches of an interval. Interval numbers must rise,
// or the error wraps [estimate.ErrOrder]. If numbers are missing, answers
// cover the packets of the other intervals, except those that were on their
// way at either end of the gap. The error wraps [estimate.ErrMismatch] if a
// sketch has another Config or says that it is of another interval. On error
// nothing is added.
func (a *Accumulator) Add(interval uint64, up, down *Sketch) error {
	for _, s := range []*Sketch{up, down} {
		if s.config != a.config {
			return mismatch(s.config, a.config)
		}
		if err := s.match(stamp{number: interval}); err != nil {
			return err
		}
	}
	if a.begun && !a.reset && interval <= a.last {
		return fmt.Errorf("lds: %w: %d after %d", estimate.ErrOrder, interval, a.last)
	}
	if a.begun && interval != a.last+1 {
		if !a.reset {
			a.missing += interval - a.last - 1
		}
		a.Gap()
	}
	a.begun, a.reset, a.last = true, false, interval
	a.intervals++
	cut := a.levels.Cuts() + 1
	if cut > spans*a.perSpan {
		a.perSpan *= 2
		for i := range a.cells {
			a.cells[i].fold(a.perSpan)
		}
	}
	span := (cut - 1) / a.perSpan
	early := cut-a.began <= patience
	for i := range up.cells {
		u, d := &up.cells[i], &down.cells[i]
		a.cells[i].pass(span, u.count(), d.count())
		a.losses[i].pass(d.count(), early)
		group, ok := a.levels.Cut(i, estimate.CellPair{SentSum: u.sum, SentTally: u.tally, ReceivedSum: d.sum, ReceivedTally: d.tally})
		if ok && !a.losses[i].closed && a.config.DigestBits >= digestsTell {
			a.losses[i].close(group.Packets)
		}
		switch {
		case ok && a.fits(group):
			a.cells[i].extend(group, a.perSpan)
		case u.tally|d.tally == 0:
			a.cells[i].idle(cut)
		}
	}
	a.levels.Next()
	if (cut-a.began)%patience == 0 {
		a.mark()
	}
	a.known.Store(nil)
	return nil
}

// fits reports whether a sum is wide enough for the delays of a group's
// packets. If some packet of a cell is always on its way, one group spans many
// intervals, and sums need not be wide enough for that.
func (a *Accumulator) fits(g estimate.Group) bool {
	const margin = 8 // times the mean of all
	most := math.Ldexp(1, int(a.config.SumBits)-1)
	if a.packets > 0 && margin*math.Abs(a.sum/a.packets)*float64(g.Packets) > most {
		return false
	}
	a.sum += float64(g.Sum)
	a.packets += float64(g.Packets)
	return true
}

// Gap says that the next interval does not follow the last one, whatever its
// number: a point was restarted, or its clock was set. Packets that were on
// their way are in no answer, and may be lost.
func (a *Accumulator) Gap() {
	a.levels.Gap()
	a.split()
}

// Reset begins the next report, and forgets the intervals so far. If the next
// interval has the following number, the Accumulator remembers how many
// packets may be on their way; these belong to no report and do not count as
// lost. Otherwise any number is right.
func (a *Accumulator) Reset() {
	a.settle()
	a.levels.Reset()
	clear(a.cells)
	a.known.Store(nil)
	a.reset, a.intervals, a.missing, a.perSpan = true, 0, 0, 1
	a.sum, a.packets = 0, 0
}
