package areas

// An areaState is a run of cuts at which a cell has one level.
type areaState struct {
	event   uint32 // with which it begins, or 0
	from    int32  // the cut at which it begins
	level   uint64
	sent    bool // packets were, in the interval before it
	settled bool
	over    bool // a lower level came back after it
	known   bool // settled by what was seen a patience later, as it would be after a loss
}

// quiet reports whether nothing was on its way in a cell at any cut that is kept,
// nor lost in between.
func (a *Areas) quiet(c *areaCell) bool {
	return !c.stirred && c.oldest == c.anchor && c.since == 0
}

// settleAll finds the cuts at which cells are settled, by what is known now.
func (a *Areas) settleAll() {
	for i := 0; i < len(a.cells) && !a.settled; i++ {
		if c := &a.cells[i]; !a.quiet(c) {
			a.settle(c)
		}
	}
	a.settled = true
}

// settle finds the cuts at which a cell is settled.
func (a *Areas) settle(c *areaCell) {
	s := append(a.states[:0], areaState{level: c.oldest, settled: c.oldest == c.anchor})
	for at := c.first; at != 0; at = a.events[at].next {
		e, level := &a.events[at], a.events[at].level
		s = append(s, areaState{
			event: at, from: int32(e.cut) - int32(a.before), level: level, sent: e.sent(s[len(s)-1].level) > 0,
			settled: level == c.anchor || c.losses && level == c.former,
		})
	}
	alike := a.alike(c)
	for j := range s {
		if s[j].over || s[j].known || j > 0 && !s[j-1].over && s[j-1].level == s[j].level && !(alike && s[j].sent) {
			continue // is judged
		}
		// Where what is outstanding is lost, later cuts have as many only if they have the same
		// level, or a copy came after another loss; but then more than one has the same.
		last, least, same, others := j, outstanding(s[j].level), 0, false
		for k := j + 1; k < len(s) && outstanding(s[k].level) >= least && !(alike && s[k].sent); k++ {
			if s[k].level == s[j].level {
				last, same = k, same+1
			} else if outstanding(s[k].level) == least {
				others = true
			}
		}
		if others && same < 2 && !s[j].settled {
			last = j // digests are alike by chance
		}
		end := a.ends[a.latest()]
		if last+1 < len(s) {
			end = a.ends[s[last+1].from-1]
		}
		long := float64(end-a.ends[s[j].from]) >= a.patience
		for k := j; k <= last; k++ {
			if s[k].level != s[j].level {
				// What was outstanding there has come since.
				s[k].over, s[k].settled, s[k].known = true, false, false
				continue
			}
			s[k].settled = s[k].settled || long
			s[k].known = s[k].settled && float64(end-a.ends[s[k].from]) >= a.patience
		}
	}
	c.settled, c.known, a.states = s[0].settled, -1, s
	for j := range s {
		if s[j].event != 0 {
			a.events[s[j].event].settled = s[j].settled
		}
		if s[j].known {
			c.known = s[j].from
		}
	}
}

// Losses returns how many packets have shown by now to be lost up to cut number
// to, and how many to be extra, since the last call of Settle. Extra packets
// came without being sent, or had been taken for lost. Outstanding are those that
// were sent and not received by then, and are not known to be lost.
func (a *Areas) Losses(to int) (lost, extra, outstanding int) {
	lost, extra, outstanding = a.count(to)
	for i := range a.taken {
		if x := &a.taken[i]; !x.told && x.Cut <= to {
			lost++
		}
	}
	return lost, extra, outstanding
}

// count adds up by how much the settled levels have risen or fallen up to cut
// number to, and what is outstanding beside.
func (a *Areas) count(to int) (lost, extra, out int) {
	a.settleAll()
	for _, n := range a.net[to-a.before+1:] {
		out -= n
	}
	for j := range a.cells {
		c := &a.cells[j]
		out += outstanding(c.level) - outstanding(c.told)
		if c.level == c.told && a.quiet(c) {
			continue
		}
		moved := outstanding(a.settledLevel(c, to)) - outstanding(c.told)
		lost += max(moved, 0)
		extra += max(-moved, 0)
	}
	return lost, extra, out - lost + extra
}

// settledLevel returns the level of a cell at the latest cut up to number to at which it was
// settled, or that up to which losses have been told.
func (a *Areas) settledLevel(c *areaCell, to int) uint64 {
	if a.quiet(c) {
		return c.anchor
	}
	level := c.told
	if c.settled {
		level = c.oldest
	}
	for at := c.first; at != 0 && int(a.events[at].cut) <= to; at = a.events[at].next {
		if e := &a.events[at]; e.settled {
			level = e.level
		}
	}
	return level
}

// longestKept is the greatest number of cuts that are kept for packets on
// their way.
const longestKept = 144.0

// Settle forgets what happened up to cut number to, but for as much as tells of
// the packets on their way. The next call of Losses begins there.
func (a *Areas) Settle(to int) {
	keep := to - a.before
	for keep > 0 && float64(a.ends[to-a.before]-a.ends[keep]) < min(a.patience, longestKept*a.step) {
		keep--
	}
	if a.named {
		keep = max(0, keep-keptForTrails)
	}
	lost, extra, _ := a.count(to)
	a.told += lost - extra
	gone := uint32(0)
	for int(gone)+1 < len(a.events) && int(a.events[gone+1].cut) <= a.before+keep {
		gone++
	}
	kept := a.cells[:0]
	for i := range a.cells {
		c := &a.cells[i]
		a.advance(c, a.before+keep, to)
		a.forget(c, gone)
		// A cell that is as empty as it ever was has no state.
		late := c.losses && float64(a.ends[keep]-c.moved) < keptLate*a.step // packets may still come
		if c.first == 0 && c.level == c.anchor && c.level == c.told && !late {
			a.index[c.number] = 0
			continue
		}
		kept = append(kept, *c)
		a.index[c.number] = uint32(len(kept))
	}
	a.cells, a.events = kept, a.events[:1+copy(a.events[1:], a.events[1+gone:])]
	for i := range a.events {
		if e := &a.events[i]; e.next != 0 {
			e.next -= gone
		}
	}
	passed := float64(a.ends[keep] - a.ends[0])
	a.ends, a.net = append(a.ends[:0], a.ends[keep:]...), append(a.net[:0], a.net[keep:]...)
	a.before += keep
	a.fade(keep, passed)
	if a.seen >= 0 {
		a.negative = a.seen
	}
	a.forgetTaken(to)
	a.settled = false
}

// keptLate is for how many intervals a cell remembers what it lost.
const keptLate = 600

// forget forgets the events of a cell up to number gone.
func (a *Areas) forget(c *areaCell, gone uint32) {
	for c.first != 0 && c.first <= gone {
		c.first = a.events[c.first].next
	}
	if !a.quiet(c) {
		c.stirred = c.level != c.anchor
		for at := c.first; at != 0 && !c.stirred; at = a.events[at].next {
			c.stirred = a.events[at].level != c.anchor
		}
	}
	if c.first != 0 {
		c.first, c.final = c.first-gone, c.final-gone
	}
}

// advance moves a cell's oldest cut to number keep, and the settled level up to
// which losses have been told to cut number to.
func (a *Areas) advance(c *areaCell, keep, to int) {
	if c.level == c.told && a.quiet(c) {
		if c.first != 0 {
			c.young = a.early(int(a.events[c.final].cut) - a.before)
		}
		return
	}
	c.told = a.settledLevel(c, to)
	from, level, settled := 0, c.oldest, c.settled
	for next := c.first; ; next = a.events[next].next {
		if c.oldest = level; settled {
			if level != c.anchor {
				c.losses = outstanding(level) > outstanding(c.anchor)
				c.former, c.moved = c.anchor, a.ends[from]
			}
			c.anchor, c.since = level, 0
			c.young = a.early(a.until(next))
		}
		if next == 0 || int(a.events[next].cut) > keep {
			return
		}
		e := &a.events[next]
		c.since += e.sent(level)
		from, level, settled = int(e.cut)-a.before, e.level, e.settled
	}
}

// until returns the last cut before an event, or the latest if there is none.
func (a *Areas) until(next uint32) int {
	if next == 0 {
		return a.latest()
	}
	return int(a.events[next].cut) - a.before - 1
}
