package rli

import "github.com/hoplag/hoplag/hashing"

// When all records are in use, a new flow's packet may take the place of
// another flow's record. Of the records in its group of the table, it may
// replace the one of least weight, with probability 1/(weight+1). A record
// weighs as much as it has packets, and half as much for each time that it has
// been silent for as long as it lived, a second at least. So a flow gets a
// record after about as many packets as the lightest record weighs. A flood of
// flows of one packet each costs only records that are as light, one place in
// a group, and cannot keep others out for good. This is the random admission
// policy (Basat et al., Randomized Admission Policy for Efficient Top-k,
// Frequency, and Heavy Hitters, 2017) in each group.

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

// evict makes room for a packet's record, if the draw says so, and puts the
// record's place into h.
func (r *Receiver) evict(h *held) bool {
	place, weight := r.flows.lightest(h.flow, r.gap)
	r.draws++
	if hashing.Sampled(uint64(hashing.Word(r.config.Identity, r.draws)), hashing.Threshold(1/(float64(weight)+1))) == 0 {
		return false
	}
	r.counts.Evicted += r.flows.records[place].count()
	r.flows.remove(place)
	h.at = int32(r.flows.find(h.flow))
	return r.flows.claim(int(h.at), h.flow)
}
