package hoplag

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// A flowTable has the packets of flows, each flow in cells of its own. Where there
// are more flows than it has room for, it keeps those whose places are within a
// limit: nearly the same ones at both points.
type flowTable struct {
	rows  map[hashing.Flow]*flowRow
	most  int
	limit uint64
}

// A flowRow is the cells of a flow. A packet's hash chooses one, so that a loss
// spoils one of them; the last one is seldom chosen, for flows that always have
// packets on their way.
type flowRow [flowCells]flowCell

type flowCell struct {
	count, digest uint32
	sum           uint64 // of time stamps
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
	if placeOf(f) > t.limit {
		return nil
	}
	t.rows[f] = new(flowRow)
	for len(t.rows) > t.most {
		t.narrow(t.limit / 2)
	}
	return t.rows[f]
}

// narrow makes the limit no greater than this.
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

// merge adds another table.
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

// shift moves all stamps by so many ns.
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
	bad := fmt.Errorf("%w: flows", estimate.ErrEncoding)
	if len(data) < 8 {
		return nil, bad
	}
	t := newFlowTable(math.MaxInt)
	t.limit = binary.BigEndian.Uint64(data)
	last := hashing.Flow(0)
	for data = data[8:]; len(data) > 0; {
		if len(data) < 8 {
			return nil, bad
		}
		f := hashing.Flow(binary.BigEndian.Uint64(data))
		if data = data[8:]; f <= last || placeOf(f) > t.limit {
			return nil, bad
		}
		last, t.rows[f] = f, new(flowRow)
		for i := range t.rows[f] {
			c := &t.rows[f][i]
			count, n := binary.Uvarint(data)
			if n <= 0 || count > math.MaxUint32 {
				return nil, bad
			}
			if data, c.count = data[n:], uint32(count); count == 0 {
				continue
			}
			if len(data) < 5 {
				return nil, bad
			}
			c.digest = binary.BigEndian.Uint32(data)
			sum, n := binary.Varint(data[4:])
			if n <= 0 {
				return nil, bad
			}
			c.sum, data = uint64(sum)+count*uint64(begin), data[4+n:]
		}
	}
	return t, nil
}

// flows adds up the delays of each flow, whose cells no other flow has.
type flows struct {
	all          map[hashing.Flow]*flow
	full         int   // packets of flows that there was no room for, in the report
	began, ended int64 // when what it received came
}

// A flow is one of them, and what passed of it in the report.
type flow struct {
	cells          [flowCells]cell
	sent, received uint64
	spans          estimate.Cells   // of packets between cuts of one level
	onWay          estimate.Moments // packets outstanding at cuts
	idle           int              // reports without a packet

	// Lately:
	mean, variance float64 // of delays
	standing       float64 // the longest that packets were seen to be on their way
	passed, lost   float64 // packets in spans, and packets outstanding for too long
	share          float64 // of packets lost
	clump          float64 // how many packets are sent together
}

// A cell has the levels that it has not been below since, each higher than the one before:
// now and when the report began.
type cell struct {
	levels, before []level
	lost           uint32 // packets that were outstanding for too long
}

// A level is how many packets were sent and have not come, and their digest. Between two
// cuts of one level, all that came is all that was sent, and the stamps differ by the
// delays. Elsewhere that lacks the ages of the packets on their way, which are bounded by
// when the levels before were last seen.
type level struct {
	flowCell           // sum is of stamps received less those sent, ever, when it was last seen
	received    uint64 // likewise
	first, last int64  // when it was seen; what was sent by then counts
	known       bool   // its packets are those of the level before, and others
	stamps      uint64 // whose stamps add up to this
}

const (
	maxFlows   = 1 << 20 // bounds Config.Flows
	idleFlows  = 30      // for how many reports a flow is remembered without a packet
	mostLevels = 16

	longTail   = 5     // times the mean is as long as a packet takes
	unlikely   = 0.025 // packets lost for each on its way are none
	deviations = 2.24  // from the middle of an interval to its ends
	fading     = 0.98  // from report to report
)

// compareFlows takes what both points counted, whose cuts end at other times by the clock
// that delays are measured by.
func (w *way) compareFlows(up, down *flowTable, length, lag int64) {
	sent, received := w.end, w.end
	if w.direction == forth {
		sent -= lag + w.added
	} else {
		received += w.added - lag
	}
	if w.late != nil {
		received -= length
	}
	w.flows.compare(up, down, sent-length, sent, received)
}

// compare takes what both points counted: what was sent from one time to another, and
// received by ended.
func (w *flows) compare(up, down *flowTable, from, to, ended int64) {
	limit := min(up.limit, down.limit)
	for _, t := range [2]*flowTable{up, down} {
		for f := range t.rows {
			if w.all[f] == nil && len(w.all) < up.most {
				w.all[f] = new(flow)
				for k := range w.all[f].cells {
					w.all[f].cells[k] = cell{levels: []level{{first: from, last: from}}, before: []level{{first: from, last: from}}}
				}
			}
		}
	}
	if w.ended = ended; w.began == 0 {
		w.began = ended - (to - from)
	}
	var none flowRow
	for id, f := range w.all {
		if placeOf(id) > limit { // a point had no room for it
			delete(w.all, id)
			w.full++
			continue
		}
		sent, received, outstanding := cmp.Or(up.rows[id], &none), cmp.Or(down.rows[id], &none), int32(0)
		for k := range f.cells {
			f.sent += uint64(sent[k].count)
			f.received += uint64(received[k].count)
			f.cut(&f.cells[k], &sent[k], &received[k], to)
			outstanding += int32(last(f.cells[k].levels).count)
		}
		f.onWay.Add(float64(outstanding))
	}
}

func last(levels []level) *level { return &levels[len(levels)-1] }

// cut ends a cut for a cell.
func (f *flow) cut(c *cell, sent, received *flowCell, at int64) {
	now, i := *last(c.levels), len(c.levels)-1
	now.sum += received.sum - sent.sum
	now.received += uint64(received.count)
	now.count += sent.count - received.count
	now.digest += sent.digest - received.digest
	for ; i >= 0 && int32(c.levels[i].count-now.count) >= 0; i-- {
		l := &c.levels[i]
		if l.count == now.count && l.digest == now.digest {
			f.spans.Add(float64(int64(now.sum-l.sum)), now.received-l.received)
			l.sum, l.received, l.last = now.sum, now.received, at
			c.levels = c.levels[:i+1]
			return
		}
		f.standing = max(f.standing, float64(l.last-l.first))
	}
	now.first, now.last, now.stamps = at, at, sent.sum
	now.known = i >= 0 && now.count-c.levels[i].count == sent.count && now.digest-c.levels[i].digest == sent.digest
	if c.levels = append(c.levels[:i+1], now); len(c.levels) > mostLevels {
		c.levels[2].known = false
		c.levels = slices.Delete(c.levels, 1, 2)
	}
}

// report ends a report: it returns the flows of which packets came and whose mean is known
// to within itself, slowest first, and how many more there were.
func (w *flows) report() (known []FlowDelay, unknown int) {
	passed, lost := 1.0, 0.5
	for _, f := range w.all {
		f.lose()
		passed, lost = passed+f.passed, lost+max(0, f.lost)
	}
	for id, f := range w.all {
		f.share = max(lost/passed, f.lost/(f.passed+1))
		if d := f.delay(id, w); f.received > 0 && d.MeanInterval95.High-d.MeanInterval95.Low <= 2*d.Mean {
			known, f.mean = append(known, d), d.Mean
		} else if f.sent+f.received > 0 {
			unknown++
		}
		if f.idle++; f.sent+f.received > 0 {
			f.idle = 0
		}
		if f.idle > idleFlows {
			delete(w.all, id)
		}
		for k := range f.cells {
			c := &f.cells[k]
			c.before = append(c.before[:0], c.levels...)
		}
		f.sent, f.received, f.spans, f.onWay = 0, 0, estimate.Cells{}, estimate.Moments{}
		f.mean, f.standing, f.passed, f.lost = fading*f.mean, fading*f.standing, fading*f.passed, fading*f.lost
	}
	unknown, w.full, w.began = unknown+w.full, 0, w.ended
	slices.SortFunc(known, func(a, b FlowDelay) int {
		return cmp.Or(-cmp.Compare(a.Mean, b.Mean), cmp.Compare(a.Flow, b.Flow))
	})
	return known, unknown
}

// lose counts packets that have been outstanding for so long that they count as lost.
func (f *flow) lose() {
	f.passed += float64(f.spans.N())
	for k := range f.cells {
		c, lost := &f.cells[k], uint32(0)
		for i := range c.levels {
			if l := &c.levels[i]; i == 0 || f.stood(l) {
				lost = l.count
			}
		}
		f.lost, c.lost = f.lost+float64(int32(lost-c.lost)), lost
	}
}

// stood reports whether a level was there for longer than packets take.
func (f *flow) stood(l *level) bool {
	tail := longTail * max(f.mean, f.spans.Mean())
	return tail > 0 && float64(l.last-l.first) >= tail
}

// delay says what is known of a flow. Cells that are not known to within themselves are
// taken to be like spans, if that says more.
func (f *flow) delay(id hashing.Flow, w *flows) FlowDelay {
	d := FlowDelay{Flow: id, Sent: f.sent, Received: f.received, Lost: max(f.sent, f.received) - f.received}
	of, _ := f.spans.Delay()
	like := estimate.StudentInterval(of, f.spans.DegreesOfFreedom(), sampling)
	f.mean = max(of.Mean, f.mean)
	if f.variance = f.mean * f.mean; f.spans.DegreesOfFreedom() > 0 {
		f.variance = of.StdDev * of.StdDev
	}
	f.clump = max(1, f.onWay.Variance()*float64(w.ended-w.began)/(float64(f.received)*f.mean))
	n, rest, known := float64(f.received), float64(f.received), owed{}
	for k := range f.cells {
		o, packets := f.owed(&f.cells[k], w)
		if i := o.interval(); i.High-i.Low <= max(2*o.mid, packets*(like.High-like.Low)) {
			known.add(&o, 1)
			rest -= packets
		}
	}
	i := known.interval()
	d.Mean, i.Low, i.High = min(max(known.mid, i.Low), i.High)/n, i.Low/n, i.High/n
	if rest > 0 {
		d.Mean, i.Low, i.High = d.Mean+rest/n*of.Mean, i.Low+rest/n*like.Low, i.High+rest/n*like.High
	}
	d.MeanInterval95 = i
	return d
}

// An owed is a sum of times of packets: between two bounds, about mid.
type owed struct{ packets, low, high, mid, variance float64 }

// add adds another sum, or takes it off if sign is -1.
func (o *owed) add(x *owed, sign float64) {
	o.packets += sign * x.packets
	o.low += min(sign*x.low, sign*x.high)
	o.high += max(sign*x.low, sign*x.high)
	o.mid += sign * x.mid
	o.variance += x.variance
}

func (o *owed) interval() estimate.Interval {
	half := deviations * math.Sqrt(o.variance)
	if o.mid+half < o.low || o.mid-half > o.high { // the flow is not steady
		half = math.Inf(1)
	}
	return estimate.Interval{Low: max(o.low, o.mid-half), High: min(o.high, o.mid+half), Confidence: sampling}
}

// owed returns the delays of the packets that a cell received in the report, and their
// number: the time that packets spent on their way in it, and the ages when it began of those
// on their way then, less the ages when it ended. It leaves out those that were outstanding
// all the time.
func (f *flow) owed(c *cell, w *flows) (o owed, packets float64) {
	a, b, n := c.before, c.levels, 0
	for n < min(len(a), len(b)) && a[n].first == b[n].first {
		n++
	}
	for n > 0 && !((n == len(a) || f.stood(&a[n-1])) && (n == len(b) || f.stood(&b[n-1]))) {
		n--
	}
	x, y := last(a), last(b)
	packets = float64(y.received - x.received)
	if n == 0 { // nothing tells which packets are on their way: a session began, say
		return owed{mid: math.NaN()}, packets
	}
	sum := y.sum - x.sum + uint64(y.count-b[n-1].count)*uint64(w.ended) - uint64(x.count-a[n-1].count)*uint64(w.began)
	o.mid = float64(int64(sum))
	o.low, o.high = o.mid, o.mid
	began, ended := f.ages(a[n-1:], w.began), f.ages(b[n-1:], w.ended)
	o.add(&began, 1)
	o.add(&ended, -1)
	return o, packets
}

// ages returns the ages at a time of the packets of the last one of some levels beyond the
// first one. Where a loss is unlikely, they are like delays.
func (f *flow) ages(levels []level, now int64) (o owed) {
	same, first, known := true, last(levels).first, 0.0
	for i := len(levels) - 1; i > 0; i-- {
		l, below := &levels[i], &levels[i-1]
		n := l.count - below.count
		if same = same || f.stood(l); same {
			first = l.first
		}
		if same && l.known {
			known += float64(int64(uint64(n)*uint64(now) - l.stamps))
			continue
		}
		same = false // some may have come, and others been sent since
		o.packets += float64(n)
		o.low += float64(n) * float64(now-first)
		o.high += float64(n) * float64(now-below.last)
	}
	half := (o.high - o.low) / 2
	if o.mid, o.variance = o.low+half, half*half; f.share*float64(now-levels[0].last) < unlikely*f.mean {
		o.mid = o.low + min(half, o.packets*(f.mean+f.variance/f.mean)/2)
		o.variance = o.packets * f.clump * (f.mean*f.mean/4 + max(f.variance, f.mean*f.standing))
	}
	o.low, o.high, o.mid = o.low+known, o.high+known, o.mid+known
	return o
}
