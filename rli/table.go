package rli

import "github.com/hoplag/hoplag/hashing"

// A table holds the records of flows: open addressing with linear probing in
// arrays that never grow. A flow's search begins at the low bits of its hash
// and goes by tags, a byte for each record, which are near at hand where the
// records are not.
type table struct {
	records    []record
	tags       []uint8  // of the same places; 0 where there is no record
	histograms []uint32 // of the same places
	buckets    int
	mask       uint64
	used       int
	limit      int
	touched    uint64 // keeps the compiler from leaving reads out
}

func newTable(c *Config) table {
	n := c.slots()
	return table{
		records:    make([]record, n),
		tags:       make([]uint8, n),
		histograms: make([]uint32, n*c.Buckets),
		buckets:    c.Buckets,
		mask:       uint64(n - 1),
		limit:      c.Flows,
	}
}

// tag is never 0. It is made of all of the flow's bits, as the sampled flows
// have the high ones in common and the neighbours in the table the low ones.
func tag(f hashing.Flow) uint8 {
	return uint8(uint64(f)*0x9e3779b97f4a7c15>>56) | 1
}

// find returns the place of a flow, or the empty one where its record would
// be.
func (t *table) find(f hashing.Flow) int {
	i := guess(t.tags, f, uint64(f))
	for t.tags[i] != 0 && t.records[i].flow != f {
		i = guess(t.tags, f, i+1)
	}
	return int(i)
}

// guess returns the first place from i on that is empty or has the flow's tag.
func guess(tags []uint8, f hashing.Flow, i uint64) uint64 {
	tag, mask := tag(f), uint64(len(tags)-1)
	i &= mask
	for tags[i] != tag && tags[i] != 0 {
		i = (i + 1) & mask
	}
	return i
}

// locate guesses the places of the packets' records, and reads there, so that
// memory brings them all together before they are needed one after the other.
func (t *table) locate(packets []held) {
	tags := t.tags
	records := t.records[:len(tags)]
	sum := uint64(0)
	for i := range packets {
		h := &packets[i]
		at := guess(tags, h.flow, uint64(h.flow))
		h.at = int32(at)
		sum += records[at].count
	}
	t.touched = sum
}

// claim takes the empty place i for a new flow, unless the table is full.
func (t *table) claim(i int, f hashing.Flow) bool {
	if t.used == t.limit {
		return false
	}
	t.used++
	t.tags[i] = tag(f)
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
		if t.tags[at] == 0 {
			break
		}
		home := uint64(t.records[at].flow) & t.mask
		if (at-home)&t.mask < (at-gap)&t.mask {
			continue
		}
		t.records[gap], t.tags[gap] = t.records[at], t.tags[at]
		copy(t.histogram(int(gap)), t.histogram(int(at)))
		gap = at
	}
	t.records[gap], t.tags[gap] = record{}, 0
	clear(t.histogram(int(gap)))
}

func (t *table) reset() {
	clear(t.records)
	clear(t.tags)
	clear(t.histograms)
	t.used = 0
}
