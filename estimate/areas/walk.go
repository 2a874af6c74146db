package areas

import (
	"math"
	"slices"

	"github.com/hoplag/hoplag/estimate"
)

// An areaState is a run of cuts at which a cell has one level.
type areaState struct {
	from, to int // cuts
	level    uint64
	least    int // packets outstanding there or later
	judged   judgement
	aged     int // if known, the latest of its cuts of which that would be so
}

// A judgement is what is known of a state.
type judgement uint8

const (
	settled  judgement = 1 << iota
	over               // a lower level came back after it
	known              // it is settled by what was seen a patience later, as it would be after a loss
	repeated           // it begins with packets that look like others on their way
)

func (s *areaState) is(what judgement) bool { return s.judged&what != 0 }

// levelBefore returns a cell's level before one of its events.
func (a *Areas) levelBefore(c *areaCell, at int) uint64 {
	if at == 0 {
		return c.oldest
	}
	return a.events[int(c.first)+at-1].level
}

// A span is the time between two cuts at which a cell is settled, or from the last such cut on.
type span struct {
	cell, group int
	from, to    int     // cuts: it begins after one and ends with the other
	lost        int     // packets
	joined      int     // packets that came without being sent
	losing      bool    // the cell had lost packets when it began, of which they may be
	late        int     // packets that came, and had been taken for lost
	owed        float64 // their ages when the span began
	sure        int     // the cut up to which nothing of it was lost, if not exact
	before      float64 // packets sent in it before the oldest cut that is kept,
	gone        float64 // and lost, as expected
	unknown     bool    // nothing tells the areas, because of packets that were on their way at the beginning
	exact       bool    // nothing was lost, and nothing else came
	open        bool    // the cell has not settled since
	twins       uint32  // packets sent in it that look like others on their way
	known       bool    // would be over by now also if packets had been lost
	young       bool    // packets from before the beginning may have come in it

	sent, received uint32
	start          int    // outstanding where it began, if packets were sent before the oldest cut that is kept
	level          uint64 // where it began
	sum            int64  // of delays, if exact
	sentSum        uint64 // wrapped

	// By cut, from the one after from on.
	area    []float64 // less the ages of what was lost before the span
	in, out []uint32  // received and sent
	after   []float64 // how long after the cut's beginning these were sent, added up
	on      []int32   // outstanding at the cut, less what was lost before
	most    []int32   // the least number outstanding from then on: the most that may be lost
	levels  []uint64
	extra   []uint32 // packets that joined: shown there, if any did,
	opened  int      // first interval in which any came, which may have joined,
	all     int      // and that after which all had joined
}

// alone reports whether the span is the way of one packet.
func (x *span) alone() bool {
	return x.exact && x.late == 0 && x.sent == 1 && x.received == 1 && x.before == 0
}

// walk calls visit for the spans of all cells that reach between two cuts, cell by cell and in order of time. The span
// is valid during the call. Calm events are no part of it.
func (a *Areas) walk(after, before int, visit func(*span)) {
	a.judge()
	for i := range a.cells {
		c, x, at := &a.cells[i], &a.span, 0
		a.passed = a.events[c.first:c.end]
		x.cell, x.group = int(c.number), int(c.group)
		x.from, x.level, x.before, x.gone, x.losing = 0, c.anchor, float64(c.since), float64(c.gone), c.losses
		from, level, judged := 0, c.oldest, c.judged
		for j := 0; j <= len(a.passed) && x.from < before; j++ { // states
			to := a.latest()
			if j < len(a.passed) {
				to = int(a.passed[j].cut) - a.before - 1
			}
			if judged&settled != 0 {
				if x.to, x.known = from, a.before+from <= int(c.aged); x.to > after && x.from < before {
					a.fill(c, at, true, level)
					visit(x)
				}
				x.from, x.level, x.before, x.gone, at = to, level, 0, 0, j
			}
			if j < len(a.passed) {
				from, level, judged = to+1, a.passed[j].level, judgement(a.passed[j].note)
			}
		}
		if x.to, x.known = a.latest(), false; x.from < min(x.to, before) {
			a.fill(c, at, false, x.level)
			visit(x)
		}
	}
}

// judge finds the cuts at which cells are settled, unless that is known.
func (a *Areas) judge() {
	if a.place(); a.judged == a.patience {
		return
	}
	a.judged, a.lastAged = a.patience, a.agedBefore(0, a.latest(), a.ends[a.latest()])
	a.younger = zeros(a.younger, len(a.places)/64+1)
	for i := range a.cells {
		a.settle(&a.cells[i])
	}
}

// settle finds the cuts at which a cell is settled.
func (a *Areas) settle(c *areaCell) {
	a.passed = a.events[c.first:c.end]
	a.states, c.aged = resize(a.states, len(a.passed)+1), 0
	s, from, level := a.states, 0, c.oldest
	for j := range s {
		s[j] = areaState{from: from, to: a.latest(), level: level}
		if j < len(a.passed) {
			from, level = int(a.passed[j].cut)-a.before, a.passed[j].level
			s[j].to = from - 1
		}
		if s[j].level == c.anchor || j > 0 && c.losses && s[j].level == c.former {
			s[j].judged = settled
		}
		if j > 0 && a.repeats(c, j-1) {
			s[j].judged |= repeated
		}
	}
	for j, later := len(s)-1, math.MaxInt; j >= 0; j, later = j-1, s[j].least {
		s[j].least = min(later, outstanding(s[j].level))
	}
	for j := range s {
		if s[j].is(over|known) || j > 0 && !s[j-1].is(over) && s[j-1].level == s[j].level && !s[j].is(repeated) {
			continue // is judged
		}
		// Where what is outstanding is lost, later cuts have as many only at the same level.
		last, least := j, outstanding(s[j].level)
		for k := j + 1; k < len(s) && s[k].least <= least && outstanding(s[k].level) >= least && !s[k].is(repeated); k++ {
			if s[k].level == s[j].level {
				last = k
			} else if outstanding(s[k].level) == least {
				break
			}
		}
		end := a.ends[s[last].to]
		long := float64(end-a.ends[s[j].from]) >= a.patience
		for k := j; k <= last; k++ {
			if s[k].level != s[j].level {
				s[k].judged = over // what was outstanding there has come since
			} else if long || s[k].is(settled) {
				if s[k].judged = s[k].judged&^known | settled; float64(end-a.ends[s[k].from]) >= a.patience {
					s[k].judged |= known
					s[k].aged = a.agedBefore(s[k].from, s[k].to, end)
				}
			}
		}
	}
	c.judged = s[0].judged
	for j := range s {
		if j > 0 {
			a.passed[j-1].note = uint32(s[j].judged)
		}
		if s[j].is(known) {
			c.aged = uint32(a.before + s[j].aged)
		}
	}
	if int(c.aged) < a.before+a.lastAged {
		a.younger[c.number/64] |= 1 << (c.number % 64)
	}
}

// repeats reports whether all that was sent in an event looks like all that was on its way before. If digests are narrow, both have
// to be one packet, or chance would make them look alike. If not, one that was sent may also look like one sent before, beside others.
func (a *Areas) repeats(c *areaCell, at int) bool {
	e, on, wide := &a.passed[at], a.levelBefore(c, at)-c.anchor, a.mask>>(32+digestsTell-1) != 0
	n, sent, one := outstanding(on), uint64(e.digest)<<32|uint64(e.sent), e.sent == 1
	again := n > 0 && e.sent > 0 && (wide || n == 1 && one && a.digestsShow()) && (on*uint64(e.sent)-sent*uint64(n))&a.mask == 0
	for i := at - 1; i >= 0 && !again && wide && one && a.passed[i].level != c.anchor; i-- {
		again = a.passed[i].sent == 1 && a.passed[i].digest == e.digest
	}
	return again
}

// agedBefore returns the latest cut from one up to another that is a patience before a time, or the first.
func (a *Areas) agedBefore(from, to int, end int64) int {
	for to > from && float64(end-a.ends[to]) < a.patience {
		to--
	}
	return to
}

// fill tells what passed in each cut of the span. It begins with event number at, and ends at a level.
func (a *Areas) fill(c *areaCell, at int, closed bool, now uint64) {
	x, n := &a.span, a.span.to-a.span.from
	x.lost, x.exact, x.open = outstanding(now)-outstanding(x.level), closed && now == x.level, !closed
	x.late, x.owed, x.joined, x.sure, x.twins = 0, 0, 0, 0, min(c.alike, uint32(x.before))
	if closed && c.losses && now == c.former && x.level == c.anchor && now != x.level {
		x.late, x.owed, x.exact = -x.lost, -float64(x.lost)*float64(a.ends[x.from]-c.moved), true
		x.level = now
	}
	x.young = a.underWay && !x.exact && (x.from == 0 && c.young || x.from > 0 && a.early(x.from))
	x.unknown = x.young
	x.area, x.in, x.out, x.after = resize(x.area, n), resize(x.in, n), resize(x.out, n), resize(x.after, n)
	x.on, x.most, x.levels = resize(x.on, n), resize(x.most, n), resize(x.levels, n)
	x.sent, x.received, x.sentSum, now = 0, 0, 0, a.levelBefore(c, at)
	lost, was, sum := outstanding(x.level), outstanding(now), uint64(0)
	x.start = was - lost
	for k := range n {
		cut := x.from + 1 + k
		if at == len(a.passed) || int(a.passed[at].cut)-a.before != cut {
			x.area[k], x.in[k], x.out[k], x.after[k] = float64(was-lost)*a.length(cut), 0, 0, 0
		} else {
			e := &a.passed[at]
			at++
			now, x.twins = e.level, x.twins+e.sent*(e.note/uint32(repeated)) // the highest judgement
			moved := e.delay + uint64(outstanding(now)-lost)*uint64(a.ends[cut]) - uint64(was-lost)*uint64(a.ends[cut-1])
			x.area[k], x.in[k], x.out[k] = a.near(moved, e.received), e.received, e.sent
			x.after[k] = float64(estimate.SignExtend(e.sentSum-uint64(e.sent)*uint64(a.ends[cut-1]), a.bits))
			x.sent += e.sent
			x.received += e.received
			x.sentSum += e.sentSum
			sum += e.delay
			was = outstanding(now)
		}
		x.on[k], x.levels[k] = int32(was-lost), now
	}
	if !x.exact {
		a.join(x)
	}
	a.bound(x)
	// All that was outstanding may have come since.
	if k := a.lastAged; k > x.from && k < x.to && x.most[k-x.from-1] <= 0 && x.twins == 0 && a.digestsShow() {
		x.sure = max(x.sure, k)
	}
	x.sum = estimate.SignExtend(sum, a.bits)
}

// bound finds how many packets at most that were outstanding at each cut still are at the end: no more
// than at any cut since, and fewer where as few were at two cuts and not the same ones.
func (a *Areas) bound(x *span) {
	last := len(x.on) - 1
	tell := a.digestsShow() && x.joined == 0
	least, level, known := x.on[last], x.levels[last], tell
	for k := last; k >= 0; k-- {
		switch on := x.on[k]; {
		case on < least || on == least && !known:
			least, level, known = on, x.levels[k], tell
		case on == least && least > 0 && x.levels[k] != level:
			least, known = least-1, false // which these are is not known
		}
		x.most[k] = least
	}
}

// near returns a sum of delays of a number of packets, which is known except for its high bits.
func (a *Areas) near(sum uint64, packets uint32) float64 {
	expected := int64(a.center * float64(packets))
	return float64(estimate.SignExtend(sum-uint64(expected), a.bits)) + float64(expected)
}

// forAWhile is for how many cuts at most fewer packets than none are outstanding where cuts of two points differ.
const forAWhile = 10

// join allows for packets that came without being sent: before the beginning, or elsewhere. As many have joined as fewer than none are
// outstanding at the end, or if the span is open, all the time of late, or while nothing passed for a while. On average a packet takes
// half the interval in which it shows. It may have come when another one did before, and others have hidden it.
func (a *Areas) join(x *span) {
	all := -x.lost
	if x.open {
		late := len(x.on) / 2
		if x.losing { // what was taken for lost may have come
			late = max(late, len(x.on)-forAWhile)
		}
		all = a.leastJoined(x, late, len(x.on))
		still := 0
		for k := range x.on {
			if still++; x.in[k]|x.out[k] > 0 {
				still = 0
			}
			if still == forAWhile {
				all = max(all, a.leastJoined(x, k, k+1))
			}
		}
	}
	if all <= 0 {
		return
	}
	x.extra, x.opened = resize(x.extra, len(x.on)), len(x.on)
	joined := 0
	for k := range x.on {
		if x.in[k] > 0 {
			x.opened = min(x.opened, k)
		}
		more := min(max(0, a.leastJoined(x, k, k+1)-joined), all-joined)
		x.area[k] += (float64(joined) + float64(more)/2) * a.length(x.from+1+k)
		for i := a.hiding(x, k); i < k && more > 0; i++ {
			x.area[i] += float64(more) / 2 * a.length(x.from+1+i)
		}
		if more > 0 {
			x.all = k + 1
		}
		joined += more
		x.extra[k] = uint32(more)
		x.on[k] += int32(joined)
	}
	x.lost += joined
	x.joined = joined
	x.unknown = x.unknown || joined > 0 && a.before+x.from == 0
}

// zeros is resize to n zeros.
func zeros[T any](s []T, n int) []T {
	s = resize(s, n)
	clear(s)
	return s
}

// leastJoined returns how many packets joined a span at least by all cuts from one up to another: as many as fewer
// than none are outstanding, and one if none is and the level is not that of before.
func (a *Areas) leastJoined(x *span, from, to int) int {
	least := math.MaxInt
	for k := from; k < to; k++ {
		n := -int(x.on[k])
		if n == 0 && a.digestsShow() && x.levels[k] != x.level {
			n = 1
		}
		least = min(least, n)
	}
	return least
}

// resize returns a slice of n elements, which is s if there is room.
func resize[T any](s []T, n int) []T { return slices.Grow(s[:0], n)[:n] }

// A calmEvent is what passed a cell in an interval at both ends of which its level was the anchor's. As many packets
// were sent as received. Levels below the anchor's may return to it otherwise, so after one no event is calm.
type calmEvent struct {
	cell, packets uint32
	came          uint64  // sum of the times of reception
	area          float64 // by the mean delay that was known, about which narrow sums are unwrapped
}

// calmly calls f for the calm events after a cut and up to another, cut by cut, with those of one group at a time.
func (a *Areas) calmly(after, to int, f func(group, cut int, all []calmEvent)) {
	a.judge()
	for cut := after + 1; cut <= to; cut++ {
		for all := a.calm[a.calmTo[cut-1]:a.calmTo[cut]]; len(all) > 0; {
			g, n := int(a.groupOf(int(all[0].cell))), 1
			for first, size := uint32(a.groups[g]), uint32(a.size(g)); n < len(all) && all[n].cell-first < size; {
				n++
			}
			f(g, cut, all[:n])
			all = all[n:]
		}
	}
}
