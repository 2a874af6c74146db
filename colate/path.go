package colate

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/clock"
	"github.com/hoplag/hoplag/estimate/joint"
)

// A Path is two points that packets pass one after the other, given by their
// stores. Any number of goroutines may query it while the stores are being
// written.
type Path struct {
	Up, Down *Store

	// Clock says how far the second point's clock was ahead of the first's
	// during that time. If it is nil, queries use what Down has, from
	// [Store.AppendClock], if anything. They pair epochs by it, and correct
	// the second point's times; an epoch without a reading is Missing. What an
	// offset is beyond a multiple of the Period is as a delay of all packets:
	// more of them cross the cuts.
	Clock *clock.History
}

// A Coverage says what data a query had.
type Coverage struct {
	// Start and End are the span of the epochs that overlap the window.
	// Answers are about this span: about whole epochs, in which the flows had
	// the packets of their records.
	Start, End int64
	// Epochs is the number of pairs of epochs that were compared. Missing
	// lists the parts of the span that were not, and why.
	Epochs  int
	Missing []Missing
	// Bytes is the number of bytes read from both stores.
	Bytes int64
	// Damages lists what could not be read.
	Damages []Damage
	// Clocks describes the error that the points' clocks leave in the answers.
	Clocks Clocks
}

// A Missing is a span in which the points could not be compared.
type Missing struct {
	Start, End int64
	Reason     error
}

// Estimate returns what two stores say about a flow in the time from from to
// to, in nanoseconds, ends included. Of each epoch it reads the counters of
// the flow, and others in the same blocks.
//
//	answer, coverage, err := path.Estimate(ctx, joint.FlowRecord{Flow: flow, Packets: 5000}, from, to)
//
// The error is that of ctx, of the file system, or of the answer, or
// [estimate.ErrNoSamples] if no epoch overlaps the time.
func (p Path) Estimate(ctx context.Context, flow joint.FlowRecord, from, to int64) (Result, Coverage, error) {
	answers, coverage, err := p.EstimateAll(ctx, []joint.FlowRecord{flow}, from, to)
	if err != nil {
		return Result{}, coverage, err
	}
	return answers[0].Result, coverage, answers[0].Err
}

// EstimateAll is Estimate for many flows, and reads the epochs once. Answers
// are in the order of the flows.
func (p Path) EstimateAll(ctx context.Context, flows []joint.FlowRecord, from, to int64) ([]Answer, Coverage, error) {
	q := newQuery(p, from, to)
	defer q.close()
	var a *accumulator
	err := q.run(ctx, func(c Config) (err error) {
		a, err = newAccumulator(c, flows)
		q.sampling = newSampling(c, flows)
		return err
	}, func(s *step) error {
		up, down, err := q.cells(s, a.at, a.order, a.table)
		if err == nil {
			a.end(s.span, up, down, s.counts)
		}
		return err
	}, func() { a.unread++ })
	if err != nil {
		return nil, q.coverage, err
	}
	if q.coverage.Clocks.Known {
		a.trend = trend{} // it is that of delays
	}
	answers := a.answers()
	if q.sampling != nil {
		for i := range answers {
			q.sampling.flows[i].combine(&answers[i], flows[i])
		}
	}
	return answers, q.coverage, ctx.Err()
}

// A query walks through the epochs of both points.
type query struct {
	up, down epochReader
	from, to int64
	later    int64 // about how far the second point's clock is ahead
	found    [2][]foundEntry
	coverage Coverage
	sums     [2][]uint64
	one      []uint64 // of one corrected epoch
	clocks   []*clock.History
	sampling *sampling
}

// A foundEntry is an epoch to be compared, with its span by the first point's
// clock and, at the second point, what its own said.
type foundEntry struct {
	entry
	near    span
	fold    uint8
	reading clock.Reading
	unknown error
}

// A step is a span that begins and ends with epochs of both points. Usually
// that is one epoch of each. It is more after a restart, or if one Period is a
// multiple of the other.
type step struct {
	span
	counts  bool // whether it is in the window; others only settle levels
	entries [2][]foundEntry
}

func newQuery(p Path, from, to int64) *query {
	q := &query{up: epochReader{store: p.Up}, down: epochReader{store: p.Down}, from: from, to: to}
	if p.Clock != nil {
		q.clocks = []*clock.History{p.Clock}
	} else {
		q.readClocks()
	}
	q.later = q.ahead()
	for i, s := range []*Store{p.Up, p.Down} {
		later := int64(i) * q.later
		for _, e := range s.find(later64(from, later), later64(to, later)) {
			q.put(i, e)
		}
		q.around(i, s)
	}
	return q
}

// put adds an epoch in the order of time. One of the second point is put where
// its clock says, next to the first point's epoch that it is closest to.
func (q *query) put(point int, e entry) {
	f := foundEntry{entry: e, near: span{e.start, e.end}}
	if point == 1 && len(q.clocks) > 0 {
		if f.reading, f.unknown = q.clockAt(e.start + (e.end-e.start)/2 - q.later); f.unknown == nil {
			period := float64(e.end - e.start)
			later := int64(math.Round(f.reading.Offset/period)) * (e.end - e.start)
			f.near = span{e.start - later, e.end - later}
		}
	}
	q.found[point] = append(q.found[point], f)
}

// around adds the epochs before and after those of the window, which settle
// what was on its way at its ends.
func (q *query) around(point int, s *Store) {
	found := q.found[point]
	if len(found) == 0 {
		return
	}
	first, last := found[0], found[len(found)-1]
	q.found[point] = nil
	for _, e := range s.find(later64(first.start, first.start-first.end), first.start-1) {
		if e.end <= first.start {
			q.put(point, e)
		}
	}
	q.found[point] = append(q.found[point], found...)
	for _, e := range s.find(last.end, last.end) {
		if e.start >= last.end {
			q.put(point, e)
		}
	}
}

// later64 returns the time that is later by d, or the last or first there is.
func later64(t, d int64) int64 {
	if sum := t + d; (sum > t) == (d > 0) || d == 0 {
		return sum
	}
	if d > 0 {
		return math.MaxInt64
	}
	return math.MinInt64
}

func (q *query) close() {
	q.up.close()
	q.down.close()
}

// run calls begin once, with the Config of the window's first readable epoch,
// then each for every step, and missing if that fails.
func (q *query) run(ctx context.Context, begin func(Config) error, each func(*step) error, missing func()) error {
	c, err := q.config()
	if err != nil {
		return err
	}
	if err := begin(c); err != nil {
		return err
	}
	for first := true; ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		s, ok := q.next()
		if !ok {
			q.coverage.Bytes = q.up.bytes + q.down.bytes
			return nil
		}
		if s.counts = s.start <= q.to && s.end > q.from; !s.counts {
			if s.complete() == nil {
				_ = each(s) // it only helps
			}
			continue
		}
		if first {
			q.coverage.Start, first = s.start, false
		}
		q.coverage.End = max(q.coverage.End, s.end)
		err := each(s)
		if err != nil {
			missing()
		} else if err = s.complete(); err == nil {
			q.coverage.Epochs++
			continue
		}
		q.coverage.Missing = append(q.coverage.Missing, Missing{s.start, s.end, err})
	}
}

// complete reports which point has no epoch in a step. An empty epoch is
// assumed there, as at the end of traffic when the last packets are on their
// way.
func (s *step) complete() error {
	for i, point := range []string{"first", "second"} {
		if len(s.entries[i]) == 0 {
			return fmt.Errorf("colate: %w: no epoch at the %s point", estimate.ErrNoSamples, point)
		}
	}
	return nil
}

// next takes the next step from the entries found.
func (q *query) next() (*step, bool) {
	s := new(step)
	begun := false
	for {
		// The epoch that begins first, if it is part of the step.
		next := -1
		for i, found := range q.found {
			if len(found) > 0 && (next < 0 || found[0].near.start < q.found[next][0].near.start) {
				next = i
			}
		}
		if next < 0 || begun && q.found[next][0].near.start >= s.end {
			return s, begun
		}
		e := q.found[next][0]
		q.found[next] = q.found[next][1:]
		if !begun {
			begun, s.span = true, e.near
		}
		s.end = max(s.end, e.near.end)
		s.entries[next] = append(s.entries[next], e)
	}
}

// config returns the Config of the first readable epoch.
func (q *query) config() (Config, error) {
	for i, r := range []*epochReader{&q.up, &q.down} {
		for _, e := range q.found[i] {
			h, err := r.head(&e.entry)
			if err != nil {
				continue
			}
			c := h.config
			c.fold = q.fold()
			return c, nil
		}
	}
	return Config{}, fmt.Errorf("colate: %w: no epoch overlaps the window (%d and %d that cannot be read)",
		estimate.ErrNoSamples, len(q.found[0]), len(q.found[1]))
}

// sparse is the largest part of the packets in epochs that are left out because
// their counters are folded more often than the others'.
const sparse = 0.01

// fold returns how often the counters of nearly all epochs are folded at most,
// as all are then compared. It leaves the others out.
func (q *query) fold() (fold uint8) {
	var packets [28]float64 // by fold
	for i, r := range []*epochReader{&q.up, &q.down} {
		for k := range q.found[i] {
			e := &q.found[i][k]
			if head, err := r.read(&e.entry, 0, min(headPrefix, int64(e.head))); err == nil && len(head) == headPrefix {
				e.fold = min(head[foldAt], 27)
				packets[e.fold] += float64(binary.BigEndian.Uint64(head[packetsAt:]))
			}
		}
	}
	all, more := 0.0, 0.0
	for _, n := range packets {
		all += n
	}
	for fold = 27; fold > 0 && more+packets[fold] <= sparse*all; fold-- {
		more += packets[fold]
	}
	for i := range q.found {
		q.found[i] = slices.DeleteFunc(q.found[i], func(e foundEntry) bool { return e.fold > fold })
	}
	return fold
}

// cells puts a step's contents of these counters into a table, and returns how
// many packets each point has. If it fails, the table is unchanged.
func (q *query) cells(s *step, at, order []uint32, table *cellTable) (up, down uint64, err error) {
	for _, e := range s.entries[1] {
		if e.unknown != nil {
			return 0, 0, fmt.Errorf("colate: %w", e.unknown)
		}
	}
	corrected := len(q.clocks) > 0
	packets := [2]*uint64{&up, &down}
	for i, r := range []*epochReader{&q.up, &q.down} {
		if q.sums[i] == nil {
			q.sums[i] = make([]uint64, len(at))
		}
		clear(q.sums[i])
		for k := range s.entries[i] {
			sums := q.sums[i]
			if i == 1 && corrected {
				q.one = slices.Grow(q.one[:0], len(at))[:len(at)]
				clear(q.one)
				sums = q.one
			}
			e := &s.entries[i][k]
			h, err := r.cells(&e.entry, at, order, sums, &table.config)
			if err != nil {
				if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errOther) {
					q.damaged(&e.entry, err)
				}
				return 0, 0, fmt.Errorf("colate: %w", err)
			}
			*packets[i] += h.packets
			if q.sampling != nil {
				if err := q.sampling.read(r, e, h, i == 1, s.counts, i == 1 && corrected); err != nil {
					return 0, 0, fmt.Errorf("colate: %w", err)
				}
			}
			if i == 1 && corrected {
				for j, word := range sums {
					q.sums[i][j] += table.config.nearWord(word, e.reading)
				}
			}
		}
	}
	for i := range at {
		table.put(i, q.sums[0][i], q.sums[1][i])
	}
	if q.sampling != nil {
		q.sampling.match(s.end, s.end-s.start, table.config.limit())
	}
	if corrected && s.counts {
		for _, e := range s.entries[1] {
			q.coverage.Clocks.include(e.reading)
		}
	}
	return up, down, nil
}

func (q *query) damaged(e *entry, err error) {
	q.coverage.Damages = append(q.coverage.Damages, Damage{
		File: segmentName(e.segment), Offset: e.offset - frameSize, Bytes: frameSize + int64(e.length), Reason: err,
	})
}

// cells adds an epoch's counters to sums, if the epoch has that Config.
func (r *epochReader) cells(e *entry, at, order []uint32, sums []uint64, c *Config) (*epochHead, error) {
	h, err := r.head(e)
	if err != nil {
		return nil, err
	}
	if a, b := h.config.comparable(), c.comparable(); a.unfolded() != b.unfolded() || a.fold > b.fold {
		return nil, errOther
	}
	return h, r.add(e, h, at, order, sums, c.fold-h.config.fold)
}
