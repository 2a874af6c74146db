package rli

import "github.com/hoplag/hoplag/hashing"

// A table holds the records of flows: open addressing with linear probing in
// an array that never grows. A flow's search begins at the low bits of its
// hash, of which sampling uses the high ones.
type table struct {
	records    []record
	histograms []uint32 // of the same places
	buckets    int
	mask       uint64
	used       int
	limit      int
	touched    uint64 // keeps the compiler from leaving touch out
}

func newTable(c *Config) table {
	n := c.slots()
	return table{
		records:    make([]record, n),
		histograms: make([]uint32, n*c.Buckets),
		buckets:    c.Buckets,
		mask:       uint64(n - 1),
		limit:      c.Flows,
	}
}

// find returns the place of a flow, or the empty one where its record would
// be.
func (t *table) find(f hashing.Flow) int {
	i := uint64(f) & t.mask
	for t.records[i].count != 0 && t.records[i].flow != f {
		i = (i + 1) & t.mask
	}
	return int(i)
}

// touch reads where the packets' records are likely to be, so that they are
// in the cache when they are searched one after the other.
func (t *table) touch(packets []held) {
	sum := uint64(0)
	for i := range packets {
		sum += t.records[uint64(packets[i].flow)&t.mask].count
	}
	t.touched = sum
}

// claim takes the empty place i for a new flow, unless the table is full.
func (t *table) claim(i int, f hashing.Flow) bool {
	if t.used == t.limit {
		return false
	}
	t.used++
	t.records[i].flow = f
	return true
}

// histogram is that of the record at place i.
func (t *table) histogram(i int) []uint32 {
	return t.histograms[i*t.buckets : (i+1)*t.buckets]
}

// remove empties place i and closes the gap, so that every record stays
// within reach of its search: a later one moves into the gap unless its
// search begins behind it.
func (t *table) remove(i int) {
	t.used--
	gap, at := uint64(i), uint64(i)
	for {
		at = (at + 1) & t.mask
		r := &t.records[at]
		if r.count == 0 {
			break
		}
		home := uint64(r.flow) & t.mask
		if (at-home)&t.mask < (at-gap)&t.mask {
			continue
		}
		t.records[gap] = *r
		copy(t.histogram(int(gap)), t.histogram(int(at)))
		gap = at
	}
	t.records[gap] = record{}
	clear(t.histogram(int(gap)))
}

func (t *table) reset() {
	clear(t.records)
	clear(t.histograms)
	t.used = 0
}
