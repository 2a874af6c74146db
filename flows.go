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
	all  map[hashing.Flow]*flow
	full int // packets of flows that there was no room for, in the report
}

// A flow is one of them, and what passed of it in the report.
type flow struct {
	cells          [flowCells]cell
	sent, received uint64
	idle           int // reports without a packet

	delays  estimate.Cells // of spans that ended in the report
	doubt   float64        // what losses leave open of their sum, ns
	settled uint64         // packets in them
}

// A cell follows its level: how many packets were sent and have not come, and their
// digest. Between two cuts of one level, all that came is all that was sent, and the
// stamps differ by the delays. A level that is there for good is of packets that are
// lost: what they add is known but for when they were sent, within the span.
type cell struct {
	level, base flowCell // sums are since the latest settled cut
	at          int64    // when that was
	received    uint32   // since then

	mark         flowCell // the lowest level since then: others have packets on their way
	first, last  int64    // cuts at it, 0 if there is none
	markReceived uint32   // up to the first

	gone     int32 // packets that counted as lost last
	sent     int64 // when they were sent,
	sentHalf int64 // give or take
}

const (
	maxFlows  = 1 << 20 // bounds Config.Flows
	patience  = 10      // for how many cuts a level stays that is there for good
	idleFlows = 30      // for how many reports a flow is remembered without a packet
)

// compare takes what both points counted up to the end of a cut.
func (w *flows) compare(up, down *flowTable, cut, length int64) {
	limit := min(up.limit, down.limit)
	for _, t := range [2]*flowTable{up, down} {
		for f := range t.rows {
			if w.all[f] == nil && len(w.all) < up.most {
				w.all[f] = new(flow)
				for k := range w.all[f].cells {
					w.all[f].cells[k].at = cut * length
				}
			}
		}
	}
	var none flowRow
	for id, f := range w.all {
		if placeOf(id) > limit { // a point had no room for it
			delete(w.all, id)
			w.full++
			continue
		}
		sent, received := cmp.Or(up.rows[id], &none), cmp.Or(down.rows[id], &none)
		for k := range f.cells {
			f.sent += uint64(sent[k].count)
			f.received += uint64(received[k].count)
			f.cut(&f.cells[k], &sent[k], &received[k], cut, length)
		}
	}
}

// cut ends a cut for a cell.
func (f *flow) cut(c *cell, sent, received *flowCell, cut, length int64) {
	c.level.count += sent.count - received.count
	c.level.digest += sent.digest - received.digest
	c.level.sum += received.sum - sent.sum
	c.received += received.count
	switch now := (cut + 1) * length; {
	case c.level.same(&c.base):
		f.settle(c, c.level.sum, c.received, 0, now)
	case c.first != 0 && c.level.same(&c.mark):
		if c.last = cut; cut-c.first < patience {
			return
		}
		lost, then := int32(c.mark.count-c.base.count), (c.first+1)*length
		later, rest := c.level.sum-c.mark.sum, c.received-c.markReceived
		if c.lose(lost, then) {
			f.settle(c, c.mark.sum+uint64(int64(lost)*c.sent), c.markReceived, math.Abs(float64(lost))*float64(c.sentHalf), then)
		}
		f.settle(c, later, rest, 0, now)
		c.base = c.level
	case c.first == 0 || cut-c.last > patience || int32(c.level.count) <= int32(c.mark.count):
		c.mark, c.first, c.last, c.markReceived = c.level, cut, cut, c.received
	}
}

// lose takes so many packets as lost between the latest settled cut and a later one. If
// they are fewer than none, packets came that had counted as lost, and were sent when
// those were. It reports whether it is known when.
func (c *cell) lose(packets int32, until int64) bool {
	if packets >= 0 {
		c.gone, c.sent, c.sentHalf = packets, c.at+(until-c.at)/2, (until-c.at)/2
		return true
	}
	known := c.gone+packets >= 0 // or they were never sent
	c.gone = max(0, c.gone+packets)
	return known
}

// same compares levels but for sums.
func (c *flowCell) same(o *flowCell) bool { return c.count == o.count && c.digest == o.digest }

// settle ends a span of a cell: so many packets came, whose delays add up to a sum.
func (f *flow) settle(c *cell, sum uint64, packets uint32, doubt float64, at int64) {
	if packets > 0 {
		f.delays.Add(float64(int64(sum)), uint64(packets))
		f.settled += uint64(packets)
		f.doubt += doubt
	}
	c.level.sum, c.received, c.at, c.first = 0, 0, at, 0
}

// report ends a report: it returns the flows of which packets came, slowest first,
// and how many more there were.
func (w *flows) report() (known []FlowDelay, unknown int) {
	for id, f := range w.all {
		if f.settled > 0 {
			known = append(known, f.delay(id))
		} else if f.sent+f.received > 0 {
			unknown++
		}
		if f.idle++; f.sent+f.received > 0 {
			f.idle = 0
		}
		if f.idle > idleFlows {
			delete(w.all, id)
		}
		f.sent, f.received, f.settled, f.doubt, f.delays = 0, 0, 0, 0, estimate.Cells{}
	}
	unknown, w.full = unknown+w.full, 0
	slices.SortFunc(known, func(a, b FlowDelay) int {
		return cmp.Or(-cmp.Compare(a.Mean, b.Mean), cmp.Compare(a.Flow, b.Flow))
	})
	return known, unknown
}

// delay says what is known of a flow.
func (f *flow) delay(id hashing.Flow) FlowDelay {
	d := FlowDelay{Flow: id, Sent: f.sent, Received: f.received, Lost: max(f.sent, f.received) - f.received}
	of, _ := f.delays.Delay()
	d.Mean = of.Mean
	d.MeanInterval95 = estimate.Interval{Low: of.Mean, High: of.Mean, Confidence: sampling}
	if f.settled < f.received { // the rest are taken to be like these
		d.MeanInterval95 = estimate.StudentInterval(of, f.delays.DegreesOfFreedom(), sampling)
	}
	d.MeanInterval95.Low -= f.doubt / float64(f.settled)
	d.MeanInterval95.High += f.doubt / float64(f.settled)
	return d
}
