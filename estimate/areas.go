package estimate

import "math"

// Areas adds up the time that packets spend on their way between two points, by
// the cuts of the clock at which both points empty their cells.
//
//	areas := estimate.NewAreas([]int{1024}, 64, 20)
//	areas.Begin(start)
//	for each interval, in order {
//		for i := range cells {
//			areas.Cut(i, estimate.CellPair{ … })
//		}
//		areas.Next(end)
//	}
//	transit := areas.Transit(from, to, nil) // two numbers of cuts
//
// With cumulative sums of time stamps, and n packets outstanding in a cell at a
// cut at time c,
//
//	F = received − sent + n·c
//
// is the delays of all packets that came plus the ages of all that are
// outstanding: the area under the number of packets on their way. So the
// difference of F between two cuts is the time that packets spent on their way
// in between. It is exact however many packets cross the cuts, and however long
// they take. Only losses disturb it, because a lost packet ages for ever.
//
// What is lost is known from levels. A cell's level is the number and the
// digest of what is outstanding. If it is the same at two cuts that are further
// apart than any packet takes, nothing is on its way at either, and what is
// outstanding is lost: the cell is settled there. Between two settled cuts of
// one level nothing was lost, and the areas are exact. If the level moved, it is
// known how many packets were lost but not just when, and so the area has a
// variance. After the last settled cut, the packets outstanding may be lost or
// on their way.
//
// Cells are in groups. Within a group a hash chooses the cell of a packet, so
// cells of one group are exchangeable.
//
// Cuts are numbered from 0, the beginning. Areas keeps the cuts since the last
// [Areas.Settle], and grows with the packets that pass between. It is not safe
// for concurrent use.
type Areas struct {
	groups   []int  // first cell of each group, and the number of cells
	mask     uint64 // of the bits of a tally that are known
	bits     int    // width of a sum
	patience float64
	greatest float64 // delay seen lately
	center   float64 // mean delay, about which narrow sums are unwrapped
	past     struct{ sent, lost float64 }
	taken    []taken           // in the cuts that are kept
	known    map[int]knownCell // by cell
	named    bool              // Trails has been used

	cells    []areaCell
	cuts     []areaCut // those kept; of the first, only its time counts
	step     float64   // length of the latest interval that has one
	before   int       // number of cuts that were forgotten
	underWay bool      // packets were on their way at the beginning
	spare    [][]areaEvent

	sorted  bool        // ordered is of all events
	ordered []areaEvent // events by cell, for a walk
	ends    []uint32    // by cell, the end of its events in ordered
	states  []areaState
	span    span
	losses  losses
	alone   []Alone
}

// An areaCell is a cell's state at the latest cut, and at those at which
// nothing was on its way.
type areaCell struct {
	level  uint64
	oldest uint64 // level at the oldest cut that is kept
	anchor uint64 // level at the latest settled cut up to that
	former uint64 // the settled level before the anchor's, if losses is set
	told   uint64 // the settled level up to which losses have been told
	moved  int64  // time of the first cut at the anchor's level
	since  uint32 // packets sent from the anchor to the oldest cut
	losses bool   // the anchor's level is higher than the former
	copies bool   // holds copies of one packet
}

// An areaCut is what changed in an interval, and when it ended.
type areaCut struct {
	end    int64
	events []areaEvent
}

// An areaEvent is what passed a cell in one interval.
type areaEvent struct {
	cell, sent, received, cut uint32
	level                     uint64 // after it
	sentSum, delay            uint64
}

// An areaState is a run of cuts at which a cell has one level.
type areaState struct {
	from, to int // cuts
	level    uint64
	settled  bool
	over     bool // a lower level came back after it
	known    bool // settled by what was seen a patience later, as it would be after a loss
}

// A span is the time between two cuts at which a cell is settled, or from the
// last such cut on.
type span struct {
	cell, group int
	from, to    int     // cuts: it begins after one and ends with the other
	lost        int     // packets
	joined      int     // packets that came without being sent
	unknown     bool    // nothing tells the areas, because of packets that were on their way at the beginning
	exact       bool    // nothing was lost, and nothing else came
	late        int     // packets that came, and had been taken for lost
	owed        float64 // their ages when the span began
	open        bool    // the cell has not settled since
	sure        int     // if so, the cut up to which nothing that is outstanding was lost
	known       bool    // would be over by now also if packets had been lost
	before      float64 // packets sent in it before the oldest cut that is kept

	sent, received uint32
	level          uint64 // where it began
	sum            int64  // of delays, if exact
	sentSum        uint64 // wrapped

	// By cut, from the one after from on.
	area   []float64 // less the ages of what was lost before the span
	in     []uint32  // received
	out    []uint32  // sent
	on     []int32   // outstanding at the cut, less what was lost before
	way    []float64 // of these, those on their way, as estimated
	most   []int32   // the least number outstanding from then on: the most that may be lost
	levels []uint64
	steps  []float64 // packets lost, as estimated
	spread float64   // variance of their ages
}

// NewAreas returns Areas for groups of so many cells, with sums of sumBits and
// digests of digestBits. It panics if sumBits is not in 1 to 64 or digestBits
// not in 0 to 32.
func NewAreas(groups []int, sumBits, digestBits uint8) *Areas {
	if sumBits < 1 || sumBits > 64 || digestBits > 32 {
		panic("estimate: Areas of a width out of range")
	}
	a := &Areas{mask: 1<<(32+digestBits) - 1, bits: int(sumBits), patience: math.Inf(1), known: map[int]knownCell{}}
	total := 0
	for _, n := range groups {
		a.groups = append(a.groups, total)
		total += n
	}
	a.groups = append(a.groups, total)
	a.cells = make([]areaCell, total)
	a.ends = make([]uint32, total)
	a.Begin(0)
	return a
}

// Begin says that an interval begins at a time, and that what was outstanding
// before it is unknown, on its way or lost. The next cut has number 1.
func (a *Areas) Begin(start int64) {
	for k := range a.cuts {
		a.recycle(a.cuts[k].events)
	}
	a.cuts, a.before = append(a.cuts[:0], areaCut{end: start}, areaCut{}), 0
	clear(a.cells)
	a.underWay, a.sorted = false, false
	a.taken = a.taken[:0]
	clear(a.known)
}

func (a *Areas) recycle(events []areaEvent) {
	if cap(events) > 0 {
		a.spare = append(a.spare, events[:0])
	}
}

// Cut takes what cell i holds at both points of the interval that ends now.
// Call it once per cell and interval; you may skip cells that are empty.
func (a *Areas) Cut(i int, pair CellPair) {
	c := &a.cells[i]
	c.level = (c.level + pair.SentTally - pair.ReceivedTally) & a.mask
	now := &a.cuts[len(a.cuts)-1]
	now.events = append(now.events, areaEvent{
		cell: uint32(i), sent: uint32(pair.SentTally), received: uint32(pair.ReceivedTally),
		level: c.level, sentSum: pair.SentSum, delay: pair.ReceivedSum - pair.SentSum,
	})
}

// Repeats says that cell i holds many copies of one packet. One of them that is
// on its way at two cuts looks like one that is lost, so such a cell is settled
// only where it is as empty as before. If packets may have been on their way at
// the beginning, nothing is known of it.
func (a *Areas) Repeats(i int) { a.cells[i].copies = true }

// UnderWay says that packets were on their way at the beginning.
func (a *Areas) UnderWay() { a.underWay = true }

// Next ends the interval.
func (a *Areas) Next(end int64) {
	a.sorted = false
	if length := float64(end - a.cuts[len(a.cuts)-2].end); length > 0 {
		a.step = length
	}
	a.cuts[len(a.cuts)-1].end = end
	next := areaCut{}
	if n := len(a.spare); n > 0 {
		next.events, a.spare = a.spare[n-1], a.spare[:n-1]
	}
	a.cuts = append(a.cuts, next)
}

// Cuts returns the number of the latest cut.
func (a *Areas) Cuts() int { return a.before + a.latest() }

// latest returns the latest cut, counted from the oldest that is kept.
func (a *Areas) latest() int { return len(a.cuts) - 2 }

// Patience returns how long a packet may be on its way before it counts as
// lost, in nanoseconds: half as long again as the greatest delay seen lately.
// It is infinite while no delay has been seen.
func (a *Areas) Patience() float64 { return a.patience }

// Settling returns how many intervals as long as the last one make a patience,
// but at most so many.
func (a *Areas) Settling(most int) int {
	return int(min(float64(most), math.Ceil(a.patience/max(a.step, 1))+1))
}

// Outstanding returns the number of packets that were sent and not received by
// cut number to, and are not known to be lost.
func (a *Areas) Outstanding(to int) (n int) {
	for i := range a.cells {
		n += outstanding(a.cells[i].level) - outstanding(a.cells[i].told)
	}
	for k := to - a.before + 1; k <= a.latest(); k++ {
		for i := range a.cuts[k].events {
			n += int(a.cuts[k].events[i].received) - int(a.cuts[k].events[i].sent)
		}
	}
	lost, extra := a.count(to, func(int, []areaEvent) {})
	return n - lost + extra
}

// outstanding returns the number of packets of a level.
func outstanding(level uint64) int { return int(int32(level)) }

// length returns the time from the cut before k to k.
func (a *Areas) length(k int) float64 { return float64(a.cuts[k].end - a.cuts[k-1].end) }

// old reports whether cut k is at least a patience before the latest cut.
func (a *Areas) old(k int) bool {
	return float64(a.cuts[a.latest()].end-a.cuts[k].end) >= a.patience
}

// groupOf returns the group of a cell.
func (a *Areas) groupOf(cell int) (g int) {
	for a.groups[g+1] <= cell {
		g++
	}
	return g
}

// size returns the number of cells of a group.
func (a *Areas) size(group int) int { return a.groups[group+1] - a.groups[group] }
