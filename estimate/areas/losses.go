package areas

import "math"

// losses says how many packets were lost and when, as far as all cells together tell.
type losses struct {
	areas *Areas
	from  int // the window: cuts from+1 to to
	to    int

	sent, lost []float64 // by cut: packets sent that are accounted for, and those of them that were lost
	total      float64   // lost, of all that are accounted for lately
	of         float64
	share      float64 // of packets lost
	doubt      float64 // its relative error
	bursts     float64 // in which packets were lost, as far as is known
	longest    float64 // delay of a packet
	crowded    bool    // none is known to be lost, but more packets are outstanding than ever before
	late       int     // spans in which packets came that had been taken for lost
	latest     float64 // greatest delay of these
	groups     []groupLosses
	usual      []usualCut // by cut
	after      []float64  // for freeFor
}

// A usualCut is what all cells tell of a cut: packets that came in spans that lost none, and the time that these
// took; packets sent in spans of this cut alone, and those of them that were lost.
type usualCut struct{ packets, time, sent, lost float64 }

// groupLosses is what the cells of a group tell of losses.
type groupLosses struct {
	covered     float64 // share of the packets of a patience ago that are accounted for
	cuts        []cutLosses
	hazards     []float64 // packets that a cell loses up to each cut, on average
	stays       []float64 // chance that it loses nothing in a cut, by cut, and in the first place as in all on average
	chances     []chances // by two cuts: the latest asked for of those that share a place
	lengths     []float64 // how many exact spans have so many cuts
	wait, waits float64   // cuts until a cell is empty, on average, and the mean of its square
}

// chances are [losses.weight] and [Areas.weight] of two cuts, or 0 where they are not known yet.
type chances struct {
	weight, alone float64
	to            int
}

// cutLosses is what the cells of a group tell of losses in a cut.
type cutLosses struct {
	all, known, lost float64 // packets sent; of these, accounted for; of these, lost
	sent, gone       float64 // packets sent of which it is not known yet what was lost, and of these, outstanding ever since
	came             float64 // packets received, but for those that joined
}

// observe takes what all spans tell of losses.
func (l *losses) observe(a *Areas, from, to int) {
	cuts := a.latest() + 1
	l.areas, l.from, l.to, l.longest, l.late, l.latest = a, from, to, 0, 0, 0
	a.joined[1] = share{}
	l.sent, l.lost, l.usual = zeros(l.sent, cuts), zeros(l.lost, cuts), zeros(l.usual, cuts)
	l.groups = resize(l.groups, len(a.groups)-1)
	for g := range l.groups {
		of := &l.groups[g]
		of.covered, of.cuts, of.lengths = 0, zeros(of.cuts, cuts), zeros(of.lengths, cuts)
	}
	a.walk(0, l.calm, l.add)
	for i := range a.taken {
		x := &a.taken[i]
		c := &l.groups[a.groupOf(x.Cell)].cuts[x.Cut-a.before]
		c.all += 1
		c.known += 1
		c.lost += 1
	}
	if l.believed() {
		l.longest = max(l.longest, l.latest)
	}
	l.pool()
	l.total, l.of = max(0, a.past.lost+sum(l.lost)), a.past.sent+sum(l.sent)
	l.share = 0
	if l.of > 0 && l.total >= 0.5 {
		l.share = l.total / l.of
	}
	l.crowded = l.share == 0 && l.crowds()
	l.disperse()
}

// crowds reports whether more packets are outstanding at the latest cut than at any other, by more than chance, and
// than other cuts differ by: they may be lost lately. Groups have the same packets.
func (l *losses) crowds() bool {
	on, least, most, last := 0, math.MaxInt, math.MinInt, l.areas.latest()
	for k := 1; k < last; k++ {
		on += l.areas.net[k]
		least, most = min(least, on), max(most, on)
	}
	on += l.areas.net[last]
	beyond := float64(on) - float64(most)
	return last > 1 && beyond > max(float64(most)-float64(least), 3*math.Sqrt(float64(max(0, on)*len(l.groups))))
}

// believed reports whether packets came late. One or two cells may seem so that hold copies of one packet, of
// which there is always one on its way.
func (l *losses) believed() bool { return l.late > 2 }

// disperse finds how sure the share of losses is, of which more come in a cut than independent ones would, and
// how often cells lose packets.
func (l *losses) disperse() {
	varied, expected, n, squares := 0.0, 0.0, 0.0, 0.0
	for k := 1; k < len(l.sent); k++ {
		if e := l.share * l.sent[k]; e > 0 {
			varied += sq(l.lost[k] - e)
			expected += e
			n++
		}
	}
	for _, lost := range l.lost {
		squares += sq(lost)
	}
	l.bursts = min(sum(l.lost), sq(sum(l.lost))/max(squares, 1e-9))
	burst := 1.0
	if n > 4 {
		burst = max(1, varied/expected)
	}
	l.doubt = math.Sqrt(burst / max(1, l.total))
	for g := range l.groups {
		of := &l.groups[g]
		of.hazards, of.chances = resize(of.hazards, len(of.cuts)), zeros(of.chances, places*len(of.cuts))
		of.hazards[0], of.stays = 0, resize(of.stays, len(of.cuts))
		for k := 1; k < len(of.cuts); k++ {
			of.hazards[k] = of.hazards[k-1] + l.rate(k)*of.cuts[k].all/float64(l.areas.size(g))
			of.stays[k] = math.Exp(of.hazards[k-1] - of.hazards[k])
		}
		of.stays[0] = math.Exp(l.hazardUp(g, -1))
		l.awaits(g)
	}
}

// awaits finds for how long a cell that lost a packet waits until nothing is on its way in it, by exact spans
// and their weights.
func (l *losses) awaits(group int) {
	of, last := &l.groups[group], float64(len(l.groups[group].hazards)-1)
	often, times := of.hazards[int(last)]/max(1, last), last*float64(l.areas.size(group))
	of.wait, of.waits = 0, 0
	for i := 0; i < 3 && l.share > 0 && len(l.areas.taken) == 0; i++ { // the weight depends on it; what was taken out hides nothing
		wait, waits, all := 0.0, 0.0, 0.0
		for cuts, spans := range of.lengths {
			if n := float64(cuts); spans > 0 {
				spans *= min(math.Exp(often*n)/l.freeFor(group, 0, int(last), n), 1/leastFree)
				all += spans * n
				wait += spans * n * (n - 1) / 2
				waits += spans * n * n * (n - 1) / 3
			}
		}
		of.wait, of.waits = wait/max(1, times, all), waits/max(1, times, all)
	}
}

// places is for how many cuts after each one chances are kept: most spans are short, or as long as others.
const places = 4

// hazardUp returns how many packets a cell loses up to cut k on average. Before the cuts that are kept, and
// after them, it loses as many as in these.
func (l *losses) hazardUp(group, k int) float64 {
	of := &l.groups[group]
	last := len(of.hazards) - 1
	in := min(max(k, 0), last)
	return of.hazards[in] + float64(k-in)*of.hazards[last]/float64(max(last, 1))
}

// stay returns the chance that a cell loses nothing in cut k.
func (of *groupLosses) stay(k int) float64 {
	if k < 1 || k >= len(of.stays) {
		k = 0 // as in the cuts that are kept, on average
	}
	return of.stays[k]
}

// free returns the chance that a cell loses nothing for a patience around two cuts, if it loses nothing between them.
func (l *losses) free(group, from, to int) float64 {
	if l.share == 0 {
		return 1
	}
	return l.freeFor(group, from, to, float64(l.areas.ends[to]-l.areas.ends[from])/max(l.areas.step, 1))
}

// freeFor is free of cuts so many apart: the time without loss before them and the time after are long enough
// together. At either end the cell may wait until nothing is on its way: mostly not, or else for one time, so
// that mean and mean square are right.
func (l *losses) freeFor(group, from, to int, apart float64) (chance float64) {
	rest := math.Ceil(min(l.areas.patience/max(l.areas.step, 1), longestKept) - apart)
	if rest <= 0 {
		return 1
	}
	of, after := &l.groups[group], append(l.after[:0], 1) // after: that it loses nothing in so many intervals after
	long, share := of.waits/max(of.wait, 1e-9), min(1, sq(of.wait)/max(of.waits, 1e-9))
	for ends, times := range [3]float64{sq(1 - share), 2 * share * (1 - share), sq(share)} {
		n, before := int(math.Round(rest+float64(ends)*long)), 1.0 // before: that it loses nothing in i intervals before
		for i := 0; i < n && before*times > leastFree; i++ {
			for len(after) <= n {
				after = append(after, after[len(after)-1]*of.stay(to+len(after)))
			}
			next := before * of.stay(from-i)
			chance += times * (before - next) * after[n-i]
			before = next
		}
		chance += times * before
	}
	l.after = after
	return max(chance, leastFree)
}

// chances returns where those of two cuts are kept.
func (l *losses) chances(group, from, to int) *chances {
	if from < 0 || to <= from {
		return new(chances)
	}
	kept := &l.groups[group].chances[places*from+to%places]
	if kept.to != to {
		*kept = chances{to: to}
	}
	return kept
}

// calm takes an interval in which nothing was lost or on its way at the ends.
func (l *losses) calm(c *areaCell, cut int, e *areaEvent, area float64, known bool) {
	of, usual, sent, received := &l.groups[c.group].cuts[cut], &l.usual[cut], float64(e.sent), float64(e.received)
	of.came += received
	usual.add(received, area)
	if cut > l.from {
		usual.sent += sent
		l.areas.joined[1].n += received
	}
	if of.all += sent; known {
		of.known += sent
	} else {
		of.sent += sent
	}
	if e.sent == 1 {
		l.took(area)
	}
}

func (u *usualCut) add(packets, time float64) {
	u.packets += packets
	u.time += time
}

// took takes a delay. Where all are 0, it is known that packets take no longer than a nanosecond.
func (l *losses) took(delay float64) {
	if delay >= l.longest {
		l.longest = max(delay, 1)
	}
}

// add takes a span.
func (l *losses) add(x *span) {
	cuts := l.groups[x.group].cuts
	if n := x.shown(); x.to > l.from && (!x.open || n > 0) {
		l.areas.joined[1].add(x.before+float64(x.received), n)
	}
	switch {
	case x.late > 0 && x.before == 0:
		l.late++
		l.latest = max(l.latest, x.owed/float64(x.late)+l.areas.length(x.to))
	case x.alone():
		l.took(float64(x.sum))
	}
	if x.exact && x.late == 0 {
		l.groups[x.group].lengths[x.to-x.from]++
	}
	if x.exact && x.late == 0 && !x.alone() {
		l.longest = max(l.longest, l.areas.standing(x, l.longest))
	}
	if !x.open && x.to == x.from+1 && x.from >= l.from && x.to <= l.to && x.late == 0 && x.joined == 0 && !x.unknown {
		l.usual[x.to].sent += float64(x.sent)
		l.usual[x.to].lost += float64(x.lost)
	}
	if x.exact && x.late == 0 {
		mean := sum(x.area) / max(1, float64(x.received))
		for k, in := range x.in {
			l.usual[x.from+1+k].add(float64(in), mean*float64(in))
		}
	}
	n := float64(x.sent) + x.before
	cuts[0].all += x.before
	if x.late > 0 {
		n = math.Inf(1)
		cuts[x.to].lost -= float64(x.late)
	}
	if x.known && n > 0 {
		cuts[0].known += x.before
		cuts[0].lost += float64(x.lost) * x.before / n
	}
	came, most := max(0, 1-float64(x.joined)/max(1, float64(x.received))), int32(0)
	for k, out := range x.out {
		c := &cuts[x.from+1+k]
		c.came += came * float64(x.in[k])
		c.all += float64(out)
		if x.known && n > 0 {
			c.known += float64(out)
			c.lost += float64(x.lost) * float64(out) / n
		} else if x.joined == 0 {
			c.sent += float64(out)
			c.gone += float64(max(0, x.most[k]-most))
			most = max(most, x.most[k])
		}
	}
}

// digestsTell is from how many bits on two levels are not equal by chance, of all that are compared. Where they
// are narrower, three and half of all have to be.
const digestsTell = 24

// standing returns for how long the same packets, which came later, were outstanding, if longer than least.
func (a *Areas) standing(x *span, least float64) float64 {
	wide, last := a.mask>>(32+digestsTell) != 0, len(x.levels)-1
	for i, level := range x.levels {
		if float64(a.ends[x.from+1+last]-a.ends[x.from+1+i]) <= least {
			break
		}
		equal := 0
		for j := i; j <= last && x.on[j] >= x.on[i] && x.on[i] > 0; j++ {
			if x.levels[j] == level {
				equal++
				if wide || equal > 2 && 2*equal > j-i {
					least = max(least, float64(a.ends[x.from+1+j]-a.ends[x.from+1+i]))
				}
			}
		}
	}
	return least
}

// pool adds up the losses of the groups that account for most packets. In a group whose cells seldom settle,
// those that do are a choice. Of what is not known yet as much is lost as was outstanding ever since.
func (l *losses) pool() {
	const enough = 100
	best, which := -1.0, 0
	for g := range l.groups {
		of := &l.groups[g]
		all, known := 0.0, 0.0
		for k := 0; k < len(of.cuts) && l.areas.old(k); k++ {
			all += of.cuts[k].all
			known += of.cuts[k].known
		}
		if all == 0 {
			continue
		}
		of.covered = known / all
		if of.covered > best && known > enough {
			best, which = of.covered, g
		}
	}
	l.count(which, func(c *cutLosses) (sent, lost float64) { return c.known, c.lost })
	if l.areas.past.lost+sum(l.lost) >= 0.5 { // losses are known sooner than receptions
		l.count(which, func(c *cutLosses) (sent, lost float64) { return c.sent, c.gone })
	}
}

// count adds packets and losses, by cut, of one group and of those that account for most.
func (l *losses) count(which int, of func(*cutLosses) (sent, lost float64)) {
	const mostOfAll = 0.8 // packets, for which a group accounts if its cells settle often
	for g := range l.groups {
		for k := 0; k < len(l.sent) && l.areas.old(k) && (l.groups[g].covered >= mostOfAll || g == which); k++ {
			sent, lost := of(&l.groups[g].cuts[k])
			l.sent[k] += sent
			l.lost[k] += lost
		}
	}
}

func sum(x []float64) (s float64) {
	for _, v := range x {
		s += v
	}
	return s
}

// rate returns the share of the packets sent in a cut that was lost. With few losses it is near the share of all.
func (l *losses) rate(k int) float64 {
	if l.share == 0 || k == 0 {
		return l.share
	}
	return min(max(0, l.lost[k]+1)/(l.sent[k]+1/l.share), 1)
}

// weight returns for how many a span between two cuts stands that is known to be exact: one over the chance
// that of all packets of its cell none was lost in it, nor for so long before and after it that the cell had
// one level for a patience. Which packets are lost does not depend on those that come, and so not on how many
// the span has, but on how long it is.
func (l *losses) weight(group, from, to int) float64 {
	kept := l.chances(group, from, to)
	if kept.weight == 0 {
		lost := l.hazardUp(group, to) - l.hazardUp(group, from)
		kept.weight = math.Exp(min(lost, -math.Log(leastFree))) / l.free(group, from, to)
	}
	return kept.weight
}

// leastFree is the least chance that is told from none: a span stands for no more than one over it.
const leastFree = 1.0 / (1 << 12)

// coming returns for how long packets that count as lost were on their way within the window if they still come.
func (l *losses) coming() float64 {
	ends := l.areas.ends
	window := float64(ends[l.to] - ends[l.from])
	late := float64(max(l.areas.told, 0)) * window
	for k := l.from + 1; k <= l.to; k++ {
		age := l.age(k)
		for g := range l.groups {
			late += l.rate(k) * l.groups[g].cuts[k].all * age
		}
	}
	return late
}

// age returns for how long a packet ages within the window that was lost in cut k.
func (l *losses) age(k int) float64 {
	ends := l.areas.ends
	age := float64(ends[l.to] - ends[max(k, l.from)])
	if k > l.from {
		age += l.areas.length(k) / 2
	}
	return age
}

func sq(x float64) float64 { return x * x }
