package clock

import (
	"cmp"
	"math"
	"slices"

	"github.com/hoplag/hoplag/estimate"
)

// A Tracker follows the clock of a far point as the near point's clock sees it, from interval to interval. It
// is not safe for concurrent use, and the zero value panics.
type Tracker struct {
	config Config
	base   int64  // kept offsets are relative to this
	slots  []slot // a ring: the remaining marks of the window's intervals
	next   int    // the slot of the next interval
	fresh  pair   // the marks of the interval being added

	now, spare, alone *fit // now is for the window; the others are room to solve in
	known             bool // now has an offset
	both              bool // the interval that was added last has samples of both directions
	latest            span // of the times of the interval that was added last

	// What was known before the latest step, and when the step was noticed.
	before  *fit
	stepped bool
	cut     int64

	// From doubtFrom on, the last samples of the latest interval are either wrong, or the first after a step.
	doubtFrom int64

	// The marks of the latest interval stay fresh until later ones show what they mean.
	later bool

	scratch, layers []point
	scratchMarks    list
	times           []int64
}

// A list holds marks by ascending time.
type list []mark

// A pair holds the marks of both directions.
type pair [2]list

// A slot holds the lowest marks of one interval, in both directions.
type slot struct {
	marks  pair
	margin float64 // of the window at that time
	floor  float64 // the part of it that was probably true delay
}

type span struct{ from, to int64 }

func (s span) middle() int64 { return s.from + (s.to-s.from)/2 }

// New returns a tracker without samples. The error wraps [estimate.ErrConfig].
func New(c Config) (*Tracker, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	t := &Tracker{config: c, slots: make([]slot, c.Window), now: new(fit), spare: new(fit), alone: new(fit), before: new(fit)}
	t.Reset()
	return t, nil
}

// Reset forgets everything.
func (t *Tracker) Reset() {
	t.forget()
	for i := range t.slots {
		t.slots[i].floor, t.slots[i].margin = math.Inf(-1), math.Inf(-1)
	}
	t.fresh[there], t.fresh[back] = t.fresh[there][:0], t.fresh[back][:0]
	t.known, t.stepped, t.later, t.latest, t.doubtFrom = false, false, false, span{}, math.MaxInt64
	t.now.reset(0, &t.config)
}

// forget empties the window of marks.
func (t *Tracker) forget() {
	for i := range t.slots {
		s := &t.slots[i]
		s.marks[there], s.marks[back] = s.marks[there][:0], s.marks[back][:0]
	}
}

// Add adds the samples of one interval, from the near point to the far one and back, in any order. Either slice
// may be empty; Add keeps neither. It is O(n log n) and allocates nothing once its buffers have grown.
//
// If the window has samples of one direction only, or samples that contradict each other, the error wraps
// [estimate.ErrNoSamples]. If a sample has no packets, it wraps [estimate.ErrConfig] and nothing is added.
func (t *Tracker) Add(forth, home []Sample) (Reading, error) {
	for _, samples := range [2][]Sample{forth, home} {
		for _, s := range samples {
			if s.Packets == 0 {
				return Reading{}, estimate.Invalid("clock", "a sample's Packets", s.Packets, "at least 1")
			}
		}
	}
	if t.both = len(forth) > 0 && len(home) > 0; t.take(forth, home) {
		t.doubtFrom, t.later = math.MaxInt64, false
		t.solve()
	}
	if !t.later {
		t.store()
	}
	return t.At(t.latest.middle())
}

// take unwraps the samples into fresh marks, by ascending time, and reports whether any of them count.
func (t *Tracker) take(forth, home []Sample) bool {
	all := span{math.MaxInt64, math.MinInt64}
	for _, samples := range [2][]Sample{forth, home} {
		for _, s := range samples {
			if s.Packets <= MaxPackets {
				all = span{min(all.from, s.Time), max(all.to, s.Time)}
			}
		}
	}
	if all.from > all.to {
		return false
	}
	// The near clock was set back, or intervals between were lost, or the far clock was set too far.
	if !t.empty() && (all.to <= t.latest.from || all.from-t.latest.to > maxGap || math.Abs(t.now.offset) > farthest) {
		t.Reset()
	}
	if !t.known && t.empty() {
		t.base = firstBase(forth, home)
	}
	ahead := int64(t.now.offset) // near which sums are unwrapped
	for d, samples := range [2][]Sample{forth, home} {
		for _, s := range samples {
			if s.Packets > MaxPackets {
				continue
			}
			t.fresh[d] = append(t.fresh[d], s.mark(d, t.base, ahead, &t.config))
		}
		slices.SortFunc(t.fresh[d], func(a, b mark) int { return cmp.Compare(a.t, b.t) })
		if len(t.fresh[d]) > 0 {
			all.from = min(all.from, t.fresh[d][0].t)
		}
	}
	t.latest = all
	return true
}

// maxGap is the longest pause, in nanoseconds, over which the window is kept: a day.
const maxGap = 86_400e9

// empty reports whether the window is empty.
func (t *Tracker) empty() bool {
	return len(t.fresh[there])+len(t.fresh[back]) == 0 &&
		!slices.ContainsFunc(t.slots, func(s slot) bool { return len(s.marks[there])+len(s.marks[back]) > 0 })
}

// firstBase returns a first guess of the offset: that of the sample with the fewest packets.
func firstBase(forth, home []Sample) (base int64) {
	least := uint32(math.MaxUint32)
	for d, samples := range [2][]Sample{forth, home} {
		for _, s := range samples {
			if s.Packets < least {
				least, base = s.Packets, s.Delay/int64(s.Packets)*int64(1-2*d) // there or back
			}
		}
	}
	return base
}

// store puts the lowest fresh marks into the ring, in place of the oldest interval's, but those that the window excludes:
// they are wrong, and hulls drop no more than a few of those in a window.
func (t *Tracker) store() {
	s := &t.slots[t.next]
	t.next = (t.next + 1) % len(t.slots)
	s.floor, s.margin = math.Inf(-1), math.Inf(-1)
	if t.known {
		s.floor, s.margin = t.now.margin-2*t.now.excess, t.now.margin
		e := t.expect(-t.now.short)
		for d := range t.fresh {
			t.fresh[d] = slices.DeleteFunc(t.fresh[d], func(m mark) bool { return m.y < e.least(d, m.t) })
		}
	}
	for d := range t.fresh {
		s.marks[d] = t.lowest(s.marks[d][:0], t.fresh[d])
		t.fresh[d] = t.fresh[d][:0]
	}
}

// lowest appends to dst the marks that can matter later: those on the outer layers of hulls, as many layers as
// outliers are dropped and residuals ranked.
func (t *Tracker) lowest(dst, marks list) list {
	origin := t.latest.from
	t.scratch, t.layers = t.scratch[:0], t.layers[:0]
	for _, m := range marks {
		t.scratch = append(t.scratch, point{float64(m.t - origin), m.y})
	}
	slices.SortFunc(t.scratch, byX)
	rest := t.scratch
	for range t.config.layers() {
		t.layers, rest = peel(t.layers, rest, t.config.MaxDrift)
	}
	slices.SortFunc(t.layers, byX)
	for _, p := range t.layers {
		dst = append(dst, mark{t: origin + int64(p.x), y: p.y})
	}
	return dst
}
