package clock

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/hoplag/hoplag/estimate"
)

// A History keeps the readings of a clock over a long time, one for each slot of a fixed length, such as an
// epoch of records that are kept for months and compared when somebody asks. To keep it over a restart, store
// the readings and add them again. The zero value panics. A History is not safe for concurrent use.
type History struct {
	every    int64
	readings []Reading // by ascending slot, at most one each
}

// NewHistory returns an empty history with slots of the given length in nanoseconds, which begin at multiples
// of it. The error wraps [estimate.ErrConfig].
func NewHistory(every int64) (*History, error) {
	if every < 1 {
		return nil, estimate.Invalid("clock", "a history's slot", every, "at least 1 ns")
	}
	return &History{every: every}, nil
}

// Span returns when the first slot that has a reading begins and when the last one ends. ok is false without a reading.
func (h *History) Span() (start, end int64, ok bool) {
	if len(h.readings) == 0 {
		return 0, 0, false
	}
	first, last := h.readings[0].Time, h.readings[len(h.readings)-1].Time
	return h.slot(first) * h.every, (h.slot(last) + 1) * h.every, true
}

// slot returns the number of the slot that a time is in.
func (h *History) slot(at int64) int64 {
	n := at / h.every
	if at%h.every < 0 {
		n--
	}
	return n
}

// fromMiddle returns how far a time is from the middle of its slot.
func (h *History) fromMiddle(at int64) float64 {
	return math.Abs(float64(at-h.slot(at)*h.every) - float64(h.every)/2)
}

// find returns where the reading of a slot is, or would be.
func (h *History) find(slot int64) (int, bool) {
	return slices.BinarySearchFunc(h.readings, slot, func(r Reading, slot int64) int { return cmp.Compare(h.slot(r.Time), slot) })
}

// Add adds a reading. Of several in one slot, the history keeps the one closest to the middle; if the clock
// stepped in the slot, its intervals contain those of all.
func (h *History) Add(r Reading) {
	i, found := h.find(h.slot(r.Time))
	if !found {
		h.readings = slices.Insert(h.readings, i, r)
		return
	}
	kept, other := h.readings[i], r
	if h.fromMiddle(other.Time) < h.fromMiddle(kept.Time) {
		kept, other = other, kept
	}
	if kept.Stepped || other.Stepped {
		kept = kept.and(other)
	}
	h.readings[i] = kept
}

// At returns the reading at a time, from the reading of its slot; the intervals are wider by the uncertainty of
// the drift. If the slot has no reading, the error wraps [estimate.ErrNoSamples].
func (h *History) At(at int64) (Reading, error) {
	i, found := h.find(h.slot(at))
	if !found {
		return Reading{Certain: anywhere, Likely: anywhere}, fmt.Errorf("clock: %w: clocks not known at %d", estimate.ErrNoSamples, at)
	}
	r := h.readings[i]
	later := float64(at - r.Time)
	r.Time = at
	r.Offset += r.Drift * later
	carry(&r.Certain, r.CertainDrift, later)
	carry(&r.Likely, r.LikelyDrift, later)
	return r, nil
}

// carry carries an interval of the offset forward.
func carry(offset *estimate.Interval, drift estimate.Interval, later float64) {
	offset.Low += min(drift.Low*later, drift.High*later)
	offset.High += max(drift.Low*later, drift.High*later)
}
