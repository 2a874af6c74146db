package estimate

import (
	"cmp"
	"slices"
)

// A Trail is what a cell had outstanding, cut by cut, where packets may have been
// lost. Whoever knows what was sent can find out which: see package lda/lost.
type Trail struct {
	Cell  int
	From  int64       // when it begins
	Start []Lost      // what was outstanding then
	Steps []TrailStep // the cuts of intervals in which something passed; valid during the visit
	Until int64       // what was sent up to then, and is outstanding after the last step, is lost
	Open  bool        // what was sent later may be on its way
}

// Clone returns a copy that stays valid.
func (t Trail) Clone() Trail {
	t.Steps = slices.Clone(t.Steps)
	return t
}

// A TrailStep is a cut of a Trail.
type TrailStep struct {
	Cut         int    // its number
	End         int64  // its time
	Sent        uint32 // packets, since the cut before
	Outstanding uint32 // packets
	Digest      uint32 // sum of their digests
}

// Lost is a packet of a trail that is lost, or outstanding.
type Lost struct {
	Cell, Cut int    // where and in which interval it was sent
	Digest    uint32 // as in a tally
	Sent      int64  // time stamp, as in a sum
}

// A knownCell is a cell of which it was known what was outstanding at a cut.
type knownCell struct {
	at   int // the cut
	sure int // all that was lost up to here was taken out
	on   []Lost
}

// Trails calls visit for the cells that may have lost packets after cut number
// from and up to cut number to. Neither is before what was settled last. Call
// Transit first.
func (a *Areas) Trails(from, to int, visit func(Trail)) {
	a.named = true
	old := a.lastOld()
	var steps []TrailStep
	taken := a.taken
	a.walk(from-a.before, func(x *span) {
		known, ok := a.known[x.cell]
		begin := x.from
		if ok = ok && x.open && known.at-a.before > x.from; ok {
			begin = known.at - a.before
		}
		if x.from >= to-a.before || x.exact || x.joined > 0 || x.unknown || x.before > 0 && !ok || a.cells[x.cell].copies {
			return
		}
		until := x.to
		if x.open {
			until = old
		}
		if until <= x.from || x.most[until-x.from-1] <= 0 && (!x.open || a.losses.total == 0) {
			return // nothing that is surely lost
		}
		for len(taken) > 0 && (taken[0].Cell < x.cell || taken[0].Cell == x.cell && taken[0].Cut <= begin+a.before) {
			taken = taken[1:]
		}
		var gone uint64
		steps = steps[:0]
		for k := begin - x.from; k < len(x.out); k++ {
			cut, sent := x.from+1+k, x.out[k]
			for ; len(taken) > 0 && taken[0].Cell == x.cell && taken[0].Cut == cut+a.before; taken = taken[1:] {
				gone += taken[0].tally()
				sent++
			}
			if sent > 0 || x.in[k] > 0 {
				level := (x.levels[k] - x.level + gone) & a.mask
				steps = append(steps, TrailStep{cut + a.before, a.cuts[cut].end, sent, uint32(level), uint32(level >> 32)})
			}
		}
		t := Trail{Cell: x.cell, From: a.cuts[begin].end, Steps: steps, Until: a.cuts[until].end, Open: x.open}
		if ok {
			t.Start = known.on
		}
		visit(t)
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

// lastOld returns the last cut that is at least a patience before the latest.
func (a *Areas) lastOld() int {
	k := a.latest()
	for k > 0 && !a.old(k) {
		k--
	}
	return k
}

// TakeOut takes packets of trails out of the areas, as if they had not been
// sent. So they no longer age, and their cells are exact where they lost
// nothing else. It returns how many it took: not those that it took before. Of
// some cells with open trails all is known: what was lost, and what is on its
// way, which is kept. No interval has been added since the trails were told.
func (a *Areas) TakeOut(lost []Lost, onWay map[int][]Lost) (n int) {
	for cell, on := range onWay {
		a.known[cell] = knownCell{a.Cuts(), a.before + a.lastOld(), on}
	}
	before := a.taken
	lost = slices.DeleteFunc(slices.Clone(lost), func(x Lost) bool {
		_, found := slices.BinarySearchFunc(before, taken{Lost: x}, compareTaken)
		return found || x.Cut <= a.before || x.Cut > a.Cuts()
	})
	slices.SortFunc(lost, func(x, y Lost) int { return cmp.Or(x.Cut-y.Cut, x.Cell-y.Cell) })
	gone := make([]uint64, len(a.cells)) // by cell, up to a cut
	for k := 1; k <= a.latest(); k++ {
		end := 0
		for end < len(lost) && lost[end].Cut == k+a.before {
			end++
		}
		now := lost[:end]
		lost = lost[end:]
		for i := range a.cuts[k].events {
			e := &a.cuts[k].events[i]
			at, _ := slices.BinarySearchFunc(now, int(e.cell), func(x Lost, cell int) int { return x.Cell - cell })
			for ; at < len(now) && now[at].Cell == int(e.cell) && e.sent > 0; at++ {
				e.sent--
				e.sentSum -= uint64(now[at].Sent)
				e.delay += uint64(now[at].Sent)
				gone[e.cell] += now[at].tally()
				a.taken = append(a.taken, taken{Lost: now[at]})
				n++
			}
			e.level = (e.level - gone[e.cell]) & a.mask
		}
		a.cuts[k].events = slices.DeleteFunc(a.cuts[k].events, func(e areaEvent) bool { return e.sent|e.received == 0 })
	}
	for i := range a.cells {
		a.cells[i].level = (a.cells[i].level - gone[i]) & a.mask
	}
	slices.SortFunc(a.taken, compareTaken)
	a.sorted = a.sorted && n == 0
	return n
}
