package colate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/clock"
	"github.com/hoplag/hoplag/estimate/joint"
)

// A Path is two points that packets pass one after the other, given by their stores. Any number of goroutines
// may query it while the stores are being written.
type Path struct {
	Up, Down *Store

	// Clock says how far the second point's clock was ahead of the first's during that time, if that is known. Queries pair epochs
	// by it, and correct the second point's times, with their drift; an epoch without a reading is Missing. Packets are of the
	// second point's epoch in which they came, which begins up to a Period before the first's that it is paired with.
	Clock *clock.History
}

// A Coverage says what data a query had, or a store has.
type Coverage struct {
	// Start and End are the span of the epochs that overlap the window, which answers and records refer to.
	// They are multiples of the Period of the first point's clock.
	Start, End int64
	// Epochs is the number of pairs of epochs that were compared. Missing lists what was not compared, and why, and epochs that
	// only one point has: the other saw no packet then, or has lost its epoch. Packets that were sent in an epoch that the second
	// point lacks, and never arrived, are taken to have arrived in it, as in an epoch that cannot be read.
	Epochs  int
	Missing []Missing
	// Unseen is the largest part of all packets that may be slow, with 95 % confidence, although no flow's samples and no settled
	// counter shows a single one. No interval holds what such packets add to means and deviations.
	Unseen float64
	// Bytes is the number of bytes read from both stores.
	Bytes int64
	// Clock is the interval of how much too large the mean of any flow may be because the clock differed from
	// its reading, in nanoseconds, whenever in the window the flow's packets arrived. If its Confidence is 0,
	// the clocks were not known, and means are off by their difference.
	Clock estimate.Interval
}

// A Missing is a span in which the points could not be compared, or a damaged part of a store, whose span is then 0 if it is not known.
type Missing struct {
	Start, End int64 // nanoseconds
	Err        error
}

// Estimate returns what two stores say about a flow in the time from from to to, in nanoseconds, ends included. The
// error is that of ctx, of the file system, or of the answer, or [estimate.ErrNoSamples] if no epoch overlaps the time.
func (p Path) Estimate(ctx context.Context, flow joint.FlowRecord, from, to int64) (Result, Coverage, error) {
	answers, coverage, err := p.EstimateAll(ctx, []joint.FlowRecord{flow}, from, to)
	if err != nil {
		return Result{}, coverage, err
	}
	return answers[0], coverage, answers[0].Err
}

// EstimateAll is Estimate for many flows, and reads the epochs once. Answers are in the order of the flows; some may have an Err.
func (p Path) EstimateAll(ctx context.Context, flows []joint.FlowRecord, from, to int64) ([]Result, Coverage, error) {
	q, err := newQuery(p, from, to)
	defer q.close()
	if err != nil {
		return nil, q.coverage, err
	}
	a := newAccumulator(q.config, len(flows))
	if err := a.aim(flows); err != nil {
		return nil, q.coverage, err
	}
	if err = q.walk(ctx, &a.comparison); err != nil {
		return nil, q.coverage, err
	}
	answers := make([]Result, len(flows))
	for i := range answers {
		answers[i] = a.answer(i, q.clock != nil)
	}
	q.coverage.Unseen = a.unseen()
	return answers, q.coverage, nil
}

// A query walks through the epochs of both points.
type query struct {
	readers  [2]epochReader
	config   Config
	from, to int64
	later    int64        // about how far the second point's clock is ahead
	delay    int64        // that packets may take, as the stores say
	found    []foundEntry // in the order of time
	coverage Coverage
	clock    *clock.History // of which the second point's times are corrected, if any
	apart    bool           // epochs that are compared begin at different times
	owed     uint64         // packets of the first point that have not come
	sums     [2][]uint64    // of a step's words, by cell: nearer than the table's
}

// A foundEntry is an epoch to be compared, with its span by the first point's clock and, at the second point, what its own said.
type foundEntry struct {
	entry
	point   int
	near    span
	reading clock.Reading
	unknown error
}

// newQuery finds the epochs, and the Config of the first readable one, folded as all are.
func newQuery(p Path, from, to int64) (*query, error) {
	q := &query{readers: [2]epochReader{{store: p.Up}, {store: p.Down}}, from: from, to: to, clock: p.Clock}
	if p.Up == nil || p.Down == nil || p.Up.files == nil || p.Down.files == nil {
		return q, errUnopened
	}
	q.delay = max(p.Up.options.Delay, p.Down.options.Delay)
	if err := errors.Join(p.Up.refresh(), p.Down.refresh()); err != nil {
		return q, err
	}
	q.later = q.ahead()
	period := int64(0)
	for margin := range int64(2) { // and the epochs that settle what was on its way at the ends
		margin *= max(ahead*period, q.delay)
		q.found = q.found[:0]
		for i := range q.readers {
			later := int64(i) * q.later
			for _, e := range q.readers[i].store.find(later64(from, later-margin), later64(to, later+margin)) {
				q.found = append(q.found, q.placed(i, e))
				period = max(period, e.end-e.start)
			}
		}
	}
	slices.SortStableFunc(q.found, func(a, b foundEntry) int { return cmp.Compare(a.near.start, b.near.start) })
	for i := range q.found {
		h, err := q.readers[q.found[i].point].head(&q.found[i].entry)
		switch {
		case err != nil: // walk tells
		case q.config.Counters == 0:
			q.config = h.config
		case h.config.like(q.config):
			q.config.fold = max(q.config.fold, h.config.fold)
		}
	}
	if q.config.Counters == 0 {
		return q, fmt.Errorf("colate: %w: no epoch overlaps the window (%d that cannot be read)", estimate.ErrNoSamples, len(q.found))
	}
	return q, nil
}

// placed puts an epoch of the second point where its clock says: with the first point's epoch that begins later by
// at most 31 parts of 32 of it, so that packets seldom come in an epoch before that in which they are sent.
func (q *query) placed(point int, e entry) foundEntry {
	f := foundEntry{entry: e, point: point, near: span{e.start, e.end}}
	if point == 1 && q.clock != nil {
		if f.reading, f.unknown = q.clock.At(e.start + (e.end-e.start)/2 - q.later); f.unknown == nil {
			period := float64(e.end - e.start)
			periods := math.Floor(f.reading.Offset/period + 1.0/32)
			q.apart = q.apart || math.Abs(f.reading.Offset/period-periods) > 1.0/32
			later := int64(periods) * (e.end - e.start)
			f.near = span{e.start - later, e.end - later}
		}
	}
	return f
}

// later64 returns the time that is later by d, or the last or first there is.
func later64(t, d int64) int64 {
	if d > 0 {
		return min(t, math.MaxInt64-d) + d
	}
	return max(t, math.MinInt64-d) + d
}

func (q *query) close() {
	q.readers[0].close()
	q.readers[1].close()
}

// lifetime is how long packets may be on their way in a network, by RFC 9293.
const lifetime = 120_000_000_000

// walk adds every step to a comparison. Steps that are not in the window only settle levels.
func (q *query) walk(ctx context.Context, c *comparison) error {
	k := &q.coverage
	c.samples.delay, c.table.apart = q.delay, q.apart
	if most := cmp.Or(q.delay, lifetime); most/q.config.Period < int64(c.table.size/4) {
		c.table.longest, c.samples.strict = float64(most), true
	}
	for {
		step, entries := q.next()
		if err := ctx.Err(); err != nil || len(entries) == 0 {
			k.Bytes = q.readers[0].bytes + q.readers[1].bytes
			return err
		}
		counts := step.start <= q.to && step.end > q.from
		packets, err := q.add(step, entries, c, counts)
		if err == nil {
			c.end(step, packets[0], packets[1], counts)
		}
		if !counts {
			continue
		}
		if k.Epochs+len(k.Missing) == 0 {
			k.Start = step.start
		}
		k.End = max(k.End, step.end)
		if err != nil {
			c.unread++
		}
		for i, point := range []string{"first", "second"} { // an empty epoch is assumed, as at the end of traffic
			if err == nil && packets[i] == 0 {
				err = fmt.Errorf("colate: %w: no epoch at the %s point, which may have seen no packet", estimate.ErrNoSamples, point)
			}
		}
		if err == nil {
			k.Epochs++
		} else {
			k.Missing = append(k.Missing, Missing{step.start, step.end, err})
		}
	}
}

// next takes the next step from the entries found: usually one of each point, more after a restart, or if one Period is
// a multiple of the other.
func (q *query) next() (step span, entries []foundEntry) {
	n := 0
	for ; n < len(q.found) && (n == 0 || q.found[n].near.start < step.end); n++ {
		if n == 0 {
			step = q.found[0].near
		}
		step.end = max(step.end, q.found[n].near.end)
	}
	entries, q.found = q.found[:n], q.found[n:]
	return step, entries
}

// add adds a step to a comparison, but does not end it, and returns how many packets each point has.
func (q *query) add(step span, entries []foundEntry, c *comparison, counts bool) (packets [2]uint64, err error) {
	limit := uint32(math.MaxUint32)
	for i := range q.sums {
		q.sums[i] = slices.Grow(q.sums[i][:0], len(c.at))[:len(c.at)]
		clear(q.sums[i])
	}
	for k := range entries {
		e := &entries[k]
		h, err := q.addEpoch(e, c, counts)
		switch {
		case errors.Is(err, fs.ErrNotExist) || errors.Is(err, estimate.ErrMismatch) || e.unknown != nil:
			return packets, fmt.Errorf("colate: %w", err)
		case err != nil:
			return packets, e.damaged(err)
		}
		packets[e.point] += h.packets
		limit = min(limit, h.limit)
		if counts && q.clock != nil && e.point == 1 {
			q.include(e.reading)
		}
	}
	for i := range c.at {
		c.table.put(i, q.sums[0][i], q.sums[1][i])
	}
	// An epoch that the first point lacks, though it has later ones, and in which more packets came than were still to come.
	lone := packets[0] == 0 && packets[1] > q.owed && slices.ContainsFunc(q.found, func(e foundEntry) bool { return e.point == 0 })
	if lone {
		c.table.lone |= 3 << c.table.epochs // and those that cross its end
	}
	q.owed = max(q.owed+packets[0], packets[1]) - packets[1]
	c.samples.match(step, limit, lone)
	return packets, nil
}

// addEpoch adds an epoch's counters, if the epoch has that Config, and its samples.
func (q *query) addEpoch(e *foundEntry, c *comparison, counts bool) (*epochHead, error) {
	if e.unknown != nil {
		return nil, e.unknown
	}
	r, correct := &q.readers[e.point], e.point == 1 && q.clock != nil
	h, err := r.head(&e.entry)
	if err != nil {
		return nil, err
	}
	if !h.config.like(q.config) || h.config.fold > q.config.fold {
		return nil, fmt.Errorf("%w: recorded with another Config", estimate.ErrMismatch)
	}
	err = r.each(h, c.at, c.order, q.config.fold-h.config.fold, func(i int, word uint64) {
		if correct {
			word = q.config.nearWord(word, e.reading)
		}
		q.sums[e.point][i] += word
	})
	if err != nil {
		return nil, err
	}
	return h, c.samples.read(r, e, h, e.point == 1, counts, correct)
}

// nearWord returns a counter's word of the far point by the near clock, to half a unit of time.
func (c *Config) nearWord(word uint64, reading clock.Reading) uint64 {
	packets := word & (1<<c.CountBits - 1)
	if packets == 0 {
		return word
	}
	// In nanoseconds, as far as 64 bits go.
	width := min(64, int(c.sumBits()+c.Shift))
	far := word >> c.lowBits() << c.Shift
	later := float64(estimate.SignExtend(reading.NearSum(far, packets, width)-far, width))
	return word + uint64(int64(math.Round(later/c.unit())))<<c.lowBits()
}

// include widens the interval of the clock's error by an epoch's reading: the true offset
// less that of the reading is in the reading's interval less its offset.
func (q *query) include(r clock.Reading) {
	all, one := &q.coverage.Clock, r.Certain
	one.Low, one.High = one.Low-r.Offset, one.High-r.Offset
	if all.Confidence > 0 {
		one.Low, one.High, one.Confidence = min(all.Low, one.Low), max(all.High, one.High), min(all.Confidence, one.Confidence)
	}
	*all = one
}

// ahead returns how far the second point's clock is ahead of the first's at about the time of the window.
func (q *query) ahead() int64 {
	if q.clock == nil {
		return 0
	}
	start, end, _ := q.clock.Span()
	for _, at := range []int64{min(max(q.from/2+q.to/2, start), end-1), start, end - 1} {
		if r, err := q.clock.At(at); err == nil {
			return int64(r.Offset)
		}
	}
	return 0
}
