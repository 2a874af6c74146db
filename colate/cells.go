package colate

import (
	"math/bits"

	"github.com/hoplag/hoplag/estimate"
)

// mostCuts is the number of epochs that a cellTable can hold: the number of
// bits in a mask.
const mostCuts = 64

// A cellTable holds what some counters of both points say over some epochs.
//
// It matches them by level. Take the low bits of a word, count and digest, at
// one point less the other, and add them up over the epochs so far: that is a
// counter's level. It stands for the packets that one point has seen and the
// other has not, either on their way or lost. Between two cuts of equal level
// the same packets came and went. So the words' differences over those epochs
// are the sum of these packets' delays, whatever crossed the cuts in between,
// and whatever was lost before and after. Differences are taken epoch by
// epoch, and wrap only if the delays of one such group do.
type cellTable struct {
	config Config
	cells  int
	room   int // epochs
	epochs int
	prefix []uint64 // for each cell and cut: words' differences up to there
	counts []uint32 // for each cell and epoch: packets at the second point
}

// A group is the packets of one cell between two cuts of equal level, except
// those of inner groups, which have a level of their own, such as packets that
// pass while one other packet is long on its way.
type group struct {
	sum   float64 // of delays, ns
	mask  uint64  // the epochs in it
	count uint32
}

// one returns the epoch of a group that has only one.
func (g *group) one() (epoch int, ok bool) {
	return bits.TrailingZeros64(g.mask), g.mask&(g.mask-1) == 0
}

func newCellTable(c Config, cells, room int) *cellTable {
	return &cellTable{
		config: c, cells: cells, room: room,
		prefix: make([]uint64, cells*(room+1)),
		counts: make([]uint32, cells*room),
	}
}

// put sets the contents of cell i in the epoch after the last.
func (t *cellTable) put(i int, up, down uint64) {
	at := i*(t.room+1) + t.epochs
	t.prefix[at+1] = t.prefix[at] + down - up
	t.counts[i*t.room+t.epochs] = uint32(down & (1<<t.config.CountBits - 1))
}

// clear empties the table. Packets on their way at the last cut get no group.
func (t *cellTable) clear() { t.epochs = 0 }

// packets returns how many packets cell i has in an epoch.
func (t *cellTable) packets(i, epoch int) float64 { return float64(t.counts[i*t.room+epoch]) }

// gone returns how many more packets of cell i the first point has in an epoch
// than the second: lost, or on their way.
func (t *cellTable) gone(i, epoch int) float64 {
	at := i*(t.room+1) + epoch
	c := int(t.config.CountBits)
	return -float64(estimate.SignExtend(t.prefix[at+1]-t.prefix[at], c))
}

func (t *cellTable) total(i int) float64 {
	n := 0.0
	for _, count := range t.counts[i*t.room:][:t.epochs] {
		n += float64(count)
	}
	return n
}

// groups appends the groups of cell i.
func (t *cellTable) groups(dst []group, i int) []group {
	return t.between(dst, t.prefix[i*(t.room+1):], t.counts[i*t.room:], 0, t.epochs)
}

// between appends the groups from one cut to another. From each cut it goes to
// the next one of the same level.
func (t *cellTable) between(dst []group, prefix []uint64, counts []uint32, from, to int) []group {
	c := &t.config
	low := uint64(1)<<c.lowBits() - 1
	for a := from; a < to; {
		b := a + 1
		for b <= to && (prefix[b]^prefix[a])&low != 0 {
			b++
		}
		if b > to {
			a++
			continue
		}
		sum := estimate.SignExtend((prefix[b]-prefix[a])>>c.lowBits(), int(c.sumBits()))
		rest := group{sum: float64(sum) * c.Unit(), mask: 1<<(b-1)<<1 - 1<<a}
		for _, n := range counts[a:b] {
			rest.count += n
		}
		whole := rest.count
		if inner := len(dst); b > a+2 {
			dst = t.between(dst, prefix, counts, a+1, b-1)
			for k := range dst[inner:] {
				g := &dst[inner+k]
				rest.sum -= g.sum
				rest.count -= g.count
				rest.mask &^= g.mask
			}
		}
		if whole > 0 || sum == 0 { // otherwise the levels are equal by chance
			dst = append(dst, rest)
		}
		a = b
	}
	return dst
}

// cover returns the epochs that are in some group.
func cover(groups []group) (mask uint64) {
	for i := range groups {
		mask |= groups[i].mask
	}
	return mask
}
