package rli

import "math"

// Between two packets of a busy period whose waits are known, the wait goes up and down at random and never
// reaches zero: a Bessel bridge of dimension 3. At the fraction u of its length T, from a to b,
//
//	m = (1−u)·a + u·b
//	v = u(1−u)·σ²T
//	E[w²] = m² + v + 2vx/(eˣ−1),  x = 2ab/σ²T
//
// The square of its mean is close to m² + v·(2+c)·x/(eˣ−1)·(1+x/24), where c = (8/π−2)·3v/(d²+3v) and d =
// (1−u)·a − u·b; this gives the mean within 0.3 %.
//
// The height of the bridge from zero to zero, √(8/π·u(1−u)T)·σ, is learned by doublings of the time since the
// period's beginning and of the time left, which is never zero, as it includes a typical packet's. When packets
// came is not known within a span of T + a − b; the deviation is in proportion to it.
//
// A burst makes waits rise slowly and fall fast. So estimates from or to one known packet are multiplied by a learned
// factor, and those between two drawn to the straight line.
type spread struct {
	height, before, after ratios
	miss                  [3]ratios // by the number of known ends
	between               cell
	sizes                 trend // ns that packets take
}

const spreadSize = (3*mixes + 3) * square * cellSize

func newSpread() *spread {
	s := &spread{
		height: newRatios(mixes, 0, 1, math.Inf(1), false),
		before: newRatios(1, 1, 16, most, false), after: newRatios(1, 1, 16, most, false),
	}
	for i, m := range []int{mixes, mixes, 1} {
		s.miss[i] = newRatios(m, 1, 32, most*most, true)
	}
	return s
}

// scale returns √(T·u(1−u)).
func scale(since, left float64) float64 { return math.Sqrt(since * left / (since + left)) }

// An end of a bridge is a packet whose waiting time is known, or the beginning or end of a period.
type end struct {
	point
	known bool
}

// A bridge is the course of the waiting time between two ends.
type bridge struct {
	from, to end
	spread   *spread
	mend     *ratios // if one end is known
	miss     *ratios
}

func (s *spread) bridge(from, to end) bridge {
	b := bridge{from: from, to: to, spread: s, miss: &s.miss[1]}
	switch {
	case from.known && to.known:
		b.miss = &s.miss[2]
	case from.known:
		b.mend = &s.after
	case to.known:
		b.mend = &s.before
	default:
		b.miss = &s.miss[0]
	}
	return b
}

// typical returns what plain does for a packet of typical size, lean larger, in place of one: those behind it
// would be sent that much later, and wait that much longer.
func (b *bridge) typical(m mix, place, lean float64) (cell int, left, line, wait, variance float64) {
	since, end := place-b.from.place, b.to.wait
	left = max(b.to.place+lean-place, 1)
	if b.to.known {
		end = max(end+lean, 0)
	}
	cell = cellOf(m, since, left)
	line, wait, variance = b.plain(cell, since, left, end)
	return cell, left, line, wait, variance
}

// at returns the mean waiting time of a packet at a place, its predicted error, and the cell that corrected it.
func (b *bridge) at(m mix, place, lean float64) (wait, error float64, miss int) {
	since, rest := place-b.from.place, b.to.place-place
	switch {
	case since <= 0:
		return b.from.wait, 0, 0
	case rest <= 0:
		return b.to.wait, 0, 0
	}
	cell, left, line, wait, variance := b.typical(m, place, lean)
	shift := b.shift(left, lean, wait, variance)
	switch {
	case b.from.known && b.to.known:
		wait = line + b.spread.between.refine(1, reluctant, most)*(wait-line)
	case b.mend != nil && variance > 0: // or nothing is learned yet
		wait *= b.mend.at(cell)
	}
	// A packet waits no longer than the link has been busy, and arrives between the two ends.
	low, high := max(b.to.wait-rest, 0), b.from.wait+since
	wait = max(min(wait+shift, high), low)
	room, deviation := max(high-low, 0), math.Sqrt(variance)
	all := deviation + 0.05*room // traffic may not move like a bridge at all
	if variance == 0 {           // nothing was learned, and all that is possible is as likely
		all = room / math.Sqrt(12)
	}
	miss = cellOf(m, deviation, room)
	return wait, min(all*b.miss.at(miss), room), miss
}

// shift returns how much longer a packet waits than one of typical size, lean larger (METHODS.md, section 4).
func (b *bridge) shift(left, lean, wait, variance float64) float64 {
	typical := b.spread.sizes.mean
	rest, usual, itself := left-typical, wait+typical, max(wait+typical-lean, 1)
	if b.to.known || rest < 1 || lean == 0 || typical == 0 { // or nothing came after it
		return 0
	}
	return lean * variance * (1/(usual*itself) + max(rest/typical-1, 0)/((usual+rest)*(itself+rest)))
}

// plain returns the straight line, the bridge and its variance at a place between two ends, of which the second had to wait.
func (b *bridge) plain(cell int, since, left, end float64) (line, wait, variance float64) {
	height, part := b.spread.height.at(cell), 1/(since+left) // of the length
	scale := since * left * part
	v := height * height * scale * (math.Pi / 8)
	line = (b.from.wait*left + end*since) * part
	near, x := 0.0, 2*b.from.wait*end*scale*part
	if x == 0 {
		near = 1
	} else if x < far*v {
		near = x / v / math.Expm1(x/v) * (1 + x/v/24)
	}
	bend := near * excess * 3 * v / max(line*line-2*x+3*v, math.SmallestNonzeroFloat64)
	span := max(1+(b.from.wait-end)*part, 0)
	return line, math.Sqrt(line*line + v*(2*near+bend)), v * (1 - bend) * span * span
}

const (
	far       = 16 // a bridge with x above it is straight within a few parts in a million of v
	reluctant = 10 // evidence, of what is there to be seen over its variance
	excess    = 8/math.Pi - 2
)
