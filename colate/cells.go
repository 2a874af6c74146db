package colate

import (
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/hoplag/hoplag/estimate"
)

// A span is a time from start to end, in nanoseconds.
type span struct{ start, end int64 }

// room is the largest number of epochs that a cellTable can hold: the number of bits in a mask. A quarter of
// them are seen again with the next ones: ahead epochs settle what was on its way.
const room, ahead = 32, 8

// A cellTable holds what some counters of both points say over some epochs, and makes areas of it, as
// [areas.Areas] does, of which it needs a fraction of the memory and time: an epoch of a cell takes 12 bytes.
//
// A counter's count and digests at the second point less the first are its change. It stands for the packets
// that are on their way or lost. Over epochs whose changes add up to nothing, all that was sent has come. With
// n packets on their way at a cut at time c, let F be the times received less those sent, plus n·c: from one
// cut to the next F grows by the time that packets spent on their way. That is small whatever the times are, so
// it is taken to be near zero before its width is extended: no window wraps, only an epoch whose delays do.
type cellTable struct {
	config  Config
	size    int // epochs that it can hold
	epochs  int
	live    uint32  // epochs that count; the others only settle changes
	ends    uint32  // epochs with which the window begins, or that come after it
	blank   uint32  // epochs of which the second point has nothing, and the first has
	lone    uint64  // epochs in which packets come that the first point had in an epoch of which it has nothing
	inside  bool    // the last epoch is in the window
	apart   bool    // the second point's epochs are known to begin at other times
	longest float64 // that packets take, if that is known and less than the epochs that are seen again; or +Inf
	spans   [room]span
	changes []uint64  // for each cell and epoch: the second point's word less the first's
	counts  []uint32  // and packets at the second point
	totals  []float64 // packets in cells
	typical []int     // cells
}

// put sets the contents of cell i in the epoch after the last.
func (t *cellTable) put(i int, up, down uint64) {
	at := i*t.size + t.epochs
	t.changes[at] = down - up
	t.counts[at] = uint32(down & (1<<t.config.CountBits - 1))
}

// keep empties the table except for its last epochs, which no longer count.
func (t *cellTable) keep(last int) {
	from := t.epochs - min(last, t.epochs)
	for at := 0; at < len(t.counts); at += t.size {
		copy(t.changes[at:], t.changes[at+from:at+t.epochs])
		copy(t.counts[at:], t.counts[at+from:at+t.epochs])
	}
	copy(t.spans[:], t.spans[from:t.epochs])
	t.epochs, t.live, t.ends, t.blank, t.lone = t.epochs-from, 0, t.ends>>from, t.blank>>from, t.lone>>from
}

// windowEnds returns the epochs with which the window begins, and those before which it ends, next to one that counts now.
func (t *cellTable) windowEnds() [2]uint32 {
	return [2]uint32{t.ends & t.live &^ (t.live << 1), t.ends & (t.live << 1) &^ t.live}
}

// edge reports whether the epoch before or after one is not in the table, so that what crosses the cut between them settles late or never.
func (t *cellTable) edge(e int) bool {
	return e == 0 || e == t.epochs-1 || t.spans[e-1].end != t.spans[e].start || t.spans[e].end != t.spans[e+1].start
}

// packets returns how many packets of cell i came in an epoch, sent how many were sent,
// and gone how many more were sent than came: they are lost, or on their way.
func (t *cellTable) packets(i, e int) float64 { return float64(t.counts[i*t.size+e]) }
func (t *cellTable) sent(i, e int) float64    { return max(t.packets(i, e)+t.gone(i, e), 0) }
func (t *cellTable) gone(i, e int) float64 {
	return -float64(estimate.SignExtend(t.changes[i*t.size+e], int(t.config.CountBits)))
}

// total returns how many packets of cell i came in epochs that count.
func (t *cellTable) total(i int) (n float64) {
	for e := range t.counting() {
		n += t.packets(i, e)
	}
	return n
}

// counting returns the epochs that count.
func (t *cellTable) counting() iter.Seq[int] {
	return func(yield func(int) bool) {
		for e := 0; e < t.epochs && (t.live>>e&1 == 0 || yield(e)); e++ {
		}
	}
}

// area returns F, in units, of a change that may be of many epochs, at a cut.
func (t *cellTable) area(change uint64, cut int64) uint64 {
	return change>>t.config.lowBits() - uint64(estimate.SignExtend(change, int(t.config.CountBits)))*uint64(cut>>t.config.Shift)
}

// time returns an area in nanoseconds.
func (t *cellTable) time(area uint64) float64 {
	return float64(estimate.SignExtend(area, int(t.config.sumBits()))) * t.config.unit()
}

// A sight is what a cell shows: the epochs in which it is settled because no packet was lost. These come in sets: an
// epoch in which nothing came that was not sent, or all epochs in which packets were sent and came that crossed
// cuts. Areas are of packets that came, whenever they were sent.
type sight struct {
	settled uint32
	large   [room]float64 // of a settled epoch: the part of its packets whose sums may have wrapped
	set     [room]uint8   // of a settled epoch: the first of its set
	areas   [room]float64 // in nanoseconds, and 0 where it is not settled
}

func (s *sight) has(e int) bool { return s.settled>>e&1 != 0 }

// read sees cell i.
func (t *cellTable) read(i int, s *sight) {
	changes := t.changes[i*t.size:][:t.epochs]
	low := uint64(1)<<t.config.lowBits() - 1
	var rest, set [room]int
	n := 0
	s.settled = 0
	for e, change := range changes {
		s.areas[e], s.large[e] = 0, 0
		if rest[n] = e; change&low == 0 {
			t.settle(i, s, rest[n:n+1])
		} else {
			n++
		}
	}
	ahead := 1 << t.config.DigestBits >> 10 // so that changes that cancel by chance stay rare
	for k, a := range rest[:n] {
		if s.has(a) {
			continue
		}
		set[0] = a
		for m, all, next := 1, changes[a], rest[k+1:max(min(n, k+ahead), k+1)]; len(next) > 0; next = next[1:] {
			b := next[0]
			if s.has(b) {
				continue
			}
			all += changes[b]
			set[m] = b
			m++
			if (changes[a]+changes[b])&low == 0 && t.gone(i, a) > 0 { // what left then, and nothing else
				set[1] = b
				t.settle(i, s, set[:2])
				break
			}
			if all&low == 0 {
				t.settle(i, s, set[:m])
				break
			}
		}
	}
}

// upTo returns how many packets of cell i were sent in an epoch's set, up to that epoch, and by how much those
// that came took longer than usual, at least 0.
func (t *cellTable) upTo(i int, s *sight, e int, usual float64) (sent, time float64) {
	for k := int(s.set[e]); k <= e; k++ {
		if s.has(k) && s.set[k] == s.set[e] {
			sent += t.sent(i, k)
			time += s.areas[k] - t.packets(i, k)*usual
		}
	}
	return sent, max(time, 0)
}

// settle sets what a cell shows of a set of epochs. Its packets count as having waited alike: how long those that crossed a cut
// waited before it would otherwise be added to one epoch, and taken from another for which the cell may stand with another weight.
func (t *cellTable) settle(i int, s *sight, set []int) {
	change, before, level, all, came := uint64(0), uint64(0), 0.0, 0.0, 0.0
	for _, e := range set {
		level += t.gone(i, e)
		change += t.changes[i*t.size+e]
		area := t.area(change, t.spans[e].end)
		time := t.time(area - before)
		before = area
		// A sum that wrapped as a whole looks small, but on average as many are on their way when an epoch ends as in it.
		most, way := largestSum(&t.config), level*float64(t.spans[e].end-t.spans[e].start)
		if s.large[e] = max(way, 0) / (2 * most) * someLarge; math.Abs(time) > most {
			s.large[e] = 1
		}
		all += time
		came += t.packets(i, e)
		s.settled |= 1 << e
		s.set[e] = uint8(set[0])
	}
	for _, e := range set {
		s.areas[e] = all * t.packets(i, e) / max(came, 1)
	}
}

// margin returns how many packets more than the median of its like a cell may have: three deviations of a Poisson
// number. A fuller one is shared with an elephant, which gives itself away by its count, whatever its delay.
func margin(median float64) float64 { return 3*math.Sqrt(median) + 2 }

// middle returns the median of Poisson numbers most of which may be too large, because
// other flows share their cells: by their lowest eighth. It sorts them.
func middle(numbers []float64) float64 {
	slices.Sort(numbers)
	at := len(numbers) / 8
	return numbers[at] - estimate.NormalQuantile((float64(at)+0.5)/float64(len(numbers)))*math.Sqrt(numbers[at])
}

// someLarge is the part of packets that may be in epochs whose sums may have wrapped.
const someLarge = 0.05

// largestSum returns the area of an epoch beyond which it may have wrapped.
func largestSum(c *Config) float64 { return math.Ldexp(c.unit(), int(c.sumBits())-2) }

// A comparison is what two points say epoch by epoch, of some counters in a table, and of samples.
type comparison struct {
	config  Config   // without the fields in which points may differ
	at      []uint32 // the counters
	order   []uint32 // cells, by counter
	table   *cellTable
	take    func() // adds the table's epochs that count to what they are for
	samples *sampling
	common  common
	pairs   int // added
	epochs  int // of them, those in which both points have packets
	unread  int // pairs that could not be read
}

func newComparison(c Config, cells, epochs int) comparison {
	order := make([]uint32, cells)
	for i := range order {
		order[i] = uint32(i)
	}
	table := &cellTable{
		config: c, size: epochs, longest: math.Inf(1), changes: make([]uint64, cells*epochs), counts: make([]uint32, cells*epochs),
	}
	return comparison{config: c, at: slices.Clone(order), order: order, table: table, samples: &sampling{config: c}}
}

// add adds a pair of epochs. Add them in order of time.
func (c *comparison) add(up, down *Recorder, s span) {
	for i, k := range c.at {
		c.table.put(i, up.words[k], down.words[k])
	}
	c.samples.put(up.samples, false, true)
	c.samples.put(down.samples, true, true)
	c.samples.match(s, min(up.limit, down.limit), false)
	c.end(s, up.packets, down.packets, true)
}

// end finishes a pair of epochs that was put into the table. Those outside the window only help to settle those in it. A
// point without packets may have had none, or have lost its records. If the table is full, its epochs are taken, and
// it keeps the last ones, some of which count only then.
func (c *comparison) end(s span, up, down uint64, inside bool) {
	t := c.table
	if inside && up+down > 0 {
		t.live |= 1 << t.epochs
		if c.pairs++; up > 0 && down > 0 {
			c.epochs++
		}
	}
	if inside != t.inside {
		t.ends |= 1 << t.epochs
	}
	if up > 0 && down == 0 {
		t.blank |= 1 << t.epochs
	}
	t.spans[t.epochs], t.inside = s, inside
	if t.epochs++; t.epochs < t.size {
		return
	}
	ahead := t.size / 4
	late := t.live >> (t.size - ahead)
	t.live &= 1<<(t.size-ahead) - 1
	c.flush()
	t.keep(2 * ahead)
	t.live = late << ahead
}

// flush takes the table's epochs that count.
func (c *comparison) flush() {
	if c.table.live != 0 {
		c.take()
	}
	c.table.live = 0
}

// read returns what part of the pairs could be read.
func (c *comparison) read() float64 {
	return float64(c.pairs) / float64(max(c.pairs+c.unread, 1))
}

// tells reports whether cells tell of packets' delays: they are not of many flows, nor have their sums wrapped.
func (c *common) tells(of *Config) bool {
	return !of.forSamples() && math.Sqrt(c.scatter.slow()) <= largestSum(of)
}

// unseen returns the part of all packets that may be slow without a single one of them having been seen.
func (c *comparison) unseen() float64 {
	seen := float64(c.samples.pool().all.N())
	if c.common.tells(&c.config) {
		seen += c.common.settled
	}
	return min(-math.Log(1-0.95)/seen, 1)
}

// pair returns what two points recorded in one epoch, folded alike, and when that was.
// It returns [estimate.ErrMismatch] if the Configs or the times of the epochs differ.
func pair(up, down *Recorder) (*Recorder, *Recorder, span, error) {
	made(up, down)
	up, down = alike(up, down)
	a, b := span{up.start, up.start + up.config.Period}, span{down.start, down.start + down.config.Period}
	switch {
	case !up.config.like(down.config):
		return nil, nil, a, fmt.Errorf("colate: %w: epochs of %+v and %+v", estimate.ErrMismatch, up.config, down.config)
	case up.packets == 0:
		a = b
	case down.packets > 0 && a != b:
		return nil, nil, a, fmt.Errorf("colate: %w: epochs of %d to %d ns and %d to %d", estimate.ErrMismatch, a.start, a.end, b.start, b.end)
	}
	return up, down, a, nil
}
