package rli

import (
	"math/bits"

	"github.com/hoplag/hoplag/hashing"
)

// A table holds the records of flows in groups of eight. A flow's search begins at a group drawn by its hash and a
// secret, so that nobody can choose flows that begin at one, and goes on while groups are full. It compares tags.
type table struct {
	records     []record
	tags        []uint64 // of each group, the first record's in the lowest byte; 0 where there is no record
	mask        uint64   // of groups
	secret      [2]uint64
	used, limit int
	touched     uint64 // keeps the compiler from leaving reads out
}

const (
	group = 8
	lows  = 0x0101010101010101 // the lowest bit of every tag
	highs = 0x8080808080808080 // the highest, which is set where there is a record
)

func newTable(c *Config, secret [2]uint64) table {
	n, secret := c.slots(), [2]uint64{secret[0], secret[1] | 1}
	return table{records: make([]record, n), tags: make([]uint64, n/group), mask: uint64(n/group - 1), secret: secret, limit: c.Flows}
}

func (t *table) mix(f hashing.Flow) uint64 {
	high, low := bits.Mul64(uint64(f)^t.secret[0], t.secret[1])
	return high ^ low
}

// tag returns the tag of a mixed hash, never 0, from the high bits: neighbours share the low ones.
func tag(mixed uint64) uint64 { return mixed>>57 | 0x80 }

// matches returns the highest bits of tags in a group that match a hash, and perhaps of one behind a match.
func matches(tags, mixed uint64) uint64 {
	x := tags ^ tag(mixed)*lows
	return (x - lows) &^ x & highs
}

// first returns which tag of a group the lowest set bit belongs to, or the last.
func first(highest uint64) uint64 { return uint64(bits.TrailingZeros64(highest|1<<63)) / group }

// find returns the place of a flow, or the empty one where its record would be.
func (t *table) find(f hashing.Flow) int {
	mixed := t.mix(f)
	for g := mixed & t.mask; ; g = (g + 1) & t.mask {
		tags := t.tags[g]
		for m := matches(tags, mixed); m != 0; m &= m - 1 {
			if i := g*group + first(m); t.records[i].flow == f {
				return int(i)
			}
		}
		if empty := ^tags & highs; empty != 0 {
			// From another place in each group, or a cache would hold few of them.
			from := mixed >> 32
			empty = bits.RotateLeft64(empty, -int(from%group*8))
			return int(g*group + (first(empty)+from)%group)
		}
	}
}

// guess returns where the record of a flow should be, without looking.
func (t *table) guess(mixed uint64) int32 {
	g := mixed & t.mask
	return int32(g*group + first(matches(t.tags[g], mixed)))
}

// fetch reads where the packets' records should be, so that many reads are under way.
func (t *table) fetch(packets []held) {
	records, sum := t.records, uint64(0)
	for i := range packets {
		sum += records[packets[i].at].tally
	}
	t.touched = sum
}

func (t *table) claim(i int, f hashing.Flow) bool {
	if t.used == t.limit {
		return false
	}
	t.used++
	t.mark(i, tag(t.mix(f)))
	t.records[i].flow = f
	return true
}

func (t *table) mark(i int, tag uint64) {
	shift, tags := i%group*8, &t.tags[i/group]
	*tags = *tags&^(0xff<<shift) | tag<<shift
}

// release empties place i. Flows whose search went past a full group need it filled again at once: see lightest.
func (t *table) release(i int) {
	t.used--
	t.records[i] = record{}
	t.mark(i, 0)
}

func (t *table) reset() {
	clear(t.records)
	clear(t.tags)
	t.used = 0
}

// weight is the number of packets, halved whenever the record was silent as long as it lived, 16 stretches at least.
func (r *record) weight(now uint32) uint64 {
	life := max(int32(r.last-r.first), 16)
	return r.count() >> min(max(int32(now-r.last), 0)/life, 63)
}

// lightest returns the record of least weight, the longest silent of equals, in the first group of the search
// for f, or the next that has records and is not full. It is -1 if there is none.
func (t *table) lightest(f hashing.Flow, now uint32) (place int, weight uint64) {
	place = -1
	begin := t.mix(f) & t.mask
	for step := uint64(0); step <= t.mask && place < 0; step++ {
		g := (begin + step) & t.mask
		if step > 0 && ^t.tags[g]&highs == 0 {
			continue
		}
		for i := int(g * group); i < int(g*group+group); i++ {
			r := &t.records[i]
			if w := r.weight(now); r.count() > 0 && (place < 0 || w < weight || w == weight && int32(r.last-t.records[place].last) < 0) {
				place, weight = i, w
			}
		}
	}
	return place, weight
}

// evict makes room for flow f where all are in use, with probability 1/(weight+1) for the lightest of its group (random
// admission, Basat et al., 2017): a flood of small flows keeps nobody out for good. It returns the place, or -1.
func (r *Receiver) evict(f hashing.Flow) int {
	place, weight := r.flows.lightest(f, r.stretch)
	r.draws++
	if place < 0 || hashing.Sampled(uint64(hashing.Word(r.config.Identity, r.draws)), hashing.Threshold(1/(float64(weight)+1))) == 0 {
		return -1
	}
	r.counts.Evicted += r.flows.records[place].count()
	r.flows.release(place)
	place = r.flows.find(f)
	r.flows.claim(place, f)
	return place
}
