package areas

// A calmEvent is what passed a cell in an interval at both ends of which its level was the anchor's. As many packets
// were sent as received. Levels below the anchor's may return to it otherwise, so after one no event is calm.
type calmEvent struct {
	cell, packets  uint32
	sentSum, delay uint64
}

// A calmFunc takes what passed cells in an interval at both ends of which they were settled at one level.
type calmFunc = func(cut int, all []calmEvent)

// calmly calls f for the calm events after a cut, cut by cut.
func (a *Areas) calmly(after int, f calmFunc) {
	for cut := after + 1; cut <= a.latest(); cut++ {
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

// A calmOrder has the calm events of each cell in order of time.
type calmOrder struct {
	all  []struct{ at, cut uint32 }
	next []uint32 // by cell: the first of its events that is left
}

// order takes the calm events after cut from and up to cut to.
func (o *calmOrder) order(a *Areas, from, to int) {
	some, sum := a.calm[a.calmTo[from]:a.calmTo[to]], uint32(0)
	o.next, o.all = zeros(o.next, len(a.places)), resize(o.all, len(some))
	for i := range some {
		o.next[some[i].cell]++
	}
	for cell, n := range o.next {
		o.next[cell], sum = sum, sum+n
	}
	for at, cut := a.calmTo[from], from+1; cut <= to; cut++ {
		for ; at < a.calmTo[cut]; at++ {
			x := &o.next[a.calm[at].cell]
			o.all[*x].at, o.all[*x].cut = uint32(at), uint32(cut)
			*x++
		}
	}
	copy(o.next[1:], o.next) // each is where the next cell's begin
	o.next[0] = 0
}

// take calls f for those events of a cell that are left up to a cut.
func (o *calmOrder) take(a *Areas, cell, cut int, f calmFunc) {
	for ; int(o.next[cell]) < len(o.all); o.next[cell]++ {
		x := o.all[o.next[cell]]
		if int(a.calm[x.at].cell) != cell || int(x.cut) > cut {
			return
		}
		f(int(x.cut), a.calm[x.at:x.at+1])
	}
}
