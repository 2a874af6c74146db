package colate

import (
	"math/bits"

	"github.com/hoplag/hoplag/estimate"
)

// mostCuts is how many epochs a cellTable can hold: as many as a mask has bits.
const mostCuts = 64

// farthest is how many epochs later a counter's level is looked for again.
// Farther than that an equal level is more and more likely to be so by chance.
const farthest = 8

// A cellTable holds what some counters of both points say over some epochs.
//
// It matches them by level. The low bits of a word, count and digest, taken at
// one point less the other, and added up over the epochs so far, are a
// counter's level: they stand for the packets that one point has seen and the
// other has not, on their way or lost. Between two cuts of equal level the same
// packets came and went: so the words' differences over those epochs are the
// sum of their delays, whatever crossed the cuts in between, and whatever was
// lost before and after. Differences are taken epoch by epoch, and never wrap
// before the delays of one such group do.
type cellTable struct {
	config Config
	cells  int
	room   int // epochs
	epochs int
	prefix []uint64 // for each cell, each cut: words' differences up to there
	counts []uint32 // for each cell, each epoch: packets at the second point
}

// A group is the packets of one cell between two cuts of equal level.
type group struct {
	sum      float64 // of delays, ns
	count    uint32
	from, to uint8 // epochs from, up to but without to
}

func (g *group) mask() uint64 { return 1<<(g.to-1)<<1 - 1<<g.from }

func newCellTable(c Config, cells, room int) *cellTable {
	return &cellTable{
		config: c, cells: cells, room: room,
		prefix: make([]uint64, cells*(room+1)),
		counts: make([]uint32, cells*room),
	}
}

// put sets what cell i has in the epoch after the last.
func (t *cellTable) put(i int, up, down uint64) {
	at := i*(t.room+1) + t.epochs
	t.prefix[at+1] = t.prefix[at] + down - up
	t.counts[i*t.room+t.epochs] = uint32(down & (1<<t.config.CountBits - 1))
}

// clear makes room. What was on its way at the last cut has no group.
func (t *cellTable) clear() { t.epochs = 0 }

// packets is how many cell i has in an epoch, and over all of them.
func (t *cellTable) packets(i, epoch int) float64 { return float64(t.counts[i*t.room+epoch]) }

func (t *cellTable) total(i int) float64 {
	n := 0.0
	for _, count := range t.counts[i*t.room:][:t.epochs] {
		n += float64(count)
	}
	return n
}

// groups appends the groups of cell i, the first that there are.
func (t *cellTable) groups(dst []group, i int) []group {
	c := &t.config
	low := uint64(1)<<c.lowBits() - 1
	prefix := t.prefix[i*(t.room+1):][:t.epochs+1]
	counts := t.counts[i*t.room:][:t.epochs]
	for from := 0; from < t.epochs; {
		to, last := from+1, min(from+farthest, t.epochs)
		for to <= last && (prefix[to]^prefix[from])&low != 0 {
			to++
		}
		if to > last {
			from++
			continue
		}
		var n uint32
		for _, count := range counts[from:to] {
			n += count
		}
		sum := estimate.SignExtend((prefix[to]-prefix[from])>>c.lowBits(), int(c.sumBits()))
		if n > 0 || sum == 0 { // else the levels are equal by chance
			dst = append(dst, group{float64(sum) * c.Unit(), n, uint8(from), uint8(to)})
		}
		from = to
	}
	return dst
}

// cover is the epochs that are in some group.
func cover(groups []group) (mask uint64) {
	for i := range groups {
		mask |= groups[i].mask()
	}
	return mask
}

// An exposure is how many of a flow's cells have a group in each epoch.
type exposure [mostCuts]uint16

func (x *exposure) add(mask uint64) {
	for ; mask != 0; mask &= mask - 1 {
		x[bits.TrailingZeros64(mask)]++
	}
}

// weight is for how many times itself a group stands, so that each epoch's
// groups stand for all of the flow's cells: packets are spread over them at
// random, and those of a cell that lost none are like those of any other.
func (x *exposure) weight(g *group, cells float64) float64 {
	if g.to == g.from+1 {
		return cells / float64(x[g.from])
	}
	sum := 0.0
	for e := g.from; e < g.to; e++ {
		sum += cells / float64(x[e])
	}
	return sum / float64(g.to-g.from)
}
