package colate

import (
	"math"
	"slices"

	"github.com/hoplag/hoplag/estimate"
)

// A span is a time from start to end, in nanoseconds.
type span struct{ start, end int64 }

// room is the largest number of epochs that a cellTable can hold: the number of
// bits in a mask.
const room = 32

// A cellTable holds what some counters of both points say over some epochs,
// and makes areas of it, as [estimate.Areas] does, of which it needs a fraction
// of the memory and time: an epoch of a cell takes 12 bytes.
//
// A counter's count and digests at the second point less the first, added up over
// the epochs so far, are its level. It stands for the packets that are on their
// way or lost. Between two cuts of equal level whatever was sent has come. With n
// packets on their way at a cut at time c, let F be the times received less
// those sent, plus n·c: from one cut to the next F grows by the time that packets
// spent on their way. That is small whatever the times are, so that it is taken
// near zero before its width is extended: no window wraps, only an epoch whose
// delays do.
type cellTable struct {
	config Config
	size   int // epochs that it can hold
	epochs int
	live   uint32 // epochs that count; the others only settle levels
	spans  [room]span
	words  []uint64 // for each cell and cut: words' differences up to there
	counts []uint32 // for each cell and epoch: packets at the second point
	totals []float64
}

func newCellTable(c Config, cells, size int) *cellTable {
	return &cellTable{config: c, size: size, words: make([]uint64, cells*(size+1)), counts: make([]uint32, cells*size)}
}

// put sets the contents of cell i in the epoch after the last.
func (t *cellTable) put(i int, up, down uint64) {
	at := i*(t.size+1) + t.epochs
	t.words[at+1] = t.words[at] + down - up
	t.counts[i*t.size+t.epochs] = uint32(down & (1<<t.config.CountBits - 1))
}

// end finishes an epoch. One that does not count helps to settle others. If the
// table is full, end calls flush and keeps the last epochs. Some of these count
// only then, when those after them are known.
func (t *cellTable) end(s span, counts bool, flush func()) {
	t.spans[t.epochs] = s
	if counts {
		t.live |= 1 << t.epochs
	}
	if t.epochs++; t.epochs < t.size {
		return
	}
	ahead := t.size / 4
	late := t.live >> (t.size - ahead)
	t.live &= 1<<(t.size-ahead) - 1
	flush()
	t.keep(2 * ahead)
	t.live = late << ahead
}

// keep empties the table but for its last epochs, which no longer count.
func (t *cellTable) keep(last int) {
	from := t.epochs - min(last, t.epochs)
	for at := 0; at < len(t.words); at += t.size + 1 {
		first := t.words[at+from]
		for e := range t.epochs - from + 1 {
			t.words[at+e] = t.words[at+from+e] - first
		}
	}
	for at := 0; at < len(t.counts); at += t.size {
		copy(t.counts[at:], t.counts[at+from:at+t.epochs])
	}
	copy(t.spans[:], t.spans[from:t.epochs])
	t.epochs, t.live = t.epochs-from, 0
}

// edge reports whether the epoch before or after one is not in the table, so that
// what crosses the cut between them settles late or never.
func (t *cellTable) edge(e int) bool {
	return e == 0 || e == t.epochs-1 || t.spans[e-1].end != t.spans[e].start || t.spans[e].end != t.spans[e+1].start
}

// packets returns how many packets of cell i came in an epoch, and sent how
// many were sent.
func (t *cellTable) packets(i, epoch int) float64 { return float64(t.counts[i*t.size+epoch]) }

func (t *cellTable) sent(i, epoch int) float64 {
	return max(t.packets(i, epoch)+t.gone(i, epoch, epoch+1), 0)
}

// gone returns how many more packets of cell i were sent than came between two
// cuts: they are lost, or on their way.
func (t *cellTable) gone(i, from, to int) float64 {
	at := i * (t.size + 1)
	return -float64(estimate.SignExtend(t.words[at+to]-t.words[at+from], int(t.config.CountBits)))
}

// total returns how many packets of cell i came in epochs that count.
func (t *cellTable) total(i int) (n float64) {
	for e := range t.epochs {
		if t.live>>e&1 != 0 {
			n += t.packets(i, e)
		}
	}
	return n
}

// A sight is what a cell shows: the epochs in which it is settled, because no
// packet was lost between a cut before and one after of equal level, and those
// in which such a span begins.
type sight struct{ settled, begins uint32 }

// read sets the areas of cell i, in nanoseconds, in the epochs in which it is
// settled, and 0 in others.
func (t *cellTable) read(i int, areas []float64) (s sight) {
	c := &t.config
	words := t.words[i*(t.size+1):][:t.epochs+1]
	low, width, unit := uint64(1)<<c.lowBits()-1, int(c.sumBits()), c.unit()
	ahead := max(1, 1<<c.DigestBits>>10) // so that levels that are equal by chance stay rare
	for a := 0; a < t.epochs; {
		b, last := a+1, min(t.epochs, a+ahead)
		for b <= last && (words[b]^words[a])&low != 0 {
			b++
		}
		if b > last {
			areas[a] = 0
			a++
			continue
		}
		s.begins |= 1 << a
		before := uint64(0)
		for e := a; e < b; e++ {
			sum := words[e+1] - words[a]
			f := sum>>c.lowBits() - uint64(estimate.SignExtend(sum, int(c.CountBits)))*uint64(t.spans[e].end>>c.Shift)
			areas[e] = float64(estimate.SignExtend(f-before, width)) * unit
			s.settled |= 1 << e
			before = f
		}
		a = b
	}
	return s
}

// A scatter is how far cells are from the mean of all, or of their flow: Σ squares over
// packets, Σ of these squared, and their degrees of freedom.
type scatter struct{ squares, fourths, degrees, packets float64 }

// An offset is how far a cell is from the mean in the epochs between two cuts of
// equal level, which it answers for together.
type offset struct{ off, packets, epochs float64 }

func (o *offset) add(off, packets float64) {
	o.off += off
	o.packets += packets
	o.epochs++
}

// take adds an offset, and begins another.
func (s *scatter) take(o *offset) {
	if o.packets > 0 {
		square := o.off * o.off / o.packets * o.epochs
		s.squares += square
		s.fourths += square * square
		s.degrees += o.epochs
		s.packets += o.packets
	}
	*o = offset{}
}

// off adds how far a cell is from the means of epochs that count, and from its own
// offset of these if it is not like others.
func (s *scatter) off(t *cellTable, i int, of sight, areas, mean *[room]float64, alike bool) {
	var apart offset
	own, live := 0.0, of.settled&t.live
	if !alike {
		all, packets := 0.0, 0.0
		for e := range t.epochs {
			if live>>e&1 != 0 {
				all += areas[e] - t.packets(i, e)*mean[e]
				packets += t.packets(i, e)
			}
		}
		own = all / max(packets, 1)
		s.degrees--
	}
	for e := range t.epochs {
		if of.begins>>e&1 != 0 {
			s.take(&apart)
		}
		if live>>e&1 != 0 {
			apart.add(areas[e]-t.packets(i, e)*(mean[e]+own), t.packets(i, e))
		}
	}
	s.take(&apart)
}

func (s *scatter) add(b *scatter) {
	s.squares += b.squares
	s.fourths += b.fourths
	s.degrees += b.degrees
	s.packets += b.packets
}

// variance returns the variance of a packet's delay.
func (s *scatter) variance() float64 { return s.squares / max(s.degrees, 1) }

// kurtosis returns that of a packet's delay: sums of the packets in a cell have less.
func (s *scatter) kurtosis() float64 {
	return 3 + s.packets/max(s.degrees, 1)*max(s.fourths*s.degrees/max(s.squares*s.squares, 1)-3, 0)
}

// like returns the variance of a flow's delays, given the scatter of all: the
// flow's own, and as much of that of all as it may have had without its cells
// showing it. That is all of it where a few slow packets make it, of which cells
// like these show three or fewer.
func (s *scatter) like(all *scatter) float64 {
	shown := all.squares * all.squares / max(all.fourths, 1) * s.degrees / max(all.degrees, 1)
	return s.variance() + all.variance()*min(1, 3/max(shown, 1))
}

// A common is what typical cells say about the epochs in a table: how all
// packets fared.
//
// Which cells lose a packet in an epoch is chance, because hashes spread
// packets over them. So those that lose none stand for the others.
type common struct {
	mean  [room]float64 // delay, ns
	known [room]bool    // whether there is a settled cell
	cell  [room]float64 // packets that came in one cell, and that were sent
	sent  [room]float64

	usual float64 // delay over all epochs
	full  float64 // packets in a typical cell, in epochs that count
	scatter
}

// gone returns the part of an epoch's packets that is lost, or on its way at the end
// and not at the beginning.
func (c *common) gone(e int) float64 { return max(c.sent[e]-c.cell[e], 0) / max(c.sent[e], 1e-9) }

// learn learns from every stride-th cell from first on: from those with no more
// packets than typical, or delays from all if these have none.
func (t *cellTable) learn(first, stride int) common {
	t.totals = t.totals[:0]
	for i := first; i*t.size < len(t.counts); i += stride {
		t.totals = append(t.totals, t.total(i))
	}
	full := middle(t.totals)
	c, some := t.learnUpTo(full+margin(full), first, stride)
	if !some {
		all, _ := t.learnUpTo(math.Inf(1), first, stride)
		c.mean, c.known, c.usual = all.mean, all.known, all.usual
	}
	var areas [room]float64
	for i := first; i*t.size < len(t.counts); i += stride {
		s := t.read(i, areas[:])
		if alike := !some || t.total(i) <= full+margin(full); alike || t.epochs > 1 {
			c.scatter.off(t, i, s, &areas, &c.mean, alike)
		}
	}
	c.full = full
	return c
}

// learnUpTo learns from cells with no more packets than the limit, and reports
// whether they have any.
func (t *cellTable) learnUpTo(limit float64, first, stride int) (c common, some bool) {
	var sum, count, areas [room]float64
	cells, total, counts := 0.0, 0.0, 0.0
	for i := first; i*t.size < len(t.counts); i += stride {
		if t.total(i) > limit {
			continue
		}
		s := t.read(i, areas[:])
		cells++
		for e := range t.epochs {
			c.cell[e] += t.packets(i, e)
			c.sent[e] += t.sent(i, e)
			if s.settled>>e&1 != 0 {
				sum[e] += areas[e]
				count[e] += t.packets(i, e)
			}
		}
	}
	for e := range t.epochs {
		c.cell[e] /= max(cells, 1)
		c.sent[e] /= max(cells, 1)
		if c.known[e] = count[e] > 0; c.known[e] {
			c.mean[e] = sum[e] / count[e]
			total += c.mean[e] * c.cell[e]
			counts += c.cell[e]
		}
	}
	c.usual = total / max(counts, 1e-9)
	for e := range t.epochs {
		if !c.known[e] {
			c.mean[e] = c.usual
		}
	}
	return c, counts > 0
}

// margin returns how many packets more than the median of its like a cell may
// have: three deviations of a Poisson number. A fuller one is shared with an
// elephant, which gives itself away by its count, whatever its delay.
func margin(median float64) float64 { return 3*math.Sqrt(median) + 2 }

// middle returns the median of Poisson numbers some of which are too large,
// because an elephant shares their cells: by their lower quartile. It sorts them.
func middle(numbers []float64) float64 {
	slices.Sort(numbers)
	quartile := numbers[len(numbers)/4]
	return quartile + 0.67*math.Sqrt(quartile)
}

// largestSum returns the area of an epoch beyond which it may have wrapped.
func largestSum(c *Config) float64 { return math.Ldexp(c.unit(), int(c.sumBits())-2) }
