package colate

import (
	"math"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/clock"
)

// Correct corrects the far point's epoch as if its clock had agreed with the
// near point's, to half a unit of time. The reading must be of the middle of
// the epoch. The remaining error is in its intervals, and is the same for all
// flows. Package clock makes readings. For epochs that are kept uncorrected,
// use [Path.Clock].
func (r *Recorder) Correct(reading clock.Reading) {
	for i, word := range r.words {
		r.words[i] = r.config.nearWord(word, reading)
	}
}

// nearWord returns a counter's word by the near clock.
func (c *Config) nearWord(word uint64, reading clock.Reading) uint64 {
	packets := word & (1<<c.CountBits - 1)
	if packets == 0 {
		return word
	}
	// In nanoseconds, as far as 64 bits go. A time in units is half a unit
	// early on average, at both points.
	width := min(64, int(c.sumBits()+c.Shift))
	far := word >> c.lowBits() << c.Shift
	later := float64(estimate.SignExtend(reading.NearSum(far, packets, width)-far, width))
	return word + uint64(int64(math.Round(later/c.Unit())))<<c.lowBits()
}

// Clocks describes the error that the clocks leave in the answers of a query.
type Clocks struct {
	// Known reports whether the points' clocks were known, and corrected. If
	// not, means are off by their difference.
	Known bool

	// Certain and Likely are intervals of how much too large the mean of any
	// flow may be because the clock differed from its reading, in nanoseconds,
	// whenever in the window the flow's packets came.
	Certain, Likely estimate.Interval
}

// include widens the intervals by an epoch's reading. The true offset less
// that of the reading is in the reading's interval less its offset.
func (k *Clocks) include(r clock.Reading) {
	for _, x := range []struct {
		all *estimate.Interval
		one estimate.Interval
	}{{&k.Certain, r.Certain}, {&k.Likely, r.Likely}} {
		low, high := x.one.Low-r.Offset, x.one.High-r.Offset
		if !k.Known {
			*x.all = estimate.Interval{Low: low, High: high, Confidence: x.one.Confidence}
			continue
		}
		x.all.Low, x.all.High = min(x.all.Low, low), max(x.all.High, high)
		x.all.Confidence = min(x.all.Confidence, x.one.Confidence)
	}
	k.Known = true
}

// ahead returns how far the second point's clock is ahead of the first's at
// about the time of the window.
func (q *query) ahead() int64 {
	for _, h := range q.clocks {
		if start, end, ok := h.Span(); ok {
			at := min(max(q.from/2+q.to/2, start), end-1)
			for _, at := range []int64{at, start, end - 1} {
				if r, err := h.At(at); err == nil {
					return int64(r.Offset)
				}
			}
		}
	}
	return 0
}

// clockAt uses the first history that has an answer.
func (q *query) clockAt(t int64) (r clock.Reading, err error) {
	for _, h := range q.clocks {
		if r, err = h.At(t); err == nil {
			break
		}
	}
	return r, err
}

// readClocks reads the second point's history of its clock at the time of the
// window, give or take a day. It reports damaged histories. If the store has
// any history, epochs without one are missing, and are not used as they are.
func (q *query) readClocks() {
	const day = 86_400_000_000_000
	found, some := q.down.store.clocks(later64(q.from, -day), later64(q.to, day))
	for _, e := range found {
		payload, err := q.down.read(&e, 0, int64(e.length))
		if err == nil {
			var h *clock.History
			if h, err = e.history(payload); err == nil {
				q.clocks = append(q.clocks, h)
				continue
			}
		}
		q.damaged(&e, err)
	}
	if some && len(q.clocks) == 0 {
		nothing, _ := clock.NewHistory(1)
		q.clocks = append(q.clocks, nothing)
	}
}
