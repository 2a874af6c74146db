package colate

import (
	"fmt"
	"math"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/clock"
)

// Correct makes of the far point's epoch what its clock would have made of it
// had it agreed with the near point's, to half a unit of time. reading is of
// the middle of the epoch; what remains open is in its intervals, and common
// to all flows. See package clock for where it comes from. For epochs that are
// kept uncorrected there is [Path.Clock].
func (r *Recorder) Correct(reading clock.Reading) {
	for i, word := range r.words {
		r.words[i] = r.config.nearWord(word, reading)
	}
}

// nearWord is a counter's word by the near clock.
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

// Clocks is what the clocks leave open of the answers of a query.
type Clocks struct {
	// Known tells that the points' clocks were known, and corrected. If not,
	// means are off by what they differed.
	Known bool

	// Certain and Likely hold by how much the mean of any flow may be too
	// great because the clock was not quite what its reading says, in
	// nanoseconds: whenever in the window its packets came.
	Certain, Likely estimate.Interval
}

// include widens what is open by an epoch's reading. The true offset less that
// of the reading is in the reading's interval less its offset.
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

// readings finds the clock of every epoch of a step at the second point, or
// says that one is not known.
func (q *query) readings(s *step) ([]clock.Reading, error) {
	if len(q.clocks) == 0 {
		return nil, nil
	}
	readings := make([]clock.Reading, 0, len(s.entries[1]))
	for _, e := range s.entries[1] {
		r, err := q.clockAt(e.start + (e.end-e.start)/2)
		if err != nil {
			return nil, fmt.Errorf("colate: %w", err)
		}
		readings = append(readings, r)
	}
	return readings, nil
}

// clockAt goes by the first history that knows.
func (q *query) clockAt(t int64) (r clock.Reading, err error) {
	for _, h := range q.clocks {
		if r, err = h.At(t); err == nil {
			break
		}
	}
	return r, err
}

// readClocks reads what the second point's store has of its clock at the time of
// the epochs that were found. One that is damaged is reported. If the store has
// any, epochs that none tells of are missing, and not taken as they are.
func (q *query) readClocks() {
	from, to := int64(math.MaxInt64), int64(math.MinInt64)
	for _, e := range q.found[1] {
		from, to = min(from, e.start), max(to, e.end)
	}
	found, some := q.down.store.clocks(from, to)
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
