package areas

// A calmEvent is what passed a cell in an interval at both ends of which its level was the anchor's. As many packets
// were sent as received. Levels below the anchor's may return to it otherwise, so after one no event is calm.
type calmEvent struct {
	cell, packets uint32
	came          uint64  // sum of the times of reception
	area          float64 // by the mean delay that was known, about which narrow sums are unwrapped
}

// calmly calls f for the calm events after a cut and up to another, cut by cut, with those of one group at a time.
func (a *Areas) calmly(after, to int, f func(group, cut int, all []calmEvent)) {
	a.judge()
	for cut := after + 1; cut <= to; cut++ {
		for all := a.calm[a.calmTo[cut-1]:a.calmTo[cut]]; len(all) > 0; {
			g, n := int(a.groupOf(int(all[0].cell))), 1
			for first, size := uint32(a.groups[g]), uint32(a.size(g)); n < len(all) && all[n].cell-first < size; {
				n++
			}
			f(g, cut, all[:n])
			all = all[n:]
		}
	}
}
