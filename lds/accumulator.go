package lds

import (
	"context"
	"fmt"
	"math"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
)

// An Accumulator adds up the sketches of many intervals, although packets cross
// from one to the next:
//
//	a, err := lds.NewAccumulator(config)
//	for each interval, in order {
//		err = a.Add(start, end, up, down)
//	}
//	r, err := a.Estimate(flow)
//
// It measures the time that packets spent on their way, for each packet received
// (see [estimate.Areas]). Without losses that is exact, however many packets cross
// the ends of intervals. What a lost packet leaves in doubt is when it was sent,
// between two cuts at which nothing was on its way in its cell. So the oftener points
// compare, and the fewer packets are on their way in a cell at once, the less a loss
// costs: rows that sample help.
//
// Add allocates room for the packets of as many intervals as the slowest packet
// takes, and uses it again. An Accumulator has a single writer and no locks.
type Accumulator struct {
	config  Config
	mask    uint64 // of the bits of a level
	cells   []follower
	begun   int64  // of the report
	now     moment // the end of the interval added last
	started bool

	when     [mostCuts]cutLoss
	longest  int64 // that a packet was on its way, by cuts
	shortest int64 // that some were, which all came

	whole   []total   // by cell, of what is settled
	all     []total   // of everything up to the end, if current
	known   []content // likewise
	apart   float64   // how far means of cells are apart
	current bool
}

// NewAccumulator returns an Accumulator for sketches of the given Config. The
// error wraps [estimate.ErrConfig].
func NewAccumulator(c Config) (*Accumulator, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	n := c.Rows * c.Columns
	return &Accumulator{
		config: c, mask: 1<<(32+c.DigestBits) - 1,
		cells: make([]follower, n), whole: make([]total, n), all: make([]total, n), known: make([]content, n),
	}, nil
}

// Add adds what both points saw of an interval, from its start to its end in
// nanoseconds by their clocks. If it does not begin where the last one ended, some
// are missing, and the packets that were on their way are left out. The error wraps
// [estimate.ErrMismatch] if a sketch has another Config or the two say that they
// are of different intervals, and [estimate.ErrOrder] if the interval ends before
// it begins, or begins before the last one ended; nothing has changed then.
func (a *Accumulator) Add(start, end int64, up, down *Sketch) error {
	if err := match(up, down); err != nil {
		return err
	}
	if up.config != a.config {
		return mismatch(up.config, a.config)
	}
	if end < start || a.started && start < a.now.at {
		return fmt.Errorf("lds: %w: an interval from %d to %d after %d", estimate.ErrOrder, start, end, a.now.at)
	}
	if a.started && start != a.now.at {
		a.Gap()
	}
	if !a.started {
		a.begun = start
		for i := range a.cells {
			a.cells[i].base = moment{a.now.cut, start}
		}
	}
	a.now, a.started, a.current = moment{a.now.cut + 1, end}, true, false
	a.when[a.now.cut%mostCuts] = cutLoss{end: end}
	for i := range up.cells {
		a.cells[i].cut(a, &a.whole[i], &up.cells[i], &down.cells[i])
	}
	return nil
}

// patience returns how long a packet may be on its way before it counts as lost:
// half as long again as any packet that was alone in its cell.
func (a *Accumulator) patience() float64 {
	switch {
	case a.longest > 0:
		return 1.5 * float64(a.longest)
	case a.shortest > 0:
		return 4 * float64(a.shortest)
	}
	return math.Inf(1)
}

// Gap says that the next interval does not follow the last one, whatever its
// time: a point was restarted, or its clock was set. The packets that were on their
// way are left out, then and if an Accumulator begins with a Gap.
func (a *Accumulator) Gap() {
	for i := range a.cells {
		f := &a.cells[i]
		a.whole[i].lost += outstanding(f.level) // or on their way
		a.unsettled(&a.whole[i], f)
		f.lapse(a.now)
	}
	a.started, a.current = false, false
}

// Reset begins the next report. Packets on their way belong to the report in which
// their cell settles.
func (a *Accumulator) Reset() {
	for i := range a.cells {
		f := &a.cells[i]
		if f.base.at < a.begun {
			f.lapse(a.now) // has not settled in a whole report
		}
		f.gone.earlier = f.gone.packets > 0
	}
	clear(a.whole)
	a.begun, a.current = a.now.at, false
	a.longest -= a.longest / 4
}

// Config returns the configuration of the sketches.
func (a *Accumulator) Config() Config { return a.config }

// complete adds up the whole report.
func (a *Accumulator) complete() {
	if a.current {
		return
	}
	for i := range a.cells {
		a.all[i] = a.whole[i]
		a.unsettled(&a.all[i], &a.cells[i])
	}
	var means, lossy scatter
	for i := range a.all {
		if x, y := &a.all[i].exact, &a.all[i].lossy; x.packets > 0 {
			means.add(x.beyond/x.packets, 1, 0)
		} else if y.packets > 0 {
			lossy.add(y.beyond/y.packets, 1, y.variance/sq(y.packets))
		}
	}
	if means.cells < 2 {
		means = lossy
	}
	// Something is worth knowing if it is half of the mean.
	a.apart = math.Sqrt(max(means.variance(), sq(means.sum/max(1, means.packets)/2)))
	b := a.borrow()
	for i := range a.all {
		x := a.all[i].content(&b)
		if x.variance > 0 {
			x.believe(a.apart)
		}
		a.known[i] = x
	}
	a.current = true
}

// Estimate returns the delay of flow f over all intervals, from its cells as the
// function [Estimate] reads them. Lost is at least Overdue and at most Lost: the
// packets outstanding in the flow's cells are lost, or on their way.
//
// It returns [estimate.ErrNoSamples] if no cell of the flow tells anything.
func (a *Accumulator) Estimate(f hashing.Flow) (Result, error) {
	a.complete()
	c := &a.config
	result := a.tally(f)
	var near [mostNearby]uint32
	var contents [mostNearby]content
	list := c.nearby(&near, f)
	v := view{c, a.apart, contents[:len(list)]}
	for i, at := range list {
		v.cells[i] = a.known[at]
	}
	if result.Sent == 0 || !v.read(&result) {
		return result, errNoSamples
	}
	return result, nil
}

// tally returns what is known about a flow whether or not it has an answer.
func (a *Accumulator) tally(f hashing.Flow) (r Result) {
	c := &a.config
	sent, received, most := math.Inf(1), math.Inf(1), math.Inf(1)
	for row, rate := range c.Rates[:c.Rows] {
		var all total
		left := 0
		for offset := range c.Spread {
			at := c.at(row, f, offset)
			t := &a.all[at]
			all.sent += t.sent
			all.received += t.received
			all.lost += t.lost
			left += max(0, outstanding(a.cells[at].level))
		}
		sent = min(sent, atMost(float64(all.sent), rate))
		received = min(received, atMost(float64(all.received), rate))
		if lost := atMost(float64(max(0, all.lost+left)), rate); lost < most {
			most = lost
			if r.Overdue = 0; rate == 1 {
				r.Overdue = uint64(max(0, all.lost))
			}
		}
	}
	r.Sent, r.Received, r.Lost = uint64(math.Round(sent)), uint64(math.Round(received)), uint64(math.Round(most))
	return r
}

// Decode estimates the mean delays of all flows over all intervals together,
// as the function [Decode] does for one interval, with the same errors.
func (a *Accumulator) Decode(ctx context.Context, flows []joint.FlowRecord, opts joint.Options) (joint.Result, error) {
	a.complete()
	sent := make([]uint64, len(a.all))
	for i := range sent {
		sent[i] = a.all[i].sent
	}
	d := decoding{Config: &a.config, held: sent, at: func(i int) content { return a.known[i] }, read: a.Estimate}
	return d.solve(ctx, flows, opts)
}
