package areas

// A calmEvent is what passed a cell in an interval at both ends of which its level was the anchor's. As many packets
// were sent as received. Levels below the anchor's may return to it otherwise, so after one no event is calm.
type calmEvent struct {
	cell, packets  uint32
	sentSum, delay uint64
}

// calmly calls f for the calm events after a cut and up to another, cut by cut.
func (a *Areas) calmly(after, to int, f func(cut int, all []calmEvent)) {
	a.judge()
	for cut := after + 1; cut <= to; cut++ {
		f(cut, a.calm[a.calmTo[cut-1]:a.calmTo[cut]])
	}
}

// calmGroups calls f for a sequence of events of each group, with the group's number.
func (a *Areas) calmGroups(all []calmEvent, f func(group int, all []calmEvent)) {
	for len(all) > 0 {
		g, n := int(a.groupOf(int(all[0].cell))), 1
		for first, size := uint32(a.groups[g]), uint32(a.size(g)); n < len(all) && all[n].cell-first < size; {
			n++
		}
		f(g, all[:n])
		all = all[n:]
	}
}

// knows reports whether it is known that a calm cell lost nothing in an interval, as it would be after a loss.
func (a *Areas) knows(cell uint32, cut int) bool {
	if i := a.places[cell].state; i > 0 {
		return cut <= int(a.cells[i-1].aged)-a.before
	}
	return cut <= a.lastAged
}

// forgetCalm forgets the calm events before cut oldest.
func (a *Areas) forgetCalm(oldest int) {
	n, gone, room := len(a.calm), a.calmTo[oldest], a.calm[:0]
	if cap(room) > 2*n { // reports that waited had more
		room = make([]calmEvent, 0, n+n/8)
	}
	a.calm, a.calmTo = append(room, a.calm[gone:]...), append(a.calmTo[:0], a.calmTo[oldest:]...)
	for k := range a.calmTo {
		a.calmTo[k] -= gone
	}
}
