package areas

import (
	"slices"

	"github.com/hoplag/hoplag/estimate"
)

// A span is the time between two cuts at which a cell is settled, or from the
// last such cut on.
type span struct {
	cell, group int
	from, to    int     // cuts: it begins after one and ends with the other
	lost        int     // packets
	joined      int     // packets that came without being sent
	losing      bool    // the cell had lost packets when it began, of which they may be
	late        int     // packets that came, and had been taken for lost
	owed        float64 // their ages when the span began
	sure        int     // if open, the cut up to which nothing that is outstanding was lost
	before      float64 // packets sent in it before the oldest cut that is kept
	unknown     bool    // nothing tells the areas, because of packets that were on their way at the beginning
	exact       bool    // nothing was lost, and nothing else came
	open        bool    // the cell has not settled since
	alike       bool    // copies of one packet may be on their way in the cell
	known       bool    // would be over by now also if packets had been lost
	young       bool    // packets of before the beginning may have come in it

	sent, received uint32
	start          int    // outstanding where it began, if packets were sent before the oldest cut that is kept
	level          uint64 // where it began
	sum            int64  // of delays, if exact
	sentSum        uint64 // wrapped
	opened         int    // first interval in which any came, which may have joined

	steps []step // by cut, from the one after from on
}

// A step is the part of a span in an interval.
type step struct {
	area    float64 // less the ages of what was lost before the span
	level   uint64
	sentSum uint64 // wrapped
	in, out uint32 // received and sent
	on      int32  // outstanding at the cut, less what was lost before
	most    int32  // the least number outstanding from then on: the most that may be lost
	extra   uint32 // packets that joined: shown there
}

// alone reports whether the span is the way of one packet.
func (x *span) alone() bool {
	return x.exact && x.late == 0 && x.sent == 1 && x.received == 1 && x.before == 0
}

// time returns the area of the span.
func (x *span) time() (sum float64) {
	for k := range x.steps {
		sum += x.steps[k].area
	}
	return sum
}

// walk calls visit for the spans of all cells up to the latest cut, but those
// that end by cut number after, cell by cell and in order of time. The span is valid during
// the call. For exact spans of one interval it calls calm instead, or nothing if that
// is nil.
func (a *Areas) walk(after int, calm calmFunc, visit func(*span)) {
	a.settleAll()
	for i := range a.cells {
		c := &a.cells[i]
		if !a.quiet(c) {
			a.tell(c, after, calm, visit)
			continue
		}
		for at := c.first; at != 0 && calm != nil; at = a.events[at].next {
			e := &a.events[at]
			if cut := int(e.cut) - a.before; cut > after {
				calm(c, cut, e, a.near(e.delay, e.received), a.old(cut))
			}
		}
	}
}

// A calmFunc takes what passed a cell in an interval at both ends of which it was
// settled at one level: as many packets were received as sent. It is known if it would be by
// now also after a loss.
type calmFunc = func(c *areaCell, cut int, e *areaEvent, area float64, known bool)

// tell calls visit for the spans of a cell.
func (a *Areas) tell(c *areaCell, after int, calm calmFunc, visit func(*span)) {
	x := &a.span
	x.cell, x.group, x.alike, x.losing, x.sure = int(c.number), int(c.group), a.alike(c), c.losses, a.known[int(c.number)].sure-a.before
	// The span begins after cut from, at a level, with the event first. The cell is settled
	// or not from cut at on, at level now.
	from, level, before, first, begun := 0, c.anchor, float64(c.since), c.first, c.oldest
	at, now, settled := 0, c.oldest, c.settled
	for next := c.first; ; next = a.events[next].next {
		if settled {
			switch {
			case at == from && before == 0 || at <= after:
			case now == level && at == from+1 && before == 0:
				if e := &a.events[first]; calm != nil {
					calm(c, at, e, a.near(e.delay, e.received), at <= int(c.known))
				}
			default:
				x.from, x.to, x.before, x.open, x.known = from, at, before, false, at <= int(c.known)
				a.visit(c, level, now, begun, first, visit)
			}
			from, level, before, first, begun = a.until(next), now, 0, next, now
		}
		if next == 0 {
			break
		}
		e := &a.events[next]
		at, now, settled = int(e.cut)-a.before, e.level, e.settled
	}
	if last := a.latest(); from < last && last > after {
		x.from, x.to, x.before, x.open, x.known = from, last, before, true, false
		a.visit(c, level, level, begun, first, visit)
	}
}

// visit calls visit for a span that began at a level and ended, if it did, at level now.
func (a *Areas) visit(c *areaCell, level, now, begun uint64, first uint32, visit func(*span)) {
	x := &a.span
	x.lost, x.exact = outstanding(now)-outstanding(level), !x.open && now == level
	x.late, x.owed, x.joined, x.unknown = 0, 0, 0, false
	if !x.open && c.losses && now == c.former && level == c.anchor && now != level {
		x.late, x.owed, x.exact = -x.lost, -float64(x.lost)*float64(a.ends[x.from]-c.moved), true
		level = now
	}
	a.fill(level, begun, first)
	x.young = !x.exact && (x.from == 0 && c.young || x.from > 0 && a.early(x.from))
	x.unknown = x.unknown || x.young
	visit(x)
}

// fill tells what passed in each cut of the span, at a level as it began or, if later, as the
// oldest cut that is kept has it, from an event on.
func (a *Areas) fill(level, now uint64, next uint32) {
	x := &a.span
	x.steps = resize(x.steps, x.to-x.from)
	x.sent, x.received, x.sentSum, x.level = 0, 0, 0, level
	lost, was, sum := outstanding(level), outstanding(now), uint64(0)
	x.start = was - lost
	for k := range x.steps {
		s, cut := &x.steps[k], x.from+1+k
		if e := &a.events[next]; next == 0 || int(e.cut)-a.before != cut {
			*s = step{area: float64(was-lost) * a.length(cut)}
		} else {
			next = e.next
			*s = step{in: e.received, out: e.sent(now), sentSum: e.sentSum}
			now = e.level
			moved := e.delay + uint64(outstanding(now)-lost)*uint64(a.ends[cut]) - uint64(was-lost)*uint64(a.ends[cut-1])
			s.area = a.near(moved, e.received)
			x.sent += s.out
			x.received += s.in
			x.sentSum += e.sentSum
			sum += e.delay
			was = outstanding(now)
		}
		s.on, s.level = int32(was-lost), now
	}
	if !x.exact {
		a.join(x)
	}
	x.bound()
	x.sum = estimate.SignExtend(sum, a.bits)
}

// bound finds how many packets at most that were outstanding at each cut still are at the end:
// no more than at any cut since.
func (x *span) bound() {
	least := x.steps[len(x.steps)-1].on
	for k := len(x.steps) - 1; k >= 0; k-- {
		least = min(least, x.steps[k].on)
		x.steps[k].most = least
	}
}

// near returns a sum of delays of so many packets, which is known but for its high bits.
func (a *Areas) near(sum uint64, packets uint32) float64 {
	expected := int64(a.center * float64(packets))
	return float64(estimate.SignExtend(sum-uint64(expected), a.bits)) + float64(expected)
}

// join allows for packets that came without being sent: before the beginning,
// or elsewhere. As many have joined as fewer than none are outstanding at the
// end, or all the time of late if the span is open. Cuts of two points that are
// not at quite the same time make fewer than none outstanding only for a while. When in
// its interval a packet joined is not known: half an interval is what it takes on average.
func (a *Areas) join(x *span) {
	most := int32(x.lost)
	if x.open {
		late := len(x.steps) / 2
		if x.losing { // what was taken for lost may have come
			late = max(late, len(x.steps)-forAWhile)
		}
		most = slices.MaxFunc(x.steps[late:], func(s, o step) int { return int(s.on) - int(o.on) }).on
	}
	joined, all := int32(0), max(0, -most)
	if all == 0 {
		return
	}
	x.opened = len(x.steps)
	for k := range x.steps {
		s := &x.steps[k]
		if s.in > 0 {
			x.opened = min(x.opened, k)
		}
		more := min(max(0, -joined-s.on), all-joined)
		s.area += (float64(joined) + float64(more)/2) * a.length(x.from+1+k)
		joined += more
		s.on += joined
		s.extra = uint32(more)
	}
	x.lost += int(joined)
	x.joined = int(joined)
	x.unknown = x.unknown || joined > 0 && a.before+x.from == 0
}

// forAWhile is for how many cuts at most fewer than none are outstanding where cuts of two points differ.
const forAWhile = 10

// resize returns a slice of n elements, which is s if there is room.
func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, 2*n)
	}
	return s[:n]
}
