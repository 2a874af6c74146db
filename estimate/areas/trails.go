package areas

import (
	"cmp"
	"slices"
)

// A Trail is what a cell had outstanding, cut by cut, where packets may have been lost. Whoever knows what was
// sent can find out which packets: see package lda/lost.
type Trail struct {
	Cell  int
	From  int64       // when it begins: nothing was outstanding then
	Steps []TrailStep // the cuts of intervals in which something passed
	Open  bool        // what was sent after Until may be on its way

	// Until is where the trail's knowledge ends. What was sent up to then, and is outstanding after the last
	// step, is lost. If the trail is not open, that is all of it, and Until is when the last of those that are
	// not lost arrived: one that was sent before then may be lost instead of another with the same digest.
	Until int64
}

// A TrailStep is a cut of a Trail.
type TrailStep struct {
	Cut         int    // its number
	End         int64  // its time
	Sent        uint32 // packets, since the cut before
	Outstanding uint32 // packets
	Digest      uint32 // sum of their digests
}

// Lost is a packet of a trail that is lost.
type Lost struct {
	Cell, Cut int    // where and in which interval it was sent
	Digest    uint32 // as in a tally
	Sent      int64  // time stamp, as in a sum
}

// Trails calls visit for the cells that may have lost packets after cut number from and up to cut number to.
// Neither may precede the last Settle. Call Transit first.
func (a *Areas) Trails(from, to int, visit func(Trail)) {
	if a.losses.total == 0 {
		return
	}
	a.walk(from-a.before, to-a.before, func(x *span) {
		if x.exact || x.joined > 0 || x.unknown || x.before > 0 || x.twins > 0 {
			return
		}
		until := x.to
		if x.open {
			until = a.lastAged
		}
		if until <= x.from || x.most[until-x.from-1] <= 0 && !x.open {
			return // nothing that is surely lost
		}
		for !x.open && until < a.latest() && a.between(x.to, until) < a.patience {
			until++
		}
		first, _ := slices.BinarySearchFunc(a.taken, x.from+a.before+1, func(y taken, cut int) int {
			return cmp.Or(y.Cell-x.cell, y.Cut-cut, 1)
		})
		out := a.taken[first:]
		var gone uint64
		var steps []TrailStep
		for k, sent := range x.out {
			cut := x.from + 1 + k
			for ; len(out) > 0 && out[0].Cell == x.cell && out[0].Cut == cut+a.before; out = out[1:] {
				gone += out[0].tally()
				sent++
			}
			if sent > 0 || x.in[k] > 0 {
				level := (x.levels[k] - x.level + gone) & a.mask
				steps = append(steps, TrailStep{cut + a.before, a.ends[cut], sent, uint32(level), uint32(level >> 32)})
			}
		}
		visit(Trail{Cell: x.cell, From: a.ends[x.from], Steps: steps, Until: a.ends[until], Open: x.open})
	})
}

func (l *Lost) tally() uint64 { return uint64(l.Digest)<<32 | 1 }

// A taken packet was taken out. It is told if Losses has counted it for good.
type taken struct {
	Lost
	told bool
}

func compareTaken(x, y taken) int {
	return cmp.Or(x.Cell-y.Cell, x.Cut-y.Cut, cmp.Compare(x.Sent, y.Sent), cmp.Compare(x.Digest, y.Digest))
}

// TakeOut takes packets of trails out of the areas, as if they had not been sent. So they no longer age, and their cells are exact
// where they lost nothing else. It returns how many it took out for the first time. Call it before adding an interval after Trails.
func (a *Areas) TakeOut(lost []Lost) (n int) {
	a.named = true
	a.judge()
	before := a.taken
	lost = slices.DeleteFunc(slices.Clone(lost), func(x Lost) bool {
		_, found := slices.BinarySearchFunc(before, taken{Lost: x}, compareTaken)
		return found || x.Cut <= a.before || x.Cut > a.Cuts()
	})
	slices.SortFunc(lost, func(x, y Lost) int { return cmp.Or(x.Cell-y.Cell, x.Cut-y.Cut) })
	for i := range lost {
		n += a.takeOut(&lost[i])
	}
	slices.SortFunc(a.taken, compareTaken)
	return n
}

// takeOut takes a packet out, and returns 1 if it was there.
func (a *Areas) takeOut(x *Lost) int {
	if a.places[x.Cell] == 0 {
		return 0
	}
	c := &a.cells[a.cell(x.Cell)]
	rest := a.events[c.first:c.end]
	at, found := slices.BinarySearchFunc(rest, uint32(x.Cut), func(e areaEvent, cut uint32) int { return cmp.Compare(e.cut, cut) })
	if !found || rest[at].sent == 0 {
		return 0
	}
	e := &rest[at]
	e.sent, e.sentSum, e.digest, e.delay = e.sent-1, e.sentSum-uint64(x.Sent), (e.digest-x.Digest)&uint32(a.mask>>32), e.delay+uint64(x.Sent)
	a.net[x.Cut-a.before]--
	a.taken = append(a.taken, taken{Lost: *x})
	c.level = (c.level - x.tally()) & a.mask
	c.former, c.losses, c.moved = (c.anchor-x.tally())&a.mask, true, x.Sent // if it comes after all
	for k := at; k < len(rest); k++ {
		rest[k].level = (rest[k].level - x.tally()) & a.mask
	}
	if e.sent|e.received == 0 && e.level == a.levelBefore(c, at) { // nothing passed
		c.end = c.first + uint32(len(slices.Delete(rest, at, at+1)))
	}
	c.slow = c.slow || a.wasBelow(c, a.events[c.first:c.end])
	a.passes[x.Cell] = c.passing()
	a.settle(c)
	return 1
}
