package lds

import (
	"fmt"
	"math"
	"sync/atomic"

	"github.com/hoplag/hoplag/estimate"
)

// An Accumulator adds up what two points' sketches of interval after interval tell, in memory of a fixed size:
//
//	a, err := lds.NewAccumulator(config)
//	for each interval {
//		err := a.Add(number, up, down)
//	}
//	r, err := a.Estimate(flow)
//
// A loss spoils the cells that it fell in until the next comparison, not for good, and packets that cross the cuts
// between intervals spoil nothing where they arrive in the end ([estimate.Levels]). So points may compare often:
// at a loss of 1 %, a flow of thousands of packets that one comparison says nothing of has an answer from a hundred.
//
// For each cell it keeps the sums of a few runs of intervals in which all packets of the cell are accounted for, and
// how many packets were sent in each of 32 spans of time. From these [Accumulator.Estimate] and
// [Accumulator.Decode] find how much of each flow the runs hold: an answer says which share of the flow's packets it
// rests on, and a flow whose packets are in no run has none.
//
// It has a single writer and no locks. Functions that only read it may run at once while nobody writes.
type Accumulator struct {
	config Config
	levels *estimate.Levels
	cells  []history
	known  atomic.Pointer[summary] // nil after Add

	begun     bool
	last      uint64 // number of the interval added last
	intervals uint64
	missing   uint64
	perSpan   uint32 // intervals in a span of time

	sum, packets float64 // of all groups
}

// NewAccumulator returns an Accumulator for sketches of a Config. The error
// wraps [estimate.ErrConfig].
func NewAccumulator(c Config) (*Accumulator, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	n := c.Rows * c.Columns
	return &Accumulator{
		config: c, levels: estimate.NewLevels(n, c.SumBits, c.DigestBits), cells: make([]history, n), perSpan: 1,
	}, nil
}

// Config returns the configuration of the sketches.
func (a *Accumulator) Config() Config { return a.config }

// MemorySize is how many bytes the cells take, whatever is added: about 600
// each, 42 MB for 4 rows of 17,500.
func (a *Accumulator) MemorySize() int { return a.levels.MemorySize() + len(a.cells)*historySize }

// Intervals is how many intervals were added, and how many were missing
// between them.
func (a *Accumulator) Intervals() (added, missing uint64) { return a.intervals, a.missing }

// Add takes both points' sketches of an interval. Intervals are numbered; each
// is to be after the one before, or the error wraps [estimate.ErrOrder]. Where numbers
// are missing, answers are of the packets in the others, but for those that were
// on their way at either end of the gap.
// The error wraps [estimate.ErrMismatch] for sketches of another Config, and for
// those that say that they are of another interval. On error nothing is added.
func (a *Accumulator) Add(interval uint64, up, down *Sketch) error {
	for _, s := range []*Sketch{up, down} {
		if s.config != a.config {
			return mismatch(s.config, a.config)
		}
		if err := s.match(stamp{number: interval}); err != nil {
			return err
		}
	}
	if a.begun && interval <= a.last {
		return fmt.Errorf("lds: %w: %d after %d", estimate.ErrOrder, interval, a.last)
	}
	if a.begun && interval > a.last+1 {
		a.missing += interval - a.last - 1
		a.levels.Gap()
	}
	a.begun, a.last = true, interval
	a.intervals++
	cut := a.levels.Cuts() + 1
	if cut > spans*a.perSpan {
		a.perSpan *= 2
		for i := range a.cells {
			a.cells[i].fold(a.perSpan)
		}
	}
	span := (cut - 1) / a.perSpan
	for i := range up.cells {
		u, d := &up.cells[i], &down.cells[i]
		a.cells[i].pass(span, u.count(), d.count())
		group, ok := a.levels.Cut(i, estimate.CellPair{SentSum: u.sum, SentTally: u.tally, ReceivedSum: d.sum, ReceivedTally: d.tally})
		switch {
		case ok && a.fits(group):
			a.cells[i].extend(group, a.perSpan)
		case u.tally|d.tally == 0:
			a.cells[i].idle(cut)
		}
	}
	a.levels.Next()
	a.known.Store(nil)
	return nil
}

// fits reports whether the delays of a group's packets add up to no more than
// a sum holds. A cell in which some packet is always on its way has one group
// for many intervals, that its width need not be made for.
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

// Reset forgets everything.
func (a *Accumulator) Reset() {
	a.levels.Reset()
	clear(a.cells)
	a.known.Store(nil)
	a.begun, a.last, a.intervals, a.missing, a.perSpan = false, 0, 0, 0, 1
	a.sum, a.packets = 0, 0
}
