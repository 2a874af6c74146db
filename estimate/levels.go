package estimate

// Levels finds packets that both points have counted although clocks cut the
// intervals and packets cross every cut. It follows an array of cells, each a
// sum of time stamps with a count and a digest of packets. It returns groups:
// sets of packets that are known to be whole, each with the exact sum of its
// delays.
//
//	levels := estimate.NewLevels(cells, 40, 32)
//	for each interval, in order {
//		for i := range cells {
//			group, ok := levels.Cut(i, estimate.CellPair{ … })
//			if ok { total += group.Sum; packets += group.Packets }
//		}
//		levels.Next()
//	}
//
// A cell's level is what was counted upstream minus what was counted downstream
// since the beginning, in packets and in digests. It stands for the packets
// outstanding: those on their way and those lost. At two cuts with equal levels
// the same packets are outstanding, so between them the same packets entered
// and left, and the sums of their time stamps differ by their delays, however
// many packets crossed the cuts in between. A loss moves the level for good. It
// costs the packets between the last cut before it and the first cut after it
// at which nothing else was on its way.
//
// Groups are whole, but if packets are lost they are not a random choice: a
// cell is empty at a cut more often when delays are short. There is little room
// for that if the groups hold most of the packets received; compare their
// numbers. A cell that usually has more than one or two packets on their way is
// seldom empty, and yields few groups once it has lost a packet. Without loss
// every packet ends up in a group.
//
// With a digest of w bits, two different sets of equally many packets have
// equal levels by chance once in 2^w times. Each cut is compared with at most
// four earlier ones. Copies of one packet have one digest: in a cell that holds
// nothing else, a lost copy looks like one on its way.
//
// Levels is not safe for concurrent use. Cut allocates nothing.
type Levels struct {
	cells []levelCell
	tops  []levelTop
	mask  uint64 // of the bits of a tally that are known
	bits  int    // width of a sum
	cut   uint32 // number of intervals that have ended
}

// maxAnchors is the number of cuts that a cell remembers: the latest, the one
// before the latest loss, and the latest ones since.
const maxAnchors = 4

// levelCellSize is the number of bytes that a cell takes in memory.
const levelCellSize = maxAnchors*40 + 3

// A levelCell follows one cell: the states at cuts to which it may return, by
// age. The last one in use is its state at the latest cut. Cells whose level
// does not change, most of them at most cuts, are not touched: see levelTop.
type levelCell [maxAnchors]levelState

// A levelTop is the part of a cell's latest state that is kept separately, so
// that the tops of all cells fit a cache.
type levelTop struct {
	at     uint8 // the index of that state in the cell
	passed bool  // packets came and went whole since this level was first seen
	away   bool  // the cell has seen another level, or its level is not 0
}

// A levelState is what a cell held at a cut, less the groups returned since
// the beginning.
type levelState struct {
	level  uint64 // tally sent less tally received
	sent   uint64 // sum of the time stamps of packets sent
	delay  uint64 // sum of the time stamps of packets received, less sent
	count  uint32 // packets received
	first  uint32 // the first cut at this level
	cut    uint32 // the latest cut with this state; that of the latest state is the latest cut
	passed bool   // as in levelTop, when a later state came
}

// A Group is a number of packets that both points counted, none of them lost.
type Group struct {
	Sum     int64  // of their delays, in nanoseconds
	Packets uint32 // how many
	Sent    uint64 // sum of the time stamps upstream, wrapped at the width of sums: of one packet, when it was sent

	// The packets were sent and received after cut From and up to cut To.
	// Groups handed out before, from cuts in between, are not among them.
	From, To uint32
}

// NewLevels returns Levels for a number of cells, all empty at both points,
// with sums of sumBits and digests of digestBits. It panics if sumBits is not
// in 1 to 64 or digestBits not in 0 to 32.
func NewLevels(cells int, sumBits, digestBits uint8) *Levels {
	if sumBits < 1 || sumBits > 64 || digestBits > 32 {
		panic("estimate: Levels of a width out of range")
	}
	return &Levels{
		cells: make([]levelCell, cells),
		tops:  make([]levelTop, cells),
		mask:  1<<(32+digestBits) - 1,
		bits:  int(sumBits),
	}
}

// Reset forgets everything: all cells are empty at both points.
func (l *Levels) Reset() {
	l.cut = 0
	for i := range l.tops {
		if l.tops[i].away {
			l.cells[i] = levelCell{}
		}
	}
	clear(l.tops)
}

// Gap says that intervals of one or both points are missing. Packets that were
// on their way belong to no group, and each cell begins anew.
func (l *Levels) Gap() {
	for i := range l.tops {
		if top := &l.tops[i]; top.away {
			l.restart(i, l.cells[i][top.at], l.cut)
		}
	}
}

// restart makes the state of a cell at a cut the only one it may return to.
func (l *Levels) restart(i int, now levelState, cut uint32) {
	now.first, now.cut = cut, cut
	l.cells[i][0] = now
	l.tops[i] = levelTop{away: now.level != 0}
}

// MemorySize returns the number of bytes that the cells take: about 160 each.
func (l *Levels) MemorySize() int { return len(l.cells) * levelCellSize }

// Cuts returns the number of intervals that have ended.
func (l *Levels) Cuts() uint32 { return l.cut }

// Next ends an interval. The next Cut of each cell is of the following one.
func (l *Levels) Next() { l.cut++ }

// Cut takes what cell i holds at both points of the interval that ends now.
// Call it once per cell and interval; you may skip cells that are empty at both
// points. If the cell is back at an earlier level, Cut returns the packets that
// came and went since, without those of earlier groups, and true.
func (l *Levels) Cut(i int, pair CellPair) (Group, bool) {
	if (pair.SentTally-pair.ReceivedTally)&l.mask != 0 {
		return l.leave(i, pair)
	}
	// Whoever entered the cell has left it, and its state stays what it was.
	g := l.group(pair.SentSum, pair.ReceivedSum-pair.SentSum, uint32(pair.ReceivedTally), l.cut)
	if g.Packets > 0 {
		l.tops[i].passed = true
		return g, true
	}
	if g.Sum != 0 || g.Sent != 0 {
		l.chance(i)
	}
	return Group{}, false
}

// group makes a group that ends with the current interval.
func (l *Levels) group(sent, delay uint64, packets, from uint32) Group {
	return Group{
		Sum:     SignExtend(delay, l.bits),
		Packets: packets,
		Sent:    sent << (64 - l.bits) >> (64 - l.bits),
		From:    from,
		To:      l.cut + 1,
	}
}

// chance handles a group without packets but with a time, which means that
// levels are equal by chance. The cell begins anew.
func (l *Levels) chance(i int) {
	l.restart(i, l.cells[i][l.tops[i].at], l.cut+1)
}

// leave is Cut for a cell that changes its level.
func (l *Levels) leave(i int, pair CellPair) (Group, bool) {
	c, top := &l.cells[i], &l.tops[i]
	now := c[top.at]
	c[top.at].cut, c[top.at].passed = l.cut, top.passed
	now.level = (now.level + pair.SentTally - pair.ReceivedTally) & l.mask
	now.sent += pair.SentSum
	now.delay += pair.ReceivedSum - pair.SentSum
	now.count += uint32(pair.ReceivedTally)
	for k := int(top.at) - 1; k >= 0; k-- {
		if c[k].level == now.level {
			return l.back(i, k, &now)
		}
	}
	if top.at == maxAnchors-1 {
		c.forget()
		top.at--
	}
	top.at++
	now.first = l.cut + 1
	c[top.at] = now
	top.passed, top.away = false, true
	return Group{}, false
}

// back returns cell i to its k-th state and returns the group of what came
// since. The states after it are at cuts inside the group, and are forgotten.
func (l *Levels) back(i, k int, now *levelState) (Group, bool) {
	a, top := &l.cells[i][k], &l.tops[i]
	g := l.group(now.sent-a.sent, now.delay-a.delay, now.count-a.count, a.cut)
	if g.Packets == 0 && (g.Sum != 0 || g.Sent != 0) {
		l.restart(i, *now, l.cut+1)
		return Group{}, false
	}
	*top = levelTop{at: uint8(k), passed: a.passed || g.Packets > 0, away: k > 0 || a.level != 0}
	return g, g.Packets > 0
}

// forget makes room for a state by dropping the one that the cell is least
// likely to return to: the oldest, if packets passed at a later level.
// Otherwise it is the oldest but one, because a cell that lost nothing returns
// to the oldest, however long it takes.
func (c *levelCell) forget() {
	drop := 1
	for i := range c[1:] {
		if c[1+i].passed {
			drop = 0
		}
	}
	copy(c[drop:], c[drop+1:])
}

// Lost returns the number of packets of cell i that are taken for lost since
// the beginning: those outstanding while others passed, or for at least
// patience intervals. A packet that still comes is no longer lost. Lost is
// negative if more packets were received than sent: duplicates, or packets that
// passed upstream before the beginning.
func (l *Levels) Lost(i int, patience uint32) int32 {
	top := l.tops[i]
	if !top.away {
		return 0
	}
	c, k := &l.cells[i], top.at
	if k > 0 && !top.passed && l.cut-c[k].first < patience {
		for k--; k > 0 && !c[k].passed && c[k].cut-c[k].first < patience; k-- {
		}
	}
	return int32(c[k].level)
}

// Overdue returns the number of packets of cell i that were outstanding at two
// cuts at least patience intervals apart, the same ones at both: lost, if none is
// on its way for so long. It returns false if there are no such cuts, as in a cell
// that always has packets on their way.
func (l *Levels) Overdue(i int, patience uint32) (packets int32, ok bool) {
	top := l.tops[i]
	if !top.away {
		return 0, false
	}
	c := &l.cells[i]
	if l.cut-c[top.at].first >= patience {
		return int32(c[top.at].level), true
	}
	for k := int(top.at) - 1; k >= 0; k-- {
		if c[k].cut-c[k].first >= patience {
			return int32(c[k].level), true
		}
	}
	return 0, false
}

// Level returns the level of cell i at the latest cut. Where it is the same at
// two cuts, the same packets are outstanding.
func (l *Levels) Level(i int) uint64 {
	top := l.tops[i]
	if !top.away {
		return 0
	}
	return l.cells[i][top.at].level
}

// Outstanding returns the number of packets of cell i that were sent and not
// received by the latest cut: lost, or on their way.
func (l *Levels) Outstanding(i int) int32 {
	top := l.tops[i]
	if !top.away {
		return 0
	}
	return int32(l.cells[i][top.at].level)
}
