// Package flows measures the delay of each flow, from three counters a flow at each of two points and no state per
// packet. Each point fills a [Table] between two cuts of the clock, and a [Meter] compares the tables. Flows must
// fit: where they do not, package lds has a sketch in which they share counters.
package flows

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/wire"
)

// A Table has the packets of flows at a point, each flow in cells of its own. Where there are more flows than it has room for, it keeps
// those whose places are within a limit: nearly the same ones at both points. It is for one goroutine at a time.
type Table struct {
	rows  map[hashing.Flow]*row
	most  int
	limit uint64
}

// A row is the cells of a flow. A packet's hash chooses one, so that a loss spoils one of them; the last
// one is seldom chosen, for flows that always have packets on their way.
type row [cells]cell

type cell struct {
	sum   uint64 // of timestamps
	tally uint64 // count, and above it the sum of digests
}

func (c *cell) count() uint64 { return c.tally & math.MaxUint32 }

const cells = 3

// cell returns the cell of a packet.
func (r *row) cell(p hashing.Packet) *cell {
	switch n := p % 64; {
	case n == 0:
		return &r[2]
	case n < 12:
		return &r[1]
	}
	return &r[0]
}

// NewTable returns an empty table with room for so many flows.
func NewTable(most int) *Table {
	return &Table{rows: map[hashing.Flow]*row{}, most: most, limit: math.MaxUint64}
}

// Reset empties the table, and gives it room for so many flows.
func (t *Table) Reset(most int) {
	clear(t.rows)
	t.most, t.limit = most, math.MaxUint64
}

// Len returns the number of flows.
func (t *Table) Len() int { return len(t.rows) }

const placeSeed = 0x9e3779b97f4a7c15

// place returns a number by which flows are chosen, whatever their names.
func place(f hashing.Flow) uint64 { return uint64(hashing.Word(placeSeed, uint64(f))) }

// row returns the row of a flow, or nil if there is no room.
func (t *Table) row(f hashing.Flow) *row {
	if r := t.rows[f]; r != nil {
		return r
	}
	if place(f) > t.limit || t.most == 0 {
		return nil
	}
	t.rows[f] = new(row)
	for len(t.rows) > t.most {
		t.narrow(t.limit / 2)
	}
	return t.rows[f]
}

func (t *Table) narrow(limit uint64) {
	if limit < t.limit {
		t.limit = limit
		maps.DeleteFunc(t.rows, func(f hashing.Flow, _ *row) bool { return place(f) > limit })
	}
}

// Update counts a packet of a flow, which passed at a time in nanoseconds.
func (t *Table) Update(f hashing.Flow, p hashing.Packet, time int64) {
	if r := t.row(f); r != nil {
		c := r.cell(p)
		c.sum += uint64(time)
		c.tally += uint64(p>>32)<<32 + 1
	}
}

// Merge adds what another table counted at the same point.
func (t *Table) Merge(o *Table) {
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

// Shift adds so many nanoseconds to all times.
func (t *Table) Shift(by int64) {
	for _, r := range t.rows {
		for i := range r {
			r[i].sum += r[i].count() * uint64(by)
		}
	}
}

// Append encodes the table and appends it to b, with times since begin.
func (t *Table) Append(b []byte, begin int64) []byte {
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

// Decode decodes a table that Append encoded with the same begin. What it takes is in proportion to the bytes. The
// error wraps [estimate.ErrEncoding].
func Decode(data []byte, begin int64) (*Table, error) {
	r, t := wire.NewReader(data), NewTable(math.MaxInt)
	last, bad := hashing.Flow(0), false
	for t.limit = r.Uint64(); r.Len() > 0 && !bad; {
		f := hashing.Flow(r.Uint64())
		bad = f <= last || place(f) > t.limit
		last, t.rows[f] = f, new(row)
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
