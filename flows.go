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
	sum   uint64 // of timestamps
	tally uint64 // count, and above it the sum of digests
}

func (c *flowCell) count() uint64 { return c.tally & math.MaxUint32 }

const flowCells = 3

// cell returns the cell of a packet.
func (r *flowRow) cell(p hashing.Packet) *flowCell {
	switch n := p % 64; {
	case n == 0:
		return &r[2]
	case n < 12:
		return &r[1]
	}
	return &r[0]
}

func newFlowTable(most int) *flowTable {
	return &flowTable{rows: map[hashing.Flow]*flowRow{}, most: most, limit: math.MaxUint64}
}

func (t *flowTable) reset() {
	clear(t.rows)
	t.limit = math.MaxUint64
}

// placeOf returns a number by which flows are chosen, whatever their names.
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
		c := r.cell(e.packet)
		c.sum += uint64(e.time)
		c.tally += uint64(e.packet>>32)<<32 + 1
	}
}

func (t *flowTable) merge(o *flowTable) {
	t.narrow(o.limit)
	for f, from := range o.rows {
		if r := t.row(f); r != nil {
			for i := range r {
				r[i].sum += from[i].sum
				r[i].tally += from[i].tally
			}
		}
	}
}

func (t *flowTable) shift(by int64) {
	for _, r := range t.rows {
		for i := range r {
			r[i].sum += r[i].count() * uint64(by)
		}
	}
}

// append encodes a table; times are since begin.
func (t *flowTable) append(b []byte, begin int64) []byte {
	b = binary.BigEndian.AppendUint64(b, t.limit)
	for _, f := range slices.Sorted(maps.Keys(t.rows)) {
		b = binary.BigEndian.AppendUint64(b, uint64(f))
		for _, c := range t.rows[f] {
			if b = binary.AppendUvarint(b, c.count()); c.count() > 0 {
				b = binary.BigEndian.AppendUint32(b, uint32(c.tally>>32))
				b = binary.AppendVarint(b, int64(c.sum-c.count()*uint64(begin)))
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
			count := r.Uvarint()
			if bad = bad || count > math.MaxUint32; count > 0 {
				t.rows[f][i].tally = uint64(r.Uint32())<<32 + count
				t.rows[f][i].sum = uint64(wire.Unzigzag(r.Uvarint())) + count*uint64(begin)
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
	lost           float64  // of the packets of lossy, as expected
	ends, sure     flowEnds // in spans that are taken to have lost none, and in exact ones
}

// A flowTime is how long some packets took, and how long equally many of all flows did at the same times.
type flowTime struct{ packets, time, variance, usual float64 }

// A flowEnds is about packets on their way when the report began and when it ended: how many, the squares of that
// span by span, and what bounds their ages.
type flowEnds [2]struct{ packets, squares, least, most float64 }

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
		if s, r := &sent[k], &received[k]; s.tally|r.tally != 0 {
			w.areas.Cut(flowCells*f.number+k, areas.CellPair{SentSum: s.sum, SentTally: s.tally, ReceivedSum: r.sum, ReceivedTally: r.tally})
		}
	}
}

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

// report tells the oldest report that ended: the flows of which packets came and whose mean is known to within
// itself, slowest first, and how many more there were. Scatter is the variance of delays by the square of their
// mean, of all packets or of exponential ones if that is more.
func (w *flows) report(scatter float64) (known []Delay, unknown int) {
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
		d := f.told.delay(&all, scatter, float64(to-w.from)*w.length)
		d.Flow = id
		if i := d.MeanInterval95; d.Received > 0 && i.High-i.Low < 2*d.Mean && f.full <= w.from {
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
	slices.SortFunc(known, func(a, b Delay) int {
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
		t.unknown.add(n, 0, math.Inf(1), s.Usual)
		return
	}
	exact := !s.Open && s.Variance == 0 && s.Aged == 0
	if exact {
		t.exact.add(n, s.Area, 0, s.Usual)
		t.sure.add(s)
	} else {
		t.lossy.add(n, s.Area-s.Aged, s.Variance, s.Usual)
	}
	if exact || s.Open && !losses {
		t.ends.add(s)
		return
	}
	t.lossy.add(0, (a.Least+a.Most-b.Least-b.Most)/2, sq(a.Most-a.Least)/4+sq(b.Most-b.Least)/4, 0)
	t.lost += s.Gone
}

func (x *flowTime) add(packets, time, variance, usual float64) {
	x.packets += packets
	x.time += time
	x.variance += variance
	x.usual += usual
}

// of returns how long other packets took, given the mean of these: as much longer as packets of all flows did.
func (x *flowTime) of(others *flowTime, mean float64) float64 {
	if x.usual <= 0 {
		return others.packets * mean
	}
	return others.usual * mean * x.packets / x.usual
}

func (e *flowEnds) add(s *areas.Span) {
	for i, b := range [2]struct{ Packets, Least, Most float64 }{s.Began, s.Ended} {
		e[i].packets += b.Packets
		e[i].squares += sq(b.Packets)
		e[i].least += b.Least
		e[i].most += b.Most
	}
}

// delay says what is known of a flow. Packets of which nothing is known are taken to be like others, and those
// of lossy spans like exact ones, as far as these tell more.
func (t *flowTotal) delay(all *areas.Transit, scatter, length float64) Delay {
	d := Delay{Sent: t.sent, Received: t.received, Lost: max(t.sent, t.received) - t.received}
	x, y, z, n := &t.exact, &t.lossy, &t.unknown, float64(t.received)
	owed, unsure := t.sure.owed(x.time/x.packets, scatter, all)
	like := (x.time + owed) / x.packets
	mean := (x.time + owed + y.time) / (n - z.packets)
	single := scatter * sq(mean) // variance of a packet's delay
	// A packet that takes longer is less often in an exact span, by the losses in that time, which makes a
	// bias. Exact spans of the same times may be the fast ones, as those of all times are.
	doubt := single/x.packets + unsure/sq(x.packets) + sq(min(t.lost/length*single, math.Sqrt(single)))
	for _, o := range [...]*flowTime{y, z} {
		guess := x.of(o, like)
		variance := o.packets*single + sq(o.packets)*doubt + sq(guess-o.packets*like)
		if o.variance > 0 && variance < math.Inf(1) {
			part := 1 / (1 + variance/o.variance)
			o.time += part * (guess - o.time)
			o.variance = part * variance
		}
	}
	time, low, high := x.time+y.time+z.time, math.Inf(-1), math.Inf(1)
	if x.packets == n {
		low, high = time+t.ends[0].least-t.ends[1].most, time+t.ends[0].most-t.ends[1].least
	}
	owed, unsure = t.ends.owed(mean, scatter, all)
	half := deviations * math.Sqrt(y.variance+z.variance+unsure)
	time = min(max(time+owed, low), high)
	low, high = max(low, time-half), min(high, time+half)
	d.Mean = time / n
	d.MeanInterval95 = estimate.Interval{Low: low / n, High: high / n, Confidence: sampling}
	return d
}

// owed estimates by how much packets took longer in all than in the report, and the variance of that. A packet
// is seen on its way in proportion to its delay, and its age is uniform up to that: with moments m of delays the
// mean is m₂/2m₁, and the mean square m₃/3m₁. The third is at most the second times the greatest delay. Packets
// of one span may go together. Bursts leave the slow ones behind, of which only bounds tell.
func (e *flowEnds) owed(mean, scatter float64, all *areas.Transit) (time, variance float64) {
	greatest := max(all.Greatest, mean)
	second := min((1+scatter)*sq(mean), mean*greatest) // as no delay is greater
	age := second / (2 * mean)
	for i, times := range [2]float64{1, -1} {
		if a := &e[i]; a.packets != 0 && mean > 0 && !all.Bursts {
			time += times * min(max(a.packets*age, a.least), a.most)
			variance += a.squares * (second*greatest/(3*mean) - sq(age))
		} else {
			time += times * (a.least + a.most) / 2
			variance += sq(a.most-a.least) / 4
		}
	}
	return time, variance
}

func sq(x float64) float64 { return x * x }
