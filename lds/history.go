package lds

import (
	"math"

	"github.com/hoplag/hoplag/estimate"
)

const (
	spans       = 16 // of time; a cell counts the packets of each
	maxRuns     = 20
	historySize = 4*spans + 24*maxRuns + 16
)

// A history is what an Accumulator keeps of a cell: how many packets were sent
// in each span of time, and runs of intervals, disjoint and in order of time.
type history struct {
	sent     [spans]uint32
	runs     [maxRuns]run
	used     uint32
	received uint64
}

// A run is a series of intervals in which all packets of a cell are accounted
// for: the sum of their delays, and their number. It covers the intervals
// after the cut from, up to the cut to, except for holes: covered of them
// count.
type run struct {
	sum               float64
	packets           uint32
	from, to, covered uint32
}

// pass counts the packets of an interval.
func (h *history) pass(span uint32, sent, received uint32) {
	if h.sent[span] += sent; h.sent[span] < sent {
		h.sent[span] = math.MaxUint32
	}
	h.received += uint64(received)
}

// fold makes spans twice as long, which leaves the later half of them empty.
func (h *history) fold(perSpan uint32) {
	for i := range spans / 2 {
		a, b := h.sent[2*i], h.sent[2*i+1]
		if h.sent[i] = a + b; a+b < a {
			h.sent[i] = math.MaxUint32
		}
	}
	clear(h.sent[spans/2:])
	runs := h.runs
	n := h.used
	h.used = 0
	for _, r := range runs[:n] {
		h.push(r, perSpan)
	}
}

// extend adds a group of packets as a run. A group that was handed out earlier
// for the same intervals is part of the same run.
func (h *history) extend(g estimate.Group, perSpan uint32) {
	next := run{sum: float64(g.Sum), packets: g.Packets, from: g.From, to: g.To, covered: g.To - g.From}
	for h.used > 0 && h.runs[h.used-1].to > g.From {
		h.used--
		inner := &h.runs[h.used]
		next.sum += inner.sum
		next.packets += inner.packets
		if inner.from < next.from {
			next.covered += inner.covered - min(inner.covered, inner.to-next.from)
			next.from = inner.from
		}
	}
	h.push(next, perSpan)
}

// push appends a run. It joins two successive runs if one of them lies within
// a span of time that the other reaches into.
func (h *history) push(next run, perSpan uint32) {
	if h.used > 0 {
		last := &h.runs[h.used-1]
		end, begin := (last.to-1)/perSpan, next.from/perSpan
		if last.to == next.from && end == begin && (last.from/perSpan == end || (next.to-1)/perSpan == begin) {
			*last = last.with(next)
			return
		}
	}
	if h.used == maxRuns {
		h.merge()
	}
	h.runs[h.used] = next
	h.used++
}

// idle records that nothing passed in the interval that ends at cut.
func (h *history) idle(cut uint32) {
	if h.used > 0 && h.runs[h.used-1].to == cut-1 {
		h.runs[h.used-1].to = cut
		h.runs[h.used-1].covered++
	}
}

// merge joins two neighbouring runs into one: those with the shortest hole
// between them and, among these, the shortest.
func (h *history) merge() {
	at, least := 1, uint64(math.MaxUint64)
	for i := 1; i < maxRuns; i++ {
		a, b := &h.runs[i-1], &h.runs[i]
		if cost := uint64(b.from-a.to)<<32 | uint64(b.to-a.from); cost < least {
			at, least = i, cost
		}
	}
	h.runs[at-1] = h.runs[at-1].with(h.runs[at])
	copy(h.runs[at:], h.runs[at+1:])
	h.used--
}

// with returns two runs as one.
func (r run) with(later run) run {
	return run{r.sum + later.sum, r.packets + later.packets, r.from, later.to, r.covered + later.covered}
}

// total returns how many packets were sent.
func (h *history) total() (n uint64) {
	for _, sent := range h.sent {
		n += uint64(sent)
	}
	return n
}

// part returns how much of the span of time between the cuts begin and end a
// run holds.
func (r *run) part(begin, end uint32) float64 {
	begin, end = max(begin, r.from), min(end, r.to)
	if begin >= end {
		return 0
	}
	return float64(end-begin) * r.density()
}

// density returns the fraction of a run that is not holes.
func (r *run) density() float64 { return float64(r.covered) / float64(r.to-r.from) }

// covered returns the sum of the delays of the packets in all runs, and their
// number.
func (h *history) covered() (sum, packets float64) {
	for _, r := range h.runs[:h.used] {
		sum += r.sum
		packets += float64(r.packets)
	}
	return sum, packets
}
