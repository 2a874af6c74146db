package areas

import "math"

// losses says how many packets were lost and when, as far as all cells together tell.
type losses struct {
	areas    *Areas
	from, to int // the window: cuts from+1 to to

	sent, lost []float64 // by cut: packets sent that are accounted for, and those of them that were lost
	total      float64   // lost, of all that are accounted for lately
	of         float64
	share      float64 // of packets lost
	doubt      float64 // its relative error
	noise      float64 // mean square of what was sent in a cut and has not come, less what was lost
	bursty     bool    // burst is greater than chance makes it
	burst      float64 // how many packets are lost together, by how much losses vary from cut to cut
	even       float64 // shape of the gamma distribution of losses in a cut
	bursts     float64 // in which packets were lost, as far as is known
	longest    float64 // delay of a packet
	crowded    bool    // none is known to be lost, but more packets are outstanding than a patience ago
	late       int     // spans in which packets came that had been taken for lost
	latest     float64 // greatest delay of these
	groups     []groupLosses
	usual      []usualCut // by cut
	after      []float64  // for freeFor
}

// A usualCut is what all cells tell of a cut: packets that came in spans that lost none, and the time that these took.
type usualCut struct{ packets, time float64 }

// groupLosses is what the cells of a group tell of losses.
type groupLosses struct {
	covered     float64 // share of the packets of a patience ago that are accounted for
	cuts        []cutLosses
	hazards     []float64 // packets that a cell loses up to each cut, on average
	stays       []float64 // chance that it loses nothing in a cut, by cut; the first is the average of all
	chances     []chances // by two cuts: the latest asked for of those that share a place
	lengths     []float64 // how many exact spans have so many cuts
	wait, waits float64   // cuts until a cell is empty, on average, and the mean of its square
}

// cutLosses is what the cells of a group tell of losses in a cut.
type cutLosses struct {
	all, known, lost float64 // packets sent; of these, accounted for; of these, lost
	unsettled        float64 // cells that were not at its end
	others           float64 // lost beside, which were taken out, less those that came after all
}

// observe takes what all spans tell of losses.
func (l *losses) observe(a *Areas, from, to int) {
	cuts := a.latest() + 1
	l.areas, l.from, l.to, l.longest, l.late, l.latest = a, from, to, 0, 0, 0
	a.joined[1] = joiners{}
	l.sent, l.lost, l.usual = zeros(l.sent, cuts), zeros(l.lost, cuts), zeros(l.usual, cuts)
	l.groups = resize(l.groups, len(a.groups)-1)
	for g := range l.groups {
		of := &l.groups[g]
		of.cuts, of.lengths = zeros(of.cuts, cuts), zeros(of.lengths, cuts)
	}
	a.calmly(0, a.latest(), l.calm)
	a.walk(0, a.latest(), l.add)
	for _, u := range l.usual[1:] {
		l.usual[0].add(u.packets, u.time)
	}
	for i := range a.taken {
		x := &a.taken[i]
		c := &l.groups[a.groupOf(x.Cell)].cuts[x.Cut-a.before]
		c.send(1, true)
		c.others++
	}
	if l.believed() {
		l.longest = max(l.longest, l.latest)
	}
	l.pool()
	if l.known(); l.bursty { // a third round would tell no more
		for _, of := range l.groups {
			for k := range of.cuts {
				of.cuts[k].lost = 0
			}
		}
		a.walk(0, a.latest(), l.place)
		clear(l.sent)
		clear(l.lost)
		l.pool()
		l.known()
	}
	l.disperse()
}

// place spreads the losses of a span over its cuts once more: more of them to cuts in which other cells lost more.
func (l *losses) place(x *span) {
	if !x.known || x.lost == 0 || x.late > 0 {
		return
	}
	cuts, before := l.groups[x.group].cuts, x.gone
	all := before
	for k, out := range x.out {
		all += l.areas.rate(x.from+1+k) * float64(out)
	}
	each := float64(x.lost) / max(all, 1e-300)
	cuts[0].lost += each * before
	for k, out := range x.out {
		cuts[x.from+1+k].lost += each * l.areas.rate(x.from+1+k) * float64(out)
	}
}

// known adds up what is known of losses, and by how much they vary from cut to cut, now and lately.
func (l *losses) known() {
	past := &l.areas.past
	l.total, l.of, l.share = max(0, past.lost+sum(l.lost)), past.sent+sum(l.sent), 0
	if l.of > 0 && l.total >= 0.5 {
		l.share = l.total / l.of
	}
	n, varied, squares := past.cuts, past.varied, 0.0
	for k := 1; k < len(l.sent); k++ {
		if l.sent[k] > 0 {
			n++
			varied += sq(l.lost[k] - l.share*l.sent[k])
		}
		squares += sq(l.lost[k])
	}
	l.bursts = max(0, min(sum(l.lost), sq(sum(l.lost))/max(squares, 1e-9)))
	l.burst, l.even, l.bursty = 1, 1, false
	if n > 4 && l.share > 0 {
		expected, chance := l.share*l.of, math.Sqrt(2/n)
		l.burst = max(1, varied/expected)
		l.even = expected / n / max(chance, l.burst-1)
		l.bursty = l.burst-1 > chance
	}
	l.crowded = l.share == 0 && l.crowds()
}

// crowds reports whether more packets are outstanding at the latest cut than at any that is a patience old, by more than
// chance and than those differ: some may have been lost lately. Groups have the same packets.
func (l *losses) crowds() bool {
	on, least, most, last := 0, math.MaxInt, math.MinInt, l.areas.latest()
	for k := 1; k <= last; k++ {
		if on += l.areas.net[k]; k < last && k <= max(2, l.areas.lastAged) {
			least, most = min(least, on), max(most, on)
		}
	}
	beyond := float64(on) - float64(most)
	return last > 1 && beyond > max(float64(most)-float64(least), 3*math.Sqrt(float64(max(0, on)*len(l.groups))))
}

// believed reports whether packets came late. That may only seem so in one or two cells, if they hold copies of a
// packet of which one is always on its way.
func (l *losses) believed() bool { return l.late > 2 }

// disperse finds how sure the share of losses is, of which more come in a cut than independent ones would, and
// how often cells lose packets.
func (l *losses) disperse() {
	l.doubt = math.Sqrt(l.burst / max(1, l.total))
	var noise moment
	for k, sent := range l.sent {
		if sent > 0 {
			noise.add(1, float64(l.areas.net[k])-l.lost[k]*l.all(k)/sent)
		}
	}
	l.noise = noise.squares / max(1, noise.n)
	for g := range l.groups {
		of := &l.groups[g]
		of.hazards, of.chances = resize(of.hazards, len(of.cuts)), zeros(of.chances, places*len(of.cuts))
		of.hazards[0], of.stays = 0, resize(of.stays, len(of.cuts))
		for k := 1; k < len(of.cuts); k++ {
			of.hazards[k] = of.hazards[k-1] + max(0, l.soon(k)*of.cuts[k].all-of.cuts[k].others)/float64(l.areas.size(g))
			of.stays[k] = math.Exp(of.hazards[k-1] - of.hazards[k])
		}
		of.stays[0] = math.Exp(l.hazardUp(g, -1))
		l.awaits(g)
	}
}

// calm takes intervals in which nothing was lost or on its way at the ends.
func (l *losses) calm(group, cut int, all []calmEvent) {
	a, younger, old := l.areas, l.areas.younger, cut <= l.areas.lastAged
	packets, fresh, time, longest := 0.0, 0.0, 0.0, math.Inf(-1)
	for i := range all {
		e := &all[i]
		n := float64(e.packets)
		packets += n
		time += e.area
		if e.packets <= 2 {
			if mean := math.Abs(e.area) / n; mean > longest { // max is slow
				longest = mean
			}
		}
		if !old || younger[e.cell/64]>>(e.cell%64)&1 != 0 && cut > int(a.cells[a.places[e.cell]-1].aged)-a.before {
			fresh += n
		}
	}
	of := &l.groups[group].cuts[cut]
	of.all += packets
	of.known += packets - fresh
	l.usual[cut].add(packets, time)
	l.took(longest)
	if cut > l.from {
		a.joined[1].add(joiners{packets, 0, packets, 0}, 1)
	}
}

// usually returns the time that a packet took that came in a cut; but few tell little of others.
func (l *losses) usually(cut int) float64 {
	const few = 10
	u, all := &l.usual[cut], &l.usual[0] // nothing came in the first one
	return (u.time + max(0, few-u.packets)*all.time/max(all.packets, 1)) / max(u.packets, few)
}

// uneven returns the variance of the times that packets take between the cuts in which they came.
func (l *losses) uneven(from, to int) float64 {
	m := moment{n: math.SmallestNonzeroFloat64} // so that no packets vary by 0
	for k := from + 1; k <= to; k++ {
		m.add(l.usual[k].packets, l.usually(k))
	}
	return m.spread()
}

func (u *usualCut) add(packets, time float64) {
	u.packets += packets
	u.time += time
}

// took takes a delay, or by how much a packet came too early, or the mean of a pair, of which one took that or more:
// packets whose copies pass both points are never alone. Where all are 0, packets take a nanosecond at most.
func (l *losses) took(delay float64) {
	if delay >= l.longest {
		l.longest = max(delay, 1)
	}
}

// add takes a span. What it lost is spread evenly over what was sent in it.
func (l *losses) add(x *span) {
	of, gone := &l.groups[x.group], 0.0
	if x.known && x.late == 0 {
		gone = float64(x.lost) / max(1, x.before+float64(x.sent))
	}
	if n := x.shown(); x.to > l.from && (!x.open || n > 0) {
		j, came := &l.areas.joined[1], x.before+float64(x.received)
		if j.add(joiners{came, n, 0, 0}, 1); !x.open {
			j.add(joiners{0, 0, came, n}, 1)
		}
	}
	if x.late > 0 && x.before == 0 {
		l.late++
		l.latest = max(l.latest, x.owed/float64(x.late)+l.areas.length(x.to))
	}
	if x.exact && x.late == 0 {
		if x.to > x.from+1 || x.before > 0 {
			of.lengths[x.to-x.from]++
		}
		mean := sum(x.area) / max(1, float64(x.received))
		if x.before == 0 && x.sent == x.received && x.sent > 0 && x.sent <= 2 {
			l.took(math.Abs(mean))
		}
		if !x.alone() {
			l.longest = l.areas.standing(x, l.longest)
		}
		for k, in := range x.in {
			l.usual[x.from+1+k].add(float64(in), mean*float64(in))
		}
	}
	of.cuts[x.to].others -= float64(x.late)
	of.cuts[x.to].unsettled-- // if it is open, nothing was sent since
	of.cuts[0].lost += gone * x.before
	if of.cuts[0].send(x.before, x.known); x.from == 0 && (x.before > 0 || x.young) {
		of.cuts[0].unsettled++
	}
	for k, out := range x.out {
		c := &of.cuts[x.from+1+k]
		c.unsettled++
		c.lost += gone * float64(out)
		c.send(float64(out), x.known)
	}
}

// send adds packets that were sent, and may be accounted for.
func (c *cutLosses) send(n float64, known bool) {
	if c.all += n; known {
		c.known += n
	}
}

// digestsTell is from how many bits on two levels are not equal by chance, of all that are compared. Where they
// are narrower, three and half of all have to be.
const digestsTell = 24

// standing returns how long the same packets, which came later, were outstanding, if longer than least.
func (a *Areas) standing(x *span, least float64) float64 {
	wide, last := a.mask>>(32+digestsTell-1) != 0, len(x.levels)-1
	for i, level := range x.levels {
		if a.between(x.from+1+i, x.from+1+last) <= least {
			break
		}
		equal := 0
		for j := i; j <= last && x.on[j] >= x.on[i] && x.on[i] > 0; j++ {
			if x.levels[j] == level {
				equal++
				if wide || equal > 2 && 2*equal > j-i {
					least = max(least, a.between(x.from+1+i, x.from+1+j))
				}
			}
		}
	}
	return least
}

// pool adds up the losses of the groups that account for most packets. In a group whose cells seldom settle, those that do are a choice.
func (l *losses) pool() {
	const enough, mostOfAll = 100, 0.8 // packets, for which a group accounts if its cells settle often
	best, most := -1.0, 0              // the group that accounts for the greatest share of its packets
	for g := range l.groups {
		all, known := 0.0, 0.0
		for k := 0; k < len(l.sent) && l.areas.old(k); k++ {
			all += l.groups[g].cuts[k].all
			known += l.groups[g].cuts[k].known
		}
		if l.groups[g].covered = known / max(all, 1); l.groups[g].covered > best && known > enough {
			best, most = l.groups[g].covered, g
		}
	}
	for g := range l.groups {
		for k := 0; k < len(l.sent) && l.areas.old(k) && (l.groups[g].covered >= mostOfAll || g == most); k++ {
			c := &l.groups[g].cuts[k]
			l.sent[k] += c.known
			l.lost[k] += c.lost + c.others
		}
	}
}

func sum(x []float64) (s float64) {
	for _, v := range x {
		s += v
	}
	return s
}

// rate returns the share of the packets sent in a cut that was lost, as is expected from what is known of it, if the
// shares of all cuts have a gamma distribution.
func (l *losses) rate(k int) float64 {
	if l.share == 0 || k == 0 || k >= len(l.sent) {
		return l.share
	}
	return min(max(0, l.lost[k]+l.even)/(l.sent[k]+l.even/l.share), 1)
}

// all returns how many packets were sent in a cut.
func (l *losses) all(k int) (n float64) {
	for g := range l.groups {
		n += l.groups[g].cuts[k].all
	}
	return n
}

// soon is rate where it is not known yet what was lost in a cut, too: what was sent and has not come tells it,
// by how much better that told it in other cuts than their average does.
func (l *losses) soon(k int) float64 {
	all := l.all(k)
	if l.sent[k] > 0 || all == 0 || l.share == 0 || len(l.areas.taken) > 0 {
		return l.rate(k)
	}
	varies := sq(l.share*all) / l.even
	return l.share + (max(0, float64(l.areas.net[k]))/all-l.share)*varies/(varies+l.noise)
}

// leastFree is the least chance that is told from none: a span stands for no more than one over it.
const leastFree = 1.0 / (1 << 12)

// coming returns how long packets that count as lost were on their way within the window if they still come.
func (l *losses) coming() float64 {
	late := float64(max(l.areas.told, 0)) * l.areas.between(l.from, l.to)
	for k := l.from + 1; k <= l.to; k++ {
		age := l.age(k)
		for g := range l.groups {
			late += l.rate(k) * l.groups[g].cuts[k].all * age
		}
	}
	return late
}

// age returns how long a packet lost in cut k ages within the window.
func (l *losses) age(k int) float64 {
	if k > l.from {
		return l.areas.between(k, l.to) + l.areas.length(k)/2
	}
	return l.areas.between(l.from, l.to)
}

func sq(x float64) float64 { return x * x }
