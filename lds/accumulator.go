package lds

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/areas"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
)

// An Accumulator adds up the sketches of many intervals that packets cross. The zero value panics.
//
//	a, err := lds.NewAccumulator(config)
//	for each interval, in order {
//		err = a.Add(start, end, up, down)
//	}
//	r, err := a.Estimate(flow)
//
// It measures the time that packets spent on their way, for each packet received (see [areas.Areas]), exactly where nothing is
// lost. That differs from the mean delay of those received by what passed before the report began and after it ended. Intervals
// hold the mean delay, and are the wider for it: make reports much longer than packets take. What a lost packet leaves in doubt is
// when it was sent, between two cuts at which nothing was on its way in its cell. So the more often points compare, and the fewer
// packets are on their way in a cell at once, the less a loss costs: rows that sample help. Digests tell slow packets from lost
// ones; with 13 bits or fewer, slow packets count as lost.
//
// Add keeps room for what passes while the slowest packets are waited for, in some hundreds of intervals: short ones become one.
// An Accumulator is not safe for concurrent use.
type Accumulator struct {
	config   Config
	areas    *areas.Areas
	since    int64 // when the report began
	end      int64 // of the interval added last
	started  bool
	underWay bool // packets were on their way when it began
	from     int  // the cut after which what is not in whole begins
	first    int  // the cut at which the report began, -1 if it began before a gap

	whole   []total   // by cell, up to cut from
	all     []total   // of everything up to the end, if current
	known   []content // likewise
	clocks  error     // that they disagree
	late    bool      // packets that counted as lost in earlier reports may have come
	slower  bool      // some took longer than packets are waited for
	joined  float64   // time of packets that took nobody knows how long, for each received
	slowest float64   // the greatest delay known
	waited  float64   // for how long packets were waited for, at least, that count as lost
	differ  float64   // variance of the means of cells
	apart   float64   // how far means of cells are apart
	single  float64   // variance of the time of one packet
	spread  float64   // the same, as it was lately
	current bool
}

// NewAccumulator returns an Accumulator for sketches of the given Config. The error wraps [estimate.ErrConfig].
func NewAccumulator(c Config) (*Accumulator, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	n := c.Rows * c.Columns
	return &Accumulator{
		config: c, areas: areas.New(slices.Repeat([]int{c.Columns}, c.Rows), c.SumBits, c.DigestBits),
		whole: make([]total, n), all: make([]total, n), known: make([]content, n), waited: math.Inf(1),
	}, nil
}

// Add adds what both points saw of an interval, from its start to its end in nanoseconds by their clocks. If it does not begin
// where the last one ended, some are missing, and the packets that were on their way are left out. The error wraps
// [estimate.ErrMismatch] if a sketch has another Config or the two say that they are of different intervals, and
// [estimate.ErrOrder] if the interval does not end after it begins, or begins before the last one ended; nothing has changed then.
// Both points must cut at the same times, to within less than the least delay.
func (a *Accumulator) Add(start, end int64, up, down *Sketch) error {
	made(a != nil && a.areas != nil, "Accumulator")
	if err := match(up, down, true); err != nil {
		return err
	}
	if up.config != a.config {
		return mismatch(up.config, a.config)
	}
	if end <= start || a.started && start < a.end {
		return fmt.Errorf("lds: %w: an interval from %d to %d after %d", estimate.ErrOrder, start, end, a.end)
	}
	if a.started && start != a.end {
		a.Gap()
	}
	if !a.started {
		a.areas.Begin(start, a.underWay || strangers(up, down))
		a.since = start
	}
	a.end, a.started, a.underWay, a.current = end, true, false, false
	n, waited := a.areas.Thin(a.from, longest)
	for i := range up.cells {
		if u, d := &up.cells[i], &down.cells[i]; u.tally|d.tally != 0 {
			a.whole[i].tally += u.tally
			a.areas.Cut(i, areas.CellPair{SentSum: u.sum, SentTally: u.tally, ReceivedSum: d.sum, ReceivedTally: d.tally})
		}
	}
	a.areas.Next(end)
	if n-a.from >= 32 { // so that memory stays fixed
		a.fold(n, waited)
	}
	return nil
}

// strangers reports whether cells received packets in an interval that were sent before it.
func strangers(up, down *Sketch) bool {
	for i := range up.cells {
		if u, d := &up.cells[i], &down.cells[i]; d.count() >= u.count() && !same(u, d, up.config.DigestBits) {
			return true
		}
	}
	return false
}

// longest is how many intervals packets take at most: if they take longer, neighbouring intervals become one.
const longest = 90

// Gap says that the next interval does not follow the last one, whatever its time: a point was restarted, or
// its clock was set. The packets that were on their way are left out. If traffic flows already when the first
// interval begins, call Gap before: what was sent earlier would pass for copies. Add notices by itself if some
// cell gets at least as many packets as it is sent in the first interval, but not the same ones.
func (a *Accumulator) Gap() {
	a.underWay = true
	if !a.started {
		return
	}
	a.fold(a.areas.Cuts(), math.Inf(1))
	for i := range a.whole {
		t := &a.whole[i]
		t.lost += t.left // or on their way
		t.settle(t.left == 0)
		t.gone = t.gone.plus(t.ended)
		t.left, t.ended = 0, ages{}
	}
	a.from, a.first, a.started, a.current = 0, -1, false, false
}

// Reset begins the next report. The time that a packet is on its way counts in the report in which it passes.
func (a *Accumulator) Reset() {
	if a.started {
		a.fold(a.areas.Cuts(), math.Inf(1))
	}
	for i := range a.whole {
		t := &a.whole[i]
		*t = total{left: t.left, before: t.left, told: t.told + max(0, t.lost), open: pending{outstanding: t.open.outstanding}}
	}
	a.first, a.since, a.waited, a.clocks, a.current = a.from, a.end, math.Inf(1), nil, false
}

// fold adds what is known up to a cut to the whole, unless it turns out that it should wait for slower packets.
func (a *Accumulator) fold(to int, waited float64) {
	if to > a.from && a.take(a.whole, to, waited) {
		a.areas.Settle(to)
		a.from = to
	}
}

// take adds what is known from the last fold up to a cut, unless fold has to wait.
func (a *Accumulator) take(into []total, to int, waited float64) bool {
	t, err := a.areas.Transit(a.from, to, nil)
	if waited < 3*t.Greatest { // two patiences
		return false
	}
	a.waited = min(a.waited, waited)
	if a.slowest = max(a.slowest, t.Greatest); t.Joined == 0 { // where others join, cells that hide them seem far apart
		a.spread = t.Scatter
	}
	a.late, a.slower = t.Late > 0, t.Greatest > a.waited
	switch {
	case errors.Is(err, estimate.ErrClocks):
		a.clocks = fmt.Errorf("lds: %w", err)
	case err == nil && t.Mean < 0: // nothing distinguishes those lost from those yet to be sent
		a.clocks = errEarly
	case err == nil && t.Mean+t.Error < t.Hidden: // by more than chance
		a.clocks = errCopies
	}
	for i := range into {
		into[i].left, into[i].ended, into[i].seen = 0, ages{}, false
	}
	a.areas.Spans(a.from, to, func(s areas.Span) { into[s.Cell].add(&s, &a.config, a.from == a.first) })
	for i := range into {
		if t := &into[i]; !t.seen { // it was empty all the time
			t.over(t.open.outstanding)
		}
	}
	return true
}

func (a *Accumulator) complete() {
	if made(a != nil && a.areas != nil, "Accumulator"); a.current {
		return
	}
	if copy(a.all, a.whole); a.started && a.areas.Cuts() > a.from {
		a.take(a.all, a.areas.Cuts(), math.Inf(1))
	}
	var means, packets scatter
	var joined, times, sent, received [MaxRows]float64
	for i := range a.all {
		t, row := &a.all[i], i/a.config.Columns
		n, time := a.came(t)
		joined[row] += n
		times[row] += time
		sent[row] += float64(int(t.sent) + t.before)
		received[row] += float64(t.received)
		t.settle(t.open.deviation == 0)
		if x := &t.exact; x.packets > 0 {
			means.add(x.beyond/x.packets, 1)
			packets.add(x.beyond, x.packets)
		}
	}
	a.joined = 0
	for r, n := range joined {
		if n > 2 { // fewer may be copies
			a.joined = max(a.joined, times[r]/received[r])
		}
		if a.clocks != nil && received[r] > sent[r] {
			a.clocks = errCopies
		}
	}
	// Something is worth knowing if it is half of the mean.
	a.differ = means.variance()
	a.apart = math.Sqrt(max(a.differ, sq(means.sum/max(1, means.packets)/2)))
	a.single = max(packets.variance(), a.spread)
	b := a.borrow()
	for i := range a.all {
		if a.known[i] = a.all[i].content(&b); a.known[i].variance > 0 {
			a.known[i].believe(a.apart)
		}
	}
	a.current = true
}

var (
	errEarly  = fmt.Errorf("lds: %w: packets come before they are sent", estimate.ErrClocks)
	errCopies = fmt.Errorf("%w: packets that come twice, or after they were taken for lost, hide the others", errNoSamples)
	errEnds   = fmt.Errorf("%w: more packets were on their way as the report began and ended than came in it", errNoSamples)
)

// Estimate returns the delay of flow f over all intervals, from its cells as the function [Estimate] reads
// them. Between Overdue and Lost packets were lost: the outstanding ones are lost, or on their way.
//
// It returns [estimate.ErrNoSamples] if no cell of the flow tells anything, if more of its packets were on their way when the report
// began and ended than arrived in it, or if so many arrive twice that they hide the others. The error wraps [estimate.ErrClocks] if the
// points' clocks disagree: if one was set, or packets arrive before they are sent, on average, which hides losses.
func (a *Accumulator) Estimate(f hashing.Flow) (Result, error) {
	a.complete()
	c := &a.config
	result := a.tally(f)
	if a.clocks != nil {
		return result, a.clocks
	}
	var near [mostNearby]uint32
	var contents [mostNearby]content
	v := view{c, a.apart, a.single, contents[:0]}
	for _, at := range c.nearby(&near, f) {
		v.cells = append(v.cells, a.known[at])
	}
	switch {
	case result.Sent == 0:
		return result, errAbsent
	case math.IsInf(result.less, 1):
		return result, errEnds
	case !v.read(&result):
		return result, errUnlike
	}
	return result, nil
}

// tally returns what is known about a flow whether or not it has an answer. The time that its packets spent on
// their way in the report may be more and less than the sum of the delays of those received: by the ages, when
// it ended, of those then on their way, and when it began. Rows that sample have part of them.
func (a *Accumulator) tally(f hashing.Flow) (r Result) {
	c, full, told := &a.config, false, 0
	sent, received, most := math.Inf(1), math.Inf(1), math.Inf(1)
	for row, rate := range c.Rates[:c.Rows] {
		var all total
		late, back := 0.0, 0.0
		for offset := range c.Spread {
			t := &a.all[c.at(row, f, offset)]
			all.sent, all.received = all.sent+t.sent, all.received+t.received
			_, time := a.came(t)
			late += time
			back += float64(max(0, -t.lost)) * a.slowest
			all.lost, all.left, told = all.lost+t.lost, all.left+max(0, t.left)+int(t.hidden), told+t.told
			all.began, all.ended = all.began.plus(t.began), all.ended.plus(t.ended).plus(t.gone)
		}
		sent = min(sent, atMost(float64(all.sent), rate))
		received = min(received, atMost(float64(all.received), rate))
		if lost := atMost(float64(max(0, all.lost+all.left)), rate); lost < most {
			most = lost
			if r.Overdue = 0; rate == 1 {
				r.Overdue = uint64(max(0, all.lost))
			}
		}
		late /= max(1, float64(all.received))
		less, more := all.owes(rate)
		less += back
		switch {
		case rate == 1 && full:
			r.less, r.more, r.Late = min(r.less, less), min(r.more, more), min(r.Late, late)
		case rate == 1:
			r.less, r.more, r.Late, full = less, more, late, true
		case !full:
			r.less, r.more = max(r.less, less), max(r.more, more)
		}
	}
	r.Sent, r.Received, r.Lost = uint64(math.Round(sent)), uint64(math.Round(received)), uint64(math.Round(most))
	if r.Late = max(r.Late, a.joined); (a.slower || a.late && told > 0) && received > 0 {
		r.Late += most / received * float64(a.end-a.since) / 2
	}
	r.less, r.more = r.less/max(1, received), r.more/max(1, received)
	return r
}

// came returns how many packets of a cell came that were not sent or were taken for lost, and their time at most.
func (a *Accumulator) came(t *total) (n, time float64) {
	came := max(t.lost+max(0, t.left)-t.before-int(t.sent)+int(t.received), -t.lost)
	told := min(came, t.told+max(0, t.lost))
	return float64(came), float64(told)*float64(a.end-a.since) + float64(came)*a.slowest
}

// Decode estimates the mean delays of all flows over all intervals, as the function [Decode] does for one, with the same errors.
func (a *Accumulator) Decode(ctx context.Context, flows []joint.FlowRecord, opts joint.Options) (joint.Result, error) {
	a.complete()
	if a.clocks != nil {
		return joint.Result{}, a.clocks
	}
	d := decoding{Config: &a.config, at: func(i int) content { return a.known[i] }, single: a.single}
	d.late = func(f hashing.Flow, packets float64) float64 {
		r := a.tally(f)
		return r.Late + max(r.less, r.more)*max(1, float64(r.Received)/packets)
	}
	return d.solve(ctx, flows, opts)
}
