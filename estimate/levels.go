package estimate

// Levels tells which packets two points have both counted, where clocks cut
// the intervals and some packets cross every cut. It follows an array of
// cells, each a sum of time stamps beside a count and a digest of packets, and
// hands out groups: sets of packets that are known to be whole, each with the
// exact sum of its delays.
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
// A cell's level is what was counted upstream less what was counted
// downstream, in packets and in digests, since the beginning: it stands for
// the packets outstanding, those on their way and those lost. Two cuts with
// equal levels have the same packets outstanding, so between them the same
// packets entered and left, and their sums of time stamps differ by their
// delays, however many packets crossed the cuts inside. A loss moves the level
// for good, and costs the packets between the last cut before it and the first
// one after it at which nothing else was on its way.
//
// What is handed out is whole, but not chosen at random where packets are
// lost: the cuts at which a cell is empty come more often where delays are
// short. Groups that hold most of what was received (compare their packets
// with it) leave little room for that. A cell in which more than one or two
// packets are on their way at a time is seldom empty and has few groups once
// it lost a packet; without loss every packet is in a group in the end.
//
// Two different sets of packets have equal levels by chance once in 2^w of
// the times that their numbers are equal, with w bits of digest. A cell is
// compared with at most four earlier cuts at each cut. Copies of one packet
// have one digest: where a cell holds nothing else, one that was lost cannot
// be told from one on its way.
//
// For one goroutine. Cut allocates nothing.
type Levels struct {
	cells []levelCell
	mask  uint64 // of the bits of a tally that are known
	bits  int    // of a sum
	cut   uint32 // how many intervals have ended
}

// maxAnchors is how many earlier cuts a cell remembers: the one before the
// latest loss, and the latest ones since.
const maxAnchors = 4

// levelCellSize is how many bytes a levelCell takes in memory.
const levelCellSize = (1+maxAnchors)*40 + 8

// A levelCell follows one cell: now is its state at the latest cut, and
// anchors are the states of earlier ones that it may return to, by age.
type levelCell struct {
	now     levelState
	anchors [maxAnchors]levelState
	used    uint8
}

// A levelState is what a cell held at a cut, less the groups that were handed
// out since the beginning.
type levelState struct {
	level  uint64 // tally sent less tally received
	sent   uint64 // sum of the time stamps of packets sent
	delay  uint64 // sum of the time stamps of packets received, less sent
	count  uint32 // packets received
	first  uint32 // the first cut at this level
	cut    uint32 // the latest cut with this state
	passed bool   // packets came and went whole since this level was first seen
}

// A CellPair is what both points' cells hold of one interval: sums of time
// stamps, of which only the low bits count, and tallies, which have the count
// of packets in the low 32 bits and their digest, a sum too, above.
type CellPair struct {
	SentSum, SentTally         uint64
	ReceivedSum, ReceivedTally uint64
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

// NewLevels returns Levels of a number of cells, each empty at both points,
// whose sums are sumBits wide and whose digests digestBits. It panics if
// sumBits is not in 1 to 64, or digestBits not in 0 to 32.
func NewLevels(cells int, sumBits, digestBits uint8) *Levels {
	if sumBits < 1 || sumBits > 64 || digestBits > 32 {
		panic("estimate: Levels of a width out of range")
	}
	l := &Levels{cells: make([]levelCell, cells), mask: 1<<(32+digestBits) - 1, bits: int(sumBits)}
	l.Reset()
	return l
}

// Reset forgets everything: all cells are empty at both points.
func (l *Levels) Reset() {
	l.cut = 0
	for i := range l.cells {
		l.cells[i] = levelCell{used: 1}
	}
}

// Gap says that intervals are missing, of one point or both: what was on its
// way before them belongs to no group, and each cell begins anew.
func (l *Levels) Gap() {
	for i := range l.cells {
		l.cells[i].restart(l.cut)
	}
}

// restart makes the state of a cell at a cut the only one it may return to.
func (c *levelCell) restart(cut uint32) {
	c.used = 0
	c.push(cut)
}

// push makes the present state the latest one to return to.
func (c *levelCell) push(cut uint32) {
	c.now.passed, c.now.first, c.now.cut = false, cut, cut
	c.anchors[c.used] = c.now
	c.used++
}

// MemorySize is how many bytes the cells take: about 200 each.
func (l *Levels) MemorySize() int { return len(l.cells) * levelCellSize }

// Cuts is how many intervals have ended, by Next.
func (l *Levels) Cuts() uint32 { return l.cut }

// Next ends an interval. The next Cut of each cell is of the interval after.
func (l *Levels) Next() { l.cut++ }

// Cut takes what both points' cell i holds of the interval that ends now, once
// for each cell and interval. If the cell is back at an earlier level, Cut
// returns the packets that came and went since, but for those of earlier
// groups, and true.
func (l *Levels) Cut(i int, pair CellPair) (Group, bool) {
	c := &l.cells[i]
	now, cut := &c.now, l.cut+1
	now.level = (now.level + pair.SentTally - pair.ReceivedTally) & l.mask
	now.sent += pair.SentSum
	now.delay += pair.ReceivedSum - pair.SentSum
	now.count += uint32(pair.ReceivedTally)
	for k := int(c.used) - 1; k >= 0; k-- {
		if c.anchors[k].level == now.level {
			return c.back(k, cut, l.bits)
		}
	}
	c.remember(cut)
	return Group{}, false
}

// back returns the cell to its k-th anchor and hands out what came since. The
// anchors after it are of cuts inside the group, and are forgotten.
func (c *levelCell) back(k int, cut uint32, bits int) (Group, bool) {
	a := &c.anchors[k]
	g := Group{
		Sum:     SignExtend(c.now.delay-a.delay, bits),
		Packets: c.now.count - a.count,
		Sent:    (c.now.sent - a.sent) << (64 - bits) >> (64 - bits),
		From:    a.cut,
		To:      cut,
	}
	if g.Packets == 0 && (g.Sum != 0 || g.Sent != 0) {
		// No packets with a time: the levels are equal by chance.
		c.restart(cut)
		return Group{}, false
	}
	a.passed = a.passed || g.Packets > 0
	a.cut = cut
	c.now, c.used = *a, uint8(k+1)
	return g, g.Packets > 0
}

// remember makes the present state one to return to. When there is no room,
// the state that the cell is least likely to return to makes it: the oldest,
// if packets passed at a later level; else the oldest but one, as a cell that
// lost nothing returns to the oldest, however long it takes.
func (c *levelCell) remember(cut uint32) {
	if c.used == maxAnchors {
		drop := 1
		for _, a := range c.anchors[1:] {
			if a.passed {
				drop = 0
			}
		}
		copy(c.anchors[drop:], c.anchors[drop+1:])
		c.used--
	}
	c.push(cut)
}

// Lost is how many packets of cell i are taken for lost since the beginning:
// those outstanding while others passed, or for at least patience intervals.
// Should one of them still come, it is lost no more. Lost is negative where
// more packets were received than sent: duplicates, or packets that passed
// upstream before the beginning.
func (l *Levels) Lost(i int, patience uint32) int32 {
	c := &l.cells[i]
	k := c.used - 1
	for k > 0 && !c.anchors[k].passed && c.anchors[k].cut-c.anchors[k].first < patience {
		k--
	}
	return int32(c.anchors[k].level)
}

// Outstanding is how many packets of cell i were sent and not received by the
// latest cut: lost, or on their way.
func (l *Levels) Outstanding(i int) int32 { return int32(l.cells[i].now.level) }
