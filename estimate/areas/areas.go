// Package areas measures how long packets are on their way between two points, across the cuts of a clock, and
// how many are lost: the engine that LDA, LDS and the front door share.
package areas

import (
	"math"
	"slices"
	"sync"
)

// Areas adds up the time that packets spend on their way between two points, by the cuts of the clock at which both empty cells.
//
// Call [Areas.Begin] and then, for each interval, [Areas.Cut] for all cells and [Areas.Next]. [Areas.Transit]
// tells how long packets were on their way between two cuts: METHODS.md, section 3, says how, and proves it.
//
// Cells are in groups. Within a group a hash chooses the cell of a packet, so cells of one group are exchangeable.
//
// Cuts are numbered from 0, the beginning. Areas keeps the cuts since the last [Areas.Settle]. Its memory and its time grow with the
// packets that pass between, and the cells that they pass. It is not safe for concurrent use, and the zero value panics.
type Areas struct {
	groups    []int  // first cell of each group, and the number of cells
	mask      uint64 // of the bits of a tally that are known
	bits      int    // width of a sum
	patience  float64
	greatest  float64 // delay seen lately
	longest   float64 // delay that others saw, which may never be alone here
	center    float64 // mean delay, about which narrow sums are unwrapped
	negative  float64 // share of exact spans whose areas were negative up to the oldest cut, or -1
	seen      float64 // since
	skewed    bool    // packets have come before they were sent
	bursts    bool    // the rate of what was sent varies by more than itself
	now, past tallies // of packets, in the latest report and lately
	watched   float64 // time, in all
	told      int     // packets that were told to be lost since the beginning

	taken []taken // in the cuts that are kept
	named bool    // TakeOut has been used

	places   []uint32    // of all cells: where their state is, in cells, plus 1, or 0 if only calm events pass them
	passes   []bool      // of all cells: none of their events is calm now
	sends    []bool      // of all cells: packets passed in calm events since the beginning
	calm     []calmEvent // in order of time, which left cells as they were
	calmTo   []int       // how many of them precede each cut that is kept
	cells    []areaCell  // those that others pass
	events   []areaEvent // of each cell those in order of time, and then all those that are not placed yet
	placed   int         // how many are
	judged   float64     // patience with which cells were settled at the latest cut, or 0
	ends     []int64     // of the cuts that are kept
	net      []int       // packets sent less those received in the intervals that end there, and since
	step     float64     // length of the latest interval that has one
	shortest float64     // length up to which Thin makes intervals longer
	before   int         // number of cuts that were forgotten
	begun    int64       // when the beginning was
	underWay bool        // packets were on their way then,
	proven   float64     // and took longer than this, or -1: some came before they were sent, or never were,
	another  float64     // and another one longer than this
	surplus  int64       // by how many more came since than were sent

	// Used while walking over one cell.
	lastAged int      // cut that is a patience before the latest
	younger  []uint64 // a bit for each cell of which it is known only up to an earlier one that nothing was lost
	passed   []areaEvent
	states   []areaState
	span     span
	joined   [2]joiners // before the latest Settle and since

	losses    losses
	window    window
	delays    delays
	alone     []Alone
	taking    struct{ weights, first, second, third, apart float64 } // weights of these, and their delays with these: moments
	crossing  [2][]Alone                                             // those on their way at the ends of the window, and their ages
	onWay     [2]endAges
	seenAgain []seenAgain
}

// tallies counts packets: those sent, and those of them that were lost, where that is known, in how many cuts, and the squares of
// how many more were lost in a cut than on average; those received, and the time on the way; those alone, and the time they took.
type tallies struct{ sent, lost, cuts, varied, received, way, alone, took float64 }

// An areaCell is a cell's state at the latest cut, and at those at which nothing was on its way.
type areaCell struct {
	level      uint64
	oldest     uint64 // level at the oldest cut that is kept
	anchor     uint64 // level at the latest settled cut up to that
	former     uint64 // the settled level before the anchor's, if losses is set
	told       uint64 // the settled level up to which losses have been told
	moved      int64  // time of the first cut at the anchor's level
	number     uint32
	first, end uint32  // events that are placed,
	fresh      uint32  // and how many are not
	since      uint32  // packets sent from the anchor to the oldest cut,
	alike      uint32  // and how many of these look like others on their way
	gone       float32 // and are lost, as expected
	group      uint8
	losses     bool      // the anchor's level is higher than the former
	aged       uint32    // the latest cut at which it is known that nothing was lost
	unsent     bool      // nothing was sent since the beginning, when packets were on their way
	young      bool      // packets from before the beginning may have come since the anchor
	judged     judgement // at the oldest cut
	slow       bool      // none of its events is calm
}

// An areaEvent is what passed a cell in one interval.
type areaEvent struct {
	cut, sent, received uint32
	note                uint32 // what it is judged to be; until it is placed, where its cell's state is
	digest              uint32 // of those sent
	level               uint64 // after it
	sentSum, delay      uint64
}

// A CellPair is what a cell holds at both points after an interval: sums of timestamps, of which only the low bits
// count, and tallies. A tally has the count of packets in its low 32 bits and their digest, also a sum, above.
type CellPair struct {
	SentSum, SentTally         uint64
	ReceivedSum, ReceivedTally uint64
}

// New returns Areas for groups with these numbers of cells, sums of sumBits and digests of digestBits. It
// panics if sumBits is not in 1 to 64 or digestBits not in 0 to 32.
func New(groups []int, sumBits, digestBits uint8) *Areas {
	if sumBits < 1 || sumBits > 64 || digestBits > 32 {
		panic("areas: a width out of range")
	}
	a := &Areas{mask: 1<<(32+digestBits) - 1, bits: int(sumBits), patience: math.Inf(1)}
	total := 0
	for _, n := range groups {
		a.groups = append(a.groups, total)
		total += n
	}
	a.groups = append(a.groups, total)
	a.places, a.passes, a.sends = make([]uint32, total), make([]bool, total), make([]bool, total)
	a.Begin(0, false)
	return a
}

// Begin says that an interval begins at a time, and that what was outstanding before it is unknown, on its way
// or lost, and whether packets were on their way. The next cut has number 1.
func (a *Areas) Begin(start int64, underWay bool) {
	clear(a.places)
	clear(a.passes)
	clear(a.sends)
	a.calm, a.calmTo = a.calm[:0], append(a.calmTo[:0], 0)
	a.taken = a.taken[:0]
	a.cells, a.events, a.placed, a.judged = a.cells[:0], a.events[:0], 0, 0
	a.begun, a.told, a.proven, a.another, a.surplus, a.joined = start, 0, 0, 0, 0, [2]joiners{}
	a.ends, a.before, a.underWay, a.skewed, a.negative, a.seen = append(a.ends[:0], start), 0, underWay, false, -1, -1
	a.net = append(a.net[:0], 0, 0)
}

// Empty says that no packet was on its way at the beginning: it would be known by now. Others' patience tells how long they take.
func (a *Areas) Empty(patience float64) { a.underWay, a.longest = false, patience/patienceFactor }

// Before returns how many nanoseconds after the beginning packets still arrived that were on their way then, as
// far as can be seen: 0 as long as no delay has been seen.
func (a *Areas) Before() float64 {
	if a.greatest == 0 || !a.underWay {
		return 0
	}
	return max(0, a.proven)
}

// cell returns where the state of cell i is.
func (a *Areas) cell(i int) uint32 {
	if a.places[i] == 0 {
		young := a.beginning()
		a.cells = append(a.cells, areaCell{number: uint32(i), group: a.groupOf(i), young: young, unsent: young && !a.sends[i], slow: young})
		a.places[i] = uint32(len(a.cells))
	}
	return a.places[i] - 1
}

// Cut takes what cell i holds at both points of the interval that ends now. Call it once per cell and interval; empty ones may be skipped.
func (a *Areas) Cut(i int, pair CellPair) {
	rose, sent := (pair.SentTally-pair.ReceivedTally)&a.mask, uint32(pair.SentTally)
	if rose == 0 && sent == 0 {
		return // nothing passed
	}
	if rose == 0 && !a.passes[i] && (!a.beginning() || a.digestsShow()) {
		a.sends[i] = true
		a.calm = append(a.calm, calmEvent{uint32(i), sent, pair.ReceivedSum, a.near(pair.ReceivedSum-pair.SentSum, sent)})
		return
	}
	a.pass(i, areaEvent{
		cut: uint32(a.before + len(a.ends)), sent: sent, received: uint32(pair.ReceivedTally), level: rose,
		sentSum: pair.SentSum, delay: pair.ReceivedSum - pair.SentSum,
	}, pair.SentTally)
}

// beginning reports whether packets were on their way at the oldest cut that is kept, because that is the beginning.
func (a *Areas) beginning() bool { return a.underWay && a.before == 0 }

// passing reports whether no event of a cell is calm now.
func (c *areaCell) passing() bool { return c.slow || c.level != c.anchor }

// below reports whether a level is another one than the anchor's, and has no more packets outstanding.
func below(beyond uint64) bool { return beyond != 0 && outstanding(beyond) <= 0 }

// pass takes an event, whose level is by how much it rose.
func (a *Areas) pass(i int, e areaEvent, sentTally uint64) {
	at := a.cell(i)
	c, was := &a.cells[at], a.cells[at].level
	c.level = (was + e.level) & a.mask
	if c.unsent = c.unsent && e.sent == 0; c.unsent && e.received > 0 && a.proven >= 0 {
		a.proven, a.another = float64(a.ends[a.latest()]-a.begun), a.proven
	} else if c.young && outstanding(was) < 0 && c.level == 0 {
		a.proven = -1
	}
	c.slow = c.slow || below((c.level-c.anchor)&a.mask)
	a.passes[i] = c.passing()
	a.net[len(a.ends)] += int(e.sent) - int(e.received)
	a.surplus += int64(e.received) - int64(e.sent)
	e.level, e.note, e.digest = c.level, at, uint32(sentTally&a.mask>>32)
	c.fresh++
	a.events = append(a.events, e)
}

// Next ends the interval, at a time by the clock of the timestamps. Both points must cut within the least delay
// of each other, or less is known of what crosses the ends.
func (a *Areas) Next(end int64) {
	if length := float64(end - a.ends[a.latest()]); length > 0 {
		a.step = max(length, a.shortest)
		a.watched += length
	}
	a.ends, a.net, a.calmTo, a.judged = append(a.ends, end), append(a.net, 0), append(a.calmTo, len(a.calm)), 0
}

// Thin leaves out the latest cut if it comes after number from, and the interval that ended there was shorter than one in so many of
// the patience: on which side of it a packet was sent hardly matters then. Call it before cells are cut. It returns the latest cut of
// which it is known what was lost, and how long ago that was: spans go on for a patience, and settle after another one. As long as no
// delay is known, that is so many cuts ago.
func (a *Areas) Thin(from, most int) (aged int, waited float64) {
	k, least := a.latest(), a.patience/float64(most)
	if aged = max(0, k-most); !math.IsInf(least, 1) {
		aged = a.agedBefore(0, k, a.ends[k]-int64(a.patience))
	}
	waited = a.between(aged, k)
	if !math.IsInf(least, 1) && a.before+k > from && a.length(k) < least {
		a.shortest, a.watched, a.judged, a.net[k] = least, a.watched-a.length(k), 0, a.net[k]+a.net[k+1]
		a.ends, a.calmTo, a.net = a.ends[:k], a.calmTo[:k], a.net[:k+1]
	}
	return a.before + aged, waited
}

// Cuts returns the number of the latest cut.
func (a *Areas) Cuts() int { return a.before + a.latest() }

// latest returns the latest cut, counted from the oldest that is kept.
func (a *Areas) latest() int { return len(a.ends) - 1 }

// Settling returns how many intervals as long as the last one make up the patience, up to most. A packet
// counts as lost when it has been on its way for the patience: half as long again as the greatest recent delay.
func (a *Areas) Settling(most int) int {
	return int(min(float64(most), math.Ceil(a.patience/max(a.step, 1))+1))
}

// Losses returns how many packets are now known to have been lost up to cut number to, and how many to be
// extra, since the last call of Settle. Extra packets arrived without being sent, or had been taken for lost.
// Outstanding packets were sent and not received by then, and are not known to be lost.
func (a *Areas) Losses(to int) (lost, extra, outstanding int) {
	lost, extra, outstanding = a.count(to, nil)
	for _, x := range a.taken {
		if !x.told && x.Cut <= to {
			lost++
		}
	}
	return lost, extra, outstanding
}

// count adds up by how much the settled levels have risen or fallen up to cut number to, and what is
// outstanding beside, and calls visit, if not nil, for each cell that may have, settled.
func (a *Areas) count(to int, visit func(c *areaCell, level uint64)) (lost, extra, out int) {
	a.judge()
	for _, n := range a.net[to-a.before+1:] {
		out -= n
	}
	for j := range a.cells {
		c := &a.cells[j]
		out += outstanding(c.level) - outstanding(c.told)
		level := c.told
		if c.judged&settled != 0 {
			level = c.oldest
		}
		for k := c.first; k < c.end && int(a.events[k].cut) <= to; k++ {
			if e := &a.events[k]; judgement(e.note)&settled != 0 {
				level = e.level
			}
		}
		moved := outstanding(level) - outstanding(c.told)
		lost += max(moved, 0)
		extra += max(-moved, 0)
		if visit != nil {
			visit(c, level)
		}
	}
	return lost, extra, out - lost + extra
}

// Ended reports whether nothing is on its way in a number of cells from one on, as far as the latest Settle told what was lost.
func (a *Areas) Ended(cell, n int) bool {
	return !slices.ContainsFunc(a.places[cell:cell+n], func(at uint32) bool { return at > 0 && a.cells[at-1].level != a.cells[at-1].told })
}

// longestKept is the greatest number of cuts that are kept for packets on their way.
const longestKept = 600.0

// Settle forgets what happened up to cut number to, except what packets on their way need. The next call of Losses begins there.
func (a *Areas) Settle(to int) {
	keep := to - a.before
	for keep > 0 && a.between(keep, to-a.before) < min(a.patience, longestKept*a.step) {
		keep--
	}
	if a.named {
		keep = max(0, keep-4) // to find what was lost in spans that began before a report
	}
	lost, extra, _ := a.count(to, func(c *areaCell, level uint64) {
		c.told = level
		a.advance(c, keep)
	})
	a.told += lost - extra
	a.fade(keep, a.between(0, keep))
	a.keep(keep)
	if a.seen >= 0 {
		a.negative = a.seen
	}
	for i := range a.taken { // what was lost up to cut to has been told
		a.taken[i].told = a.taken[i].told || a.taken[i].Cut <= to
	}
	a.taken = slices.DeleteFunc(a.taken, func(x taken) bool { return x.Cut <= a.before })
}

// keep forgets what passed before cut oldest.
func (a *Areas) keep(oldest int) {
	cells, events := a.cells[:0], a.events[:0]
	for i := range a.cells {
		c := a.cells[i]
		from := c.end
		for from > c.first && int(a.events[from-1].cut) > a.before+oldest {
			from--
		}
		c.first, events = uint32(len(events)), append(events, a.events[from:c.end]...)
		c.end = uint32(len(events))
		late := c.losses && float64(a.ends[oldest]-c.moved) < longestKept*a.step // packets may still come
		a.places[c.number], a.passes[c.number] = 0, false
		if c.first < c.end || c.level != c.anchor || c.level != c.told || late { // others are as empty as they ever were
			c.slow = c.young || c.unsent || a.wasBelow(&c, events[c.first:])
			cells = append(cells, c)
			a.places[c.number], a.passes[c.number] = uint32(len(cells)), c.passing()
		}
	}
	a.cells, a.events = fit(cells, len(a.cells)), fit(events, len(a.events))
	a.placed, a.judged = len(events), 0
	a.ends, a.net = rest(a.ends, oldest), rest(a.net, oldest)
	a.before += oldest
	gone := a.calmTo[oldest]
	a.calm, a.calmTo = rest(a.calm, gone), rest(a.calmTo, oldest)
	for k := range a.calmTo {
		a.calmTo[k] -= gone
	}
}

// rest returns what follows n elements, in the same room.
func rest[T any](s []T, n int) []T { return fit(append(s[:0], s[n:]...), len(s)) }

// fit returns a slice in less room if reports that waited had more of it than the so many elements that it has lately.
func fit[T any](s []T, lately int) []T {
	if cap(s) > lately+lately/2 {
		s = append(make([]T, 0, lately+lately/8), s...)
	}
	return s
}

// wasBelow reports whether a cell was below its anchor's level at a cut that is kept.
func (a *Areas) wasBelow(c *areaCell, events []areaEvent) bool {
	return below((c.oldest-c.anchor)&a.mask) ||
		slices.ContainsFunc(events, func(e areaEvent) bool { return below((e.level - c.anchor) & a.mask) })
}

// spares has room for events while they are placed.
var spares = sync.Pool{New: func() any { return new([]areaEvent) }}

// place puts what passed each cell behind what had passed it before.
func (a *Areas) place() {
	if len(a.events) == a.placed {
		return
	}
	room, first := spares.Get().(*[]areaEvent), uint32(len(a.events))
	*room = append((*room)[:0], a.events[a.placed:]...)
	for j := len(a.cells) - 1; j >= 0; j-- { // the last ones make room for those before
		c := &a.cells[j]
		first -= c.end - c.first + c.fresh
		c.end, c.fresh = first+uint32(copy(a.events[first:], a.events[c.first:c.end])), 0
		c.first = first
	}
	clear(a.events[:first]) // as many were taken out
	for _, e := range *room {
		c := &a.cells[e.note]
		if was := &a.events[max(c.end, 1)-1]; c.end > c.first && was.cut == e.cut { // a cut was left out between them
			e.sent, e.received, e.digest = was.sent+e.sent, was.received+e.received, (was.digest+e.digest)&uint32(a.mask>>32)
			e.sentSum, e.delay, c.end = was.sentSum+e.sentSum, was.delay+e.delay, c.end-1
		}
		e.note = 0
		a.events[c.end] = e
		c.end++
	}
	spares.Put(room)
	a.placed, a.judged = len(a.events), 0
}

// advance moves a cell's oldest cut to number keep.
func (a *Areas) advance(c *areaCell, keep int) {
	for from, k := 0, c.first; ; k++ { // states
		to := a.latest()
		if k < c.end {
			to = int(a.events[k].cut) - a.before - 1
		}
		if c.judged&settled != 0 {
			if c.oldest != c.anchor {
				c.losses = outstanding(c.oldest) > outstanding(c.anchor)
				c.former, c.moved = c.anchor, a.ends[from]
			}
			c.anchor, c.since, c.alike, c.gone, c.young = c.oldest, 0, 0, 0, a.early(to)
		}
		if from = to + 1; from > keep || k == c.end {
			return
		}
		e := &a.events[k]
		c.gone += float32(a.rate(int(e.cut)-a.before) * float64(e.sent))
		if c.oldest, c.judged, c.since = e.level, judgement(e.note), c.since+e.sent; c.judged&repeated != 0 {
			c.alike += e.sent
		}
	}
}

// lately is for how many reports, or for how many seconds if they are shorter, what happened counts, on average: 35 for half of it.
const lately = 50

// fade forgets slowly how long packets took, and how many were lost in cuts that are no longer kept, over a time in ns.
func (a *Areas) fade(keep int, passed float64) {
	rest := math.Pow(1-1.0/lately, min(1, passed/1e9))
	a.greatest *= rest
	if a.greatest > 0 {
		a.patience = patienceFactor * a.greatest
	}
	l := &a.losses
	for k := 1; k <= keep && k < len(l.sent); k++ {
		a.now.sent += l.sent[k]
		a.now.lost += l.lost[k]
		if l.sent[k] > 0 {
			a.now.cuts++
			a.now.varied += sq(l.lost[k] - l.share*l.sent[k])
		}
	}
	p := &a.past
	*p = tallies{
		rest*p.sent + a.now.sent, rest*p.lost + a.now.lost, rest*p.cuts + a.now.cuts, rest*p.varied + a.now.varied,
		rest*p.received + a.now.received, rest*p.way + a.now.way, rest*p.alone + a.now.alone, rest*p.took + a.now.took,
	}
	a.now = tallies{}
	a.joined[1].add(a.joined[0], rest)
	a.joined = [2]joiners{a.joined[1]}
	l.sent, l.lost = l.sent[:0], l.lost[:0]
}

// patienceFactor is how many times the greatest delay seen a packet may take. The greatest of n
// exponential delays is about ln n means, and one in n to the power of this takes longer.
const patienceFactor = 1.5

// outstanding returns the number of packets of a level.
func outstanding(level uint64) int { return int(int32(level)) }

// groupOf returns the group of a cell.
func (a *Areas) groupOf(cell int) (g uint8) {
	for a.groups[g+1] <= cell {
		g++
	}
	return g
}

// between returns the time from one cut to another, and length that from the cut before k to k.
func (a *Areas) between(from, to int) float64 { return float64(a.ends[to] - a.ends[from]) }
func (a *Areas) length(k int) float64         { return a.between(k-1, k) }

// early reports whether packets from before the beginning may be on their way at cut k.
func (a *Areas) early(k int) bool {
	return a.underWay && float64(a.ends[k]-a.begun) < a.patience
}

// old reports whether cut k is at least a patience before the latest cut.
func (a *Areas) old(k int) bool { return a.between(k, a.latest()) >= a.patience }

// size returns the number of cells of a group.
func (a *Areas) size(group int) int { return a.groups[group+1] - a.groups[group] }
