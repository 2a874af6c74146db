package rli

import "github.com/hoplag/hoplag/hashing"

// When all records are in use, a new flow's packet may take the place of the
// record of least weight in its group of the table, with probability
// 1/(weight+1): the random admission policy (Basat et al., 2017). A record
// weighs as much as it has packets, and half as much for each time that it has
// been silent for as long as it lived. So a flood of flows of one packet each
// costs only records that are as light, and cannot keep others out for good.

// minLife is the shortest time, in gaps between references, after which a
// silent record weighs half.
const minLife = 16

// weight returns the record's weight in a gap.
func (r *record) weight(gap uint32) uint64 {
	life := max(int32(r.last-r.first), minLife)
	return r.count() >> min(max(int32(gap-r.last), 0)/life, 63)
}

// lightest returns the record of least weight in the first group with records
// on the search path of f. Of equals it returns the one that has been silent
// longest.
func (t *table) lightest(f hashing.Flow, gap uint32) (place int, weight uint64) {
	g := t.mix(f) & t.mask
	for t.tags[g] == 0 {
		g = (g + 1) & t.mask
	}
	place = -1
	for i := int(g * group); i < int(g*group+group); i++ {
		r := &t.records[i]
		if t.tags[g]>>(i%group*8)&0x80 == 0 {
			continue
		}
		if w := r.weight(gap); place < 0 || w < weight || w == weight && int32(r.last-t.records[place].last) < 0 {
			place, weight = i, w
		}
	}
	return place, weight
}

// evict makes room for a record of flow f, if the draw says so, and returns its
// place, or -1.
func (r *Receiver) evict(f hashing.Flow) int {
	place, weight := r.flows.lightest(f, r.gap)
	r.draws++
	if hashing.Sampled(uint64(hashing.Word(r.config.Identity, r.draws)), hashing.Threshold(1/(float64(weight)+1))) == 0 {
		return -1
	}
	r.counts.Evicted += r.flows.records[place].count()
	r.flows.remove(place)
	place = r.flows.find(f)
	r.flows.claim(place, f)
	return place
}
