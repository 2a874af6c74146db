package hoplag

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/areas"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/wire"
)

// A flowTable has the packets of flows, each flow in cells of its own. Where there are more flows than it has
// room for, it keeps those whose places are within a limit: nearly the same ones at both points.
type flowTable struct {
	rows  map[hashing.Flow]*flowRow
	most  int
	limit uint64
}

// A flowRow is the cells of a flow. A packet's hash chooses one, so that a loss spoils one of them; the last
// one is seldom chosen, for flows that always have packets on their way.
type flowRow [flowCells]flowCell

type flowCell struct {
	count, digest uint32
	sum           uint64 // of timestamps
}

const flowCells = 3

func flowCellOf(p hashing.Packet) int {
	switch n := p % 64; {
	case n == 0:
		return 2
	case n < 12:
		return 1
	}
	return 0
}

func newFlowTable(most int) *flowTable {
	return &flowTable{rows: map[hashing.Flow]*flowRow{}, most: most, limit: math.MaxUint64}
}

func (t *flowTable) reset() {
	clear(t.rows)
	t.limit = math.MaxUint64
}

// placeOf is a number by which flows are chosen, whatever they are named.
func placeOf(f hashing.Flow) uint64 { return uint64(hashing.Word(flowSeed, uint64(f))) }

// row returns the row of a flow, or nil if there is no room.
func (t *flowTable) row(f hashing.Flow) *flowRow {
	if r := t.rows[f]; r != nil {
		return r
	}
	if placeOf(f) > t.limit || t.most == 0 {
		return nil
	}
	t.rows[f] = new(flowRow)
	for len(t.rows) > t.most {
		t.narrow(t.limit / 2)
	}
	return t.rows[f]
}

func (t *flowTable) narrow(limit uint64) {
	if limit < t.limit {
		t.limit = limit
		maps.DeleteFunc(t.rows, func(f hashing.Flow, _ *flowRow) bool { return placeOf(f) > limit })
	}
}

func (t *flowTable) add(e *entry) {
	if r := t.row(e.flow); r != nil {
		c := &r[flowCellOf(e.packet)]
		c.count++
		c.digest += uint32(e.packet >> 32)
		c.sum += uint64(e.time)
	}
}

func (t *flowTable) merge(o *flowTable) {
	t.narrow(o.limit)
	for f, from := range o.rows {
		if r := t.row(f); r != nil {
			for i := range r {
				r[i].count += from[i].count
				r[i].digest += from[i].digest
				r[i].sum += from[i].sum
			}
		}
	}
}

func (t *flowTable) shift(by int64) {
	for _, r := range t.rows {
		for i := range r {
			r[i].sum += uint64(r[i].count) * uint64(by)
		}
	}
}

// append encodes a table; times are since begin.
func (t *flowTable) append(b []byte, begin int64) []byte {
	b = binary.BigEndian.AppendUint64(b, t.limit)
	for _, f := range slices.Sorted(maps.Keys(t.rows)) {
		b = binary.BigEndian.AppendUint64(b, uint64(f))
		for _, c := range t.rows[f] {
			if b = binary.AppendUvarint(b, uint64(c.count)); c.count > 0 {
				b = binary.BigEndian.AppendUint32(b, c.digest)
				b = binary.AppendVarint(b, int64(c.sum-uint64(c.count)*uint64(begin)))
			}
		}
	}
	return b
}

// decodeFlows decodes a table. What it takes is in proportion to the bytes.
func decodeFlows(data []byte, begin int64) (*flowTable, error) {
	r, t := wire.NewReader(data), newFlowTable(math.MaxInt)
	last, bad := hashing.Flow(0), false
	for t.limit = r.Uint64(); r.Len() > 0 && !bad; {
		f := hashing.Flow(r.Uint64())
		bad = f <= last || placeOf(f) > t.limit
		last, t.rows[f] = f, new(flowRow)
		for i := range t.rows[f] {
			c, count := &t.rows[f][i], r.Uvarint()
			if c.count, bad = uint32(count), bad || count > math.MaxUint32; count > 0 {
				c.digest = r.Uint32()
				c.sum = uint64(wire.Unzigzag(r.Uvarint())) + count*uint64(begin)
			}
		}
	}
	if bad || r.Close() != nil {
		return nil, fmt.Errorf("%w: flows", estimate.ErrEncoding)
	}
	return t, nil
}

// flows measures the delays of each flow by the areas of its cells, which no other flow has.
type flows struct {
	areas   *areas.Areas
	length  float64 // of a cut
	all     map[hashing.Flow]*flow
	numbers []*flow // by number
	free    []int   // numbers of none
	from    int     // the cut at which the oldest report began that was not told yet
	ends    []int   // and those at which such reports ended
}

// A flow is one of them. Its cells are those from flowCells times its number on.
type flow struct {
	number int
	passed int // the latest cut in which a packet passed
	full   int // likewise, in which a point had no room for the flow
	told   flowTotal
}

// A flowTotal is what spans tell of a flow in a report.
type flowTotal struct {
	sent, received uint64
	exact, lossy   flowTime // of spans that lost none, and of others
	unknown        flowTime // of which no time is known
	owed           float64  // by how much the former took longer in all than in the report
	variance       float64  // of the time of lossy
	lost           float64  // of the packets of lossy, as expected
	began, ended   flowAges // of packets on their way when the report began and when it ended, in exact spans
}

// A flowTime is how long so many packets took, and how long as many of all flows did at the same times.
type flowTime struct{ packets, time, usual float64 }

// A flowAges is about packets on their way: how many, the squares of that span by span, and
// what bounds their ages.
type flowAges struct{ packets, squares, least, most float64 }

const maxFlows = 1 << 20 // bounds Config.Flows

// newFlows returns flows with room for so many. Packets may be under way when they begin.
func newFlows(c *Config, begin int64, underWay bool) *flows {
	w := &flows{areas: areas.New([]int{flowCells * c.Flows}, 64, 32), length: float64(c.Cut), all: map[hashing.Flow]*flow{}}
	w.areas.Begin(begin)
	if underWay {
		w.areas.UnderWay()
	}
	return w
}

func (w *flows) end() { w.ends = append(w.ends, w.areas.Cuts()) }

// add takes what both points counted in a cut that ends at a time, by the clock of the stamps of what was sent.
func (w *flows) add(up, down *flowTable, end int64) {
	limit := min(up.limit, down.limit)
	for id := range up.rows {
		w.cut(id, up, down, limit)
	}
	for id := range down.rows {
		if up.rows[id] == nil {
			w.cut(id, up, down, limit)
		}
	}
	w.areas.Next(end)
}

func (w *flows) cut(id hashing.Flow, up, down *flowTable, limit uint64) {
	f, now, room := w.all[id], w.areas.Cuts()+1, len(w.free) > 0 || len(w.numbers) < up.most
	switch {
	case placeOf(id) > limit && f != nil:
		f.full = now
		return
	case placeOf(id) > limit || f == nil && !room:
		return
	case f == nil:
		f = w.enter(id)
	}
	f.passed = now
	var none flowRow
	sent, received := cmp.Or(up.rows[id], &none), cmp.Or(down.rows[id], &none)
	for k := range sent {
		if s, r := &sent[k], &received[k]; s.count|r.count != 0 {
			w.areas.Cut(flowCells*f.number+k, areas.CellPair{SentSum: s.sum, SentTally: s.tally(), ReceivedSum: r.sum, ReceivedTally: r.tally()})
		}
	}
}

func (c *flowCell) tally() uint64 { return uint64(c.digest)<<32 + uint64(c.count) }

// enter gives a flow a number, for which there is room.
func (w *flows) enter(id hashing.Flow) *flow {
	if len(w.free) == 0 {
		w.free, w.numbers = append(w.free, len(w.numbers)), append(w.numbers, nil)
	}
	last := len(w.free) - 1
	f := &flow{number: w.free[last]}
	w.free, w.all[id], w.numbers[f.number] = w.free[:last], f, f
	return f
}

// report tells the oldest report that ended: the flows of which packets came and whose mean
// is known to within itself, slowest first, and how many more there were. Scatter is the variance of delays by the
// square of their mean, of all packets or of exponential ones if that is more.
func (w *flows) report(scatter float64) (known []FlowDelay, unknown int) {
	to := w.ends[0]
	w.ends = append(w.ends[:0], w.ends[1:]...)
	all, _ := w.areas.Transit(w.from, to, nil) // learns what was lost
	lost, _, _ := w.areas.Losses(to)
	w.areas.Spans(w.from, to, func(s areas.Span) {
		if f := w.numbers[s.Cell/flowCells]; f != nil { // or it passed so long ago that it is forgotten
			f.told.add(&s, lost > 0)
		}
	})
	w.areas.Settle(to)
	for id, f := range w.all {
		d := f.told.delay(all.Greatest, scatter, float64(to-w.from)*w.length)
		d.Flow = id
		if i := d.MeanInterval95; d.Received > 0 && i.High-i.Low <= 2*d.Mean && f.full <= w.from {
			known = append(known, d)
		} else if d.Sent+d.Received > 0 {
			unknown++
		}
		if f.told = (flowTotal{}); to-f.passed > longestDelay {
			delete(w.all, id)
			w.numbers[f.number], w.free = nil, append(w.free, f.number)
		}
	}
	w.from = to
	slices.SortFunc(known, func(a, b FlowDelay) int {
		return cmp.Or(-cmp.Compare(a.Mean, b.Mean), cmp.Compare(a.Flow, b.Flow))
	})
	return known, unknown
}

// add adds a span, where some flows lose packets or none does. Delays of packets received are the time that
// passed in the report, and the ages when it began of those on their way then, less the ages when it ended.
func (t *flowTotal) add(s *areas.Span, losses bool) {
	t.sent += uint64(s.Sent)
	t.received += uint64(s.Received)
	n, a, b := float64(s.Received), &s.Began, &s.Ended
	if math.IsInf(s.Variance, 1) || s.Joined > 0 { // copies hide some of the time
		t.unknown.add(n, 0, s.Usual)
		return
	}
	exact := !s.Open && s.Variance == 0 && s.Aged == 0
	if exact {
		t.owed += (a.Least + a.Most - b.Least - b.Most) / 2
		t.exact.add(n, s.Area, s.Usual)
	} else {
		t.lossy.add(n, s.Area-s.Aged, s.Usual)
		t.variance += s.Variance
	}
	if exact || s.Open && !losses {
		t.began.add(a.Packets, a.Least, a.Most)
		t.ended.add(b.Packets, b.Least, b.Most)
		return
	}
	t.lossy.time += (a.Least+a.Most)/2 - (b.Least+b.Most)/2
	t.variance += sq(a.Most-a.Least)/4 + sq(b.Most-b.Least)/4
	t.lost += s.Before + s.Within
}

func (x *flowTime) add(packets, time, usual float64) {
	x.packets += packets
	x.time += time
	x.usual += usual
}

// of returns how long others took that are like these, whose mean is given: as much longer as packets of all flows did.
func (x *flowTime) of(others *flowTime, mean float64) float64 {
	if x.usual <= 0 {
		return others.packets * mean
	}
	return others.usual * mean * x.packets / x.usual
}

func (a *flowAges) add(packets, least, most float64) {
	a.packets += packets
	a.squares += packets * packets
	a.least += least
	a.most += most
}

// delay says what is known of a flow. Packets of which nothing is known are taken to be like
// others, and those of lossy spans like exact ones, as far as these tell more.
func (t *flowTotal) delay(greatest, scatter, length float64) FlowDelay {
	d := FlowDelay{Sent: t.sent, Received: t.received, Lost: max(t.sent, t.received) - t.received}
	x, y, n, rest, hidden := &t.exact, &t.lossy, float64(t.received), t.unknown.packets, 0.0
	like := (x.time + t.owed) / x.packets
	if rest > 0 {
		hidden = x.of(&t.unknown, like)
	}
	mean := (x.time + t.owed + y.time + hidden) / n
	if t.variance > sq(x.time) {
		mean = (x.time + t.owed + hidden) / (x.packets + rest)
	}
	single := scatter * sq(mean) // variance of a packet's delay
	// Lossy spans are like exact ones. A packet that takes longer is less often in one of
	// these, by the losses in that time, which makes a bias.
	doubt := single/x.packets + sq(min(t.lost/length*single, math.Sqrt(single)))
	if t.variance > 0 && doubt < math.Inf(1) {
		part := t.variance / (t.variance + sq(y.packets)*doubt + y.packets*single)
		y.time += part * (x.of(y, like) - y.time)
		t.variance *= 1 - part
	}
	time, low, high := x.time+y.time+hidden, math.Inf(-1), math.Inf(1)
	if x.packets == n {
		low, high = time+t.began.least-t.ended.most, time+t.began.most-t.ended.least
	}
	began, before := t.began.age(mean, single, greatest)
	ended, after := t.ended.age(mean, single, greatest)
	time, variance := time+began-ended, t.variance+before+after
	if rest > 0 { // exact spans of the same times may be the fast ones, as those of all times are
		variance += rest*single + sq(rest)*doubt + sq(hidden-rest*like)
	}
	half := deviations * math.Sqrt(variance)
	time = min(max(time, low), high)
	low, high = max(low, time-half), min(high, time+half)
	d.Mean = time / n
	d.MeanInterval95 = estimate.Interval{Low: low / n, High: high / n, Confidence: sampling}
	return d
}

// age estimates the ages of packets on their way, and the variance of that. A packet is seen on
// its way in proportion to its delay, and its age is uniform up to that: with moments m of delays
// the mean is m₂/2m₁, and the mean square m₃/3m₁. The third is at most the second times the
// greatest delay. Packets of one span may go together.
func (a *flowAges) age(mean, single, greatest float64) (sum, variance float64) {
	if a.packets == 0 || mean <= 0 {
		return (a.least + a.most) / 2, sq(a.most-a.least) / 4
	}
	greatest = max(greatest, mean)
	second := min(single+sq(mean), mean*greatest) // as no delay is greater
	age := second / (2 * mean)
	return min(max(a.packets*age, a.least), a.most), a.squares * (second*greatest/(3*mean) - sq(age))
}

func sq(x float64) float64 { return x * x }
