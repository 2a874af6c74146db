package estimate

import (
	"maps"
	"slices"
)

// walk calls visit for the spans of all cells up to the latest cut, but those
// that end by cut number after. The span is valid during the call.
func (a *Areas) walk(after int, visit func(*span)) {
	a.sort()
	first := uint32(0)
	for g := range len(a.groups) - 1 {
		for i := a.groups[g]; i < a.groups[g+1]; i++ {
			events := a.ordered[first:a.ends[i]]
			first = a.ends[i]
			if len(events) == 0 && a.cells[i].level == a.cells[i].anchor {
				continue
			}
			a.settle(i, events)
			a.span.cell, a.span.group = i, g
			a.tell(i, after, events, visit)
		}
	}
}

// sort puts the events in the order of cells.
func (a *Areas) sort() {
	if a.sorted {
		return
	}
	a.sorted = true
	clear(a.ends)
	last := len(a.cuts) - 1
	for k := 1; k < last; k++ {
		for j := range a.cuts[k].events {
			a.ends[a.cuts[k].events[j].cell]++
		}
	}
	total := uint32(0)
	for i, n := range a.ends {
		a.ends[i] = total
		total += n
	}
	if cap(a.ordered) < int(total) {
		a.ordered = make([]areaEvent, total+total/4)
	}
	a.ordered = a.ordered[:total]
	for k := 1; k < last; k++ {
		for j := range a.cuts[k].events {
			e := &a.cuts[k].events[j]
			to := &a.ordered[a.ends[e.cell]]
			*to = *e
			to.cut = uint32(k)
			a.ends[e.cell]++
		}
	}
}

// settle finds the levels of a cell at all cuts, and those at which it is
// settled.
func (a *Areas) settle(i int, events []areaEvent) {
	c := &a.cells[i]
	a.states = append(a.states[:0], areaState{level: c.oldest, settled: c.oldest == c.anchor})
	for j := range events {
		e := &events[j]
		if now := &a.states[len(a.states)-1]; e.level != now.level || e.sent|e.received != 0 {
			now.to = int(e.cut) - 1
			a.states = append(a.states, areaState{from: int(e.cut), level: e.level, settled: e.level == c.anchor})
		}
	}
	s := a.states
	s[len(s)-1].to = a.latest()
	if c.losses {
		for j := range s {
			s[j].settled = s[j].settled || s[j].level == c.former
		}
	}
	for j := range s {
		if s[j].over || s[j].known || j > 0 && !s[j-1].over && s[j-1].level == s[j].level {
			continue // is judged
		}
		last, least := j, outstanding(s[j].level)
		for k := j + 1; k < len(s) && outstanding(s[k].level) >= least; k++ {
			if s[k].level == s[j].level {
				last = k
			}
		}
		end := a.cuts[s[last].to].end
		long := float64(end-a.cuts[s[j].from].end) >= a.patience && (!c.copies || s[j].settled)
		for k := j; k <= last; k++ {
			if s[k].level != s[j].level {
				// What was outstanding there has come since.
				s[k].over, s[k].settled, s[k].known = true, false, false
				continue
			}
			s[k].settled = s[k].settled || long
			s[k].known = s[k].settled && float64(end-a.cuts[s[k].from].end) >= a.patience
		}
	}
}

// tell calls visit for the spans of a cell.
func (a *Areas) tell(i, after int, events []areaEvent, visit func(*span)) {
	s, c, at := a.states, &a.cells[i], 0
	from, level, before := 0, c.anchor, float64(c.since)
	tell := func(to int, closed bool, known bool, now uint64) {
		if to <= after {
			for at < len(events) && int(events[at].cut) <= to {
				at++
			}
			return
		}
		x := &a.span
		x.from, x.to, x.before, x.open, x.known = from, to, before, !closed, known
		x.lost, x.exact = outstanding(now)-outstanding(level), closed && now == level
		x.late, x.owed, x.joined, x.unknown = 0, 0, 0, c.copies && a.underWay
		x.sure = a.known[i].sure - a.before
		if closed && c.losses && now == c.former && level == c.anchor && now != level {
			x.late, x.owed, x.exact = -x.lost, -float64(x.lost)*float64(a.cuts[from].end-c.moved), true
			level = now
		}
		at = a.fill(level, events, at)
		visit(x)
	}
	final := len(s) - 1
	for final >= 0 && !s[final].known {
		final--
	}
	for j := range s {
		if !s[j].settled {
			continue
		}
		if s[j].from > from || before > 0 {
			tell(s[j].from, true, j <= final, s[j].level)
		}
		from, level, before = s[j].to, s[j].level, 0
	}
	if last := a.latest(); from < last {
		tell(last, false, false, level)
	}
}

// fill tells what passed in each cut of the span. It begins with event number
// at, and returns the number of the next one.
func (a *Areas) fill(level uint64, events []areaEvent, at int) int {
	x := &a.span
	n := x.to - x.from
	x.area, x.in, x.out = resize(x.area, n), resize(x.in, n), resize(x.out, n)
	x.on, x.most, x.levels, x.way = resize(x.on, n), resize(x.most, n), resize(x.levels, n), resize(x.way, n)
	x.sent, x.received, x.sentSum, x.level = 0, 0, 0, level
	lost := outstanding(level)
	now, sum := a.cells[x.cell].oldest, uint64(0)
	if at > 0 {
		now = events[at-1].level
	}
	was := outstanding(now)
	for k := range n {
		cut := x.from + 1 + k
		if at == len(events) || int(events[at].cut) != cut {
			x.area[k], x.in[k], x.out[k] = float64(was-lost)*a.length(cut), 0, 0
		} else {
			e := &events[at]
			at++
			now = e.level
			moved := e.delay + uint64(outstanding(now)-lost)*uint64(a.cuts[cut].end) - uint64(was-lost)*uint64(a.cuts[cut-1].end)
			x.area[k], x.in[k], x.out[k] = a.near(moved, e.received), e.received, e.sent
			x.sent += e.sent
			x.received += e.received
			x.sentSum += e.sentSum
			sum += e.delay
			was = outstanding(now)
		}
		x.on[k] = int32(was - lost)
		x.levels[k] = now
		x.way[k] = float64(was - lost)
	}
	if !x.exact {
		a.join(x)
	}
	copy(x.most, x.on)
	for k := n - 2; k >= 0; k-- {
		x.most[k] = min(x.most[k], x.most[k+1])
	}
	x.sum = SignExtend(sum, a.bits)
	return at
}

// join allows for packets that came without being sent: before the beginning,
// or elsewhere. As many have joined as fewer than none are outstanding at the
// end, or all the time of late if the span is open. Cuts of two points that are
// not at quite the same time make fewer than none outstanding only for a while.
func (a *Areas) join(x *span) {
	most := int32(x.lost)
	if x.open {
		most = slices.Max(x.on[len(x.on)/2:])
	}
	joined, all := int32(0), max(0, -most)
	for k := range x.on {
		more := min(max(0, -joined-x.on[k]), all-joined)
		x.area[k] += (float64(joined) + float64(more)/2) * a.length(x.from+1+k)
		joined += more
		x.on[k] += joined
		x.way[k] += float64(joined)
	}
	x.lost += int(joined)
	x.joined = int(joined)
	x.unknown = x.unknown || joined > 0 && a.before+x.from == 0
}

// resize returns a slice of n elements, which is s if there is room.
func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, 2*n)
	}
	return s[:n]
}

// near returns a sum of delays of so many packets, which is known but for its high bits.
func (a *Areas) near(sum uint64, packets uint32) float64 {
	expected := int64(a.center * float64(packets))
	return float64(SignExtend(sum-uint64(expected), a.bits)) + float64(expected)
}

// Losses returns how many packets have shown by now to be lost up to cut number
// to, and how many to be extra, since the last call of Settle. Extra packets
// came without being sent, or had been taken for lost.
func (a *Areas) Losses(to int) (lost, extra int) {
	lost, extra = a.count(to, func(int, []areaEvent) {})
	for _, x := range a.taken {
		if !x.told && x.Cut <= to {
			lost++
		}
	}
	return lost, extra
}

// Settle forgets what happened up to cut number to, but for as much as tells of
// the packets on their way. The next call of Losses begins there.
func (a *Areas) Settle(to int) {
	keep := to - a.before
	for keep > 0 && float64(a.cuts[to-a.before].end-a.cuts[keep].end) < min(a.patience, longestKept*a.step) {
		keep--
	}
	if a.named {
		keep = max(0, keep-keptForTrails)
	}
	a.count(to, func(i int, events []areaEvent) { a.advance(i, keep, to-a.before, events) })
	for k := 1; k <= keep; k++ {
		a.recycle(a.cuts[k].events)
	}
	a.sorted = a.sorted && keep == 0
	a.cuts = append(a.cuts[:0], a.cuts[keep:]...)
	a.cuts[0].events = nil
	a.before += keep
	for i := range a.taken {
		a.taken[i].told = a.taken[i].told || a.taken[i].Cut <= to
	}
	maps.DeleteFunc(a.known, func(_ int, k knownCell) bool { return k.at < a.before })
	a.taken = slices.DeleteFunc(a.taken, func(x taken) bool { return x.Cut <= a.before })
	a.fade(keep)
}

// count adds up by how much the settled levels have risen or fallen up to cut
// number to, and calls visit for each cell, settled.
func (a *Areas) count(to int, visit func(cell int, events []areaEvent)) (lost, extra int) {
	a.sort()
	first := uint32(0)
	for i := range a.cells {
		events := a.ordered[first:a.ends[i]]
		first = a.ends[i]
		c := &a.cells[i]
		if len(events) == 0 && c.level == c.told && c.level == c.anchor {
			continue
		}
		a.settle(i, events)
		level := c.told
		for _, s := range a.states {
			if s.settled && s.from <= to-a.before {
				level = s.level
			}
		}
		moved := outstanding(level) - outstanding(c.told)
		lost += max(moved, 0)
		extra += max(-moved, 0)
		visit(i, events)
	}
	return lost, extra
}

// keptForTrails is how many more cuts are kept to find what was lost in spans
// that began before a report.
const keptForTrails = 4

// longestKept is the greatest number of cuts that are kept for packets on
// their way.
const longestKept = 96.0

// advance moves a cell's oldest cut to number keep, and the settled level up to
// which losses have been told to cut number to.
func (a *Areas) advance(i, keep, to int, events []areaEvent) {
	c, at := &a.cells[i], 0
	for _, s := range a.states {
		if s.settled && s.from <= to {
			c.told = s.level
		}
		if s.from > keep {
			continue
		}
		for ; at < len(events) && int(events[at].cut) <= s.from; at++ {
			c.since += events[at].sent
		}
		c.oldest = s.level
		if s.settled {
			if s.level != c.anchor {
				c.losses = outstanding(s.level) > outstanding(c.anchor)
				c.former, c.moved = c.anchor, a.cuts[s.from].end
			}
			c.anchor, c.since = s.level, 0
		}
	}
}

// fade forgets slowly how long packets took, and how many were lost in cuts
// that are no longer kept.
func (a *Areas) fade(keep int) {
	const rest = 0.98
	a.greatest *= rest
	if a.greatest > 0 {
		a.patience = patienceFactor * a.greatest
	}
	l := &a.losses
	a.past.sent, a.past.lost = rest*a.past.sent, rest*a.past.lost
	for k := 1; k <= keep && k < len(l.sent); k++ {
		a.past.sent += l.sent[k]
		a.past.lost += l.lost[k]
	}
	l.sent, l.lost = l.sent[:0], l.lost[:0]
}

// patienceFactor is how many times the greatest delay seen a packet may take.
const patienceFactor = 1.5
