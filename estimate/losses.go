package estimate

import "math"

// losses says how many packets were lost and when, as far as all cells together
// tell.
type losses struct {
	areas *Areas
	from  int // the window: cuts from+1 to to
	to    int

	sent, lost []float64 // by cut: packets sent that are accounted for, and those of them that were lost
	total      float64   // lost, of all that are accounted for lately
	of         float64
	share      float64  // of packets lost
	burst      float64  // variance of the number lost in a cut, over what it would be if losses were independent
	uneven     float64  // variance of the share lost in a cut, over the square of its mean
	longest    float64  // delay of a packet
	late       int      // spans in which packets came that had been taken for lost
	latest     float64  // greatest delay of these
	open       []uint32 // cells that have not settled
	groups     []groupLosses
}

// groupLosses is what the cells of a group tell of losses.
type groupLosses struct {
	covered float64 // share of the packets of a patience ago that are accounted for
	lost    float64 // of these
	doubt   float64 // time by which losses may have been later than assumed, added up
	cuts    []cutLosses
}

// cutLosses is what the cells of a group tell of losses in a cut.
type cutLosses struct {
	all, known, lost float64 // packets sent; of these, accounted for; of these, lost
	others           float64 // cells in a span that is not exact
	many, ones       float64 // cells in an exact span with packets on their way, and with just one
	risen            float64 // packets that seem lost in spans that are not over
	gone             float64 // the share of these that was lost
}

// observe takes what all spans tell of losses.
func (l *losses) observe(a *Areas, from, to int) {
	cuts := a.latest() + 1
	l.areas, l.from, l.to, l.longest, l.late, l.latest = a, from, to, 0, 0, 0
	l.sent, l.lost, l.groups = resize(l.sent, cuts), resize(l.lost, cuts), resize(l.groups, len(a.groups)-1)
	clear(l.sent)
	clear(l.lost)
	for g := range l.groups {
		of := &l.groups[g]
		of.lost, of.covered, of.doubt, of.cuts = 0, 0, 0, resize(of.cuts, cuts)
		clear(of.cuts)
	}
	l.open = l.open[:0]
	a.walk(0, l.calm, l.add)
	for i := range a.taken {
		x := &a.taken[i]
		c := &l.groups[a.groupOf(x.Cell)].cuts[x.Cut-a.before]
		c.all, c.known, c.lost = c.all+1, c.known+1, c.lost+1
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
	l.disperse()
	for _, i := range l.open {
		a.settle(&a.cells[i])
		a.tell(&a.cells[i], 0, nil, func(x *span) {
			if x.open && x.sure < to {
				l.find(x)
				for k, step := range x.steps {
					l.groups[x.group].cuts[x.from+1+k].risen += step
				}
			}
		})
	}
	for g := range l.groups {
		l.withdraw(g)
	}
}

// believed reports whether packets came late. One or two cells may seem so that
// hold copies of one packet, of which there is always one on its way.
func (l *losses) believed() bool { return l.late > 2 }

// disperse finds how much more the losses vary from cut to cut than
// independent ones would.
func (l *losses) disperse() {
	l.burst, l.uneven = 1, 0
	varied, expected, n := 0.0, 0.0, 0.0
	for k := 1; k < len(l.sent); k++ {
		if e := l.share * l.sent[k]; e > 0 {
			varied += sq(l.lost[k] - e)
			expected += e
			n++
		}
	}
	if n > 4 {
		l.burst = max(1, varied/expected)
		chance := 2 * math.Sqrt(2/n)
		l.uneven = max(0, l.burst-1-chance) / (expected / n)
	}
}

// withdraw finds which share of the packets that seem to have been lost in open
// spans was lost; the others are on their way. What has been outstanding for a
// patience is lost, unless other packets took its place, as they do in cells
// that are seldom empty. There, and of late, as many are lost as elsewhere.
func (l *losses) withdraw(group int) {
	of := &l.groups[group]
	idle, lossy := l.idle(group), sum(l.lost) >= 0.5
	expected, risen, gone := 0.0, 0.0, 0.0
	for k := 1; k < len(of.cuts); k++ {
		c := &of.cuts[k]
		if l.areas.old(k) && idle && lossy {
			c.gone = 1
			continue
		}
		expected += l.expected(of, k)
		risen += c.risen
		now := min(expected, risen)
		if c.risen > 0 {
			c.gone = min(1, (now-gone)/c.risen)
		}
		gone = now
	}
}

// calm takes an interval in which nothing was lost or on its way at the ends.
func (l *losses) calm(c *areaCell, cut int, e *areaEvent, area float64, known bool) {
	of, sent := &l.groups[c.group].cuts[cut], float64(e.sent)
	if of.all += sent; known {
		of.known += sent
	}
	if e.sent == 1 && area > l.longest {
		l.longest = area
	}
}

// add takes a span.
func (l *losses) add(x *span) {
	if x.open {
		l.open = append(l.open, l.areas.index[x.cell]-1)
	}
	cuts := l.groups[x.group].cuts
	switch {
	case x.late > 0 && x.before == 0:
		l.late++
		l.latest = max(l.latest, x.owed/float64(x.late)+l.areas.length(x.to))
	case x.alone():
		l.longest = max(l.longest, float64(x.sum))
	}
	if x.exact && x.late == 0 && !x.alone() {
		l.longest = max(l.longest, l.areas.standing(x, l.longest))
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
	for k, out := range x.out {
		c := &cuts[x.from+1+k]
		c.all += float64(out)
		if x.known && n > 0 {
			c.known += float64(out)
			c.lost += float64(x.lost) * float64(out) / n
		}
		switch {
		case !x.exact || x.late > 0:
			c.others++
		case k == len(x.out)-1:
		case x.on[k] == 1:
			c.ones++
			c.many++
		default:
			c.many++
		}
	}
}

// digestsTell is from how many bits on two levels are not equal by chance, of all
// that are compared. Where they are narrower, three and half of all have to be.
const digestsTell = 24

// standing returns for how long the same packets, which came later, were
// outstanding in a span, if that is longer than least.
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

// pool adds up the losses of the groups that account for most packets. In
// a group whose cells seldom settle, those that do are a choice.
func (l *losses) pool() {
	const mostOfAll, enough = 0.8, 100
	best, which := -1.0, 0
	for g := range l.groups {
		of := &l.groups[g]
		all, known := 0.0, 0.0
		for k := 0; k < len(of.cuts) && l.areas.old(k); k++ {
			all += of.cuts[k].all
			known += of.cuts[k].known
			of.lost += of.cuts[k].lost
		}
		if all == 0 {
			continue
		}
		of.covered = known / all
		if of.covered > best && known > enough {
			best, which = of.covered, g
		}
	}
	for g := range l.groups {
		if of := &l.groups[g]; of.covered >= mostOfAll || g == which || of.covered > 0.5 && of.lost == 0 {
			for k := range of.cuts {
				l.sent[k] += of.cuts[k].known
				l.lost[k] += of.cuts[k].lost
			}
		}
	}
}

func sum(x []float64) (s float64) {
	for _, v := range x {
		s += v
	}
	return s
}

// idle reports whether the cells of a group are mostly empty.
func (l *losses) idle(group int) bool {
	g := &l.groups[group]
	busy := 0.0
	for k := range g.cuts {
		busy += g.cuts[k].many + g.cuts[k].others
	}
	return busy < 0.75*float64(l.areas.size(group)*(len(g.cuts)-1))
}

// expected returns how many packets of a group that were sent in a cut are lost
// and not accounted for.
func (l *losses) expected(g *groupLosses, k int) float64 {
	e := l.rate(k)*g.cuts[k].all - g.cuts[k].lost
	if k == 1 {
		e += l.share*g.cuts[0].all - g.cuts[0].lost
	}
	return max(0, e)
}

// rate returns the share of the packets sent in a cut that was lost. With few
// losses it is near the share of all.
func (l *losses) rate(k int) float64 {
	if l.share == 0 || k == 0 {
		return l.share
	}
	return max(0, l.lost[k]+1) / (l.sent[k] + 1/l.share)
}

// age returns for how long a packet that was lost in cut k has aged within the
// window and up to cut to, on average and squared.
func (l *losses) age(k, to int) (mean, square float64) {
	to = min(to, l.to)
	if k > to || to <= l.from {
		return 0, 0
	}
	half := 0.0
	if k > l.from {
		half = l.areas.length(k) / 2
	}
	mean = float64(l.areas.ends[to]-l.areas.ends[max(k, l.from)]) + half
	return mean, mean*mean + half*half/3
}

// coming returns for how long packets that count as lost were on their way within the
// window if they come yet.
func (l *losses) coming() float64 {
	window := float64(l.areas.ends[l.to] - l.areas.ends[l.from])
	late := float64(max(l.areas.told, 0)) * window
	for k := l.from + 1; k <= l.to; k++ {
		age, _ := l.age(k, l.to)
		for g := range l.groups {
			late += l.rate(k) * l.groups[g].cuts[k].all * age
		}
	}
	return late
}

// empty returns how likely a cell in which a packet was lost was empty at a
// cut. Otherwise one packet was on its way and another one was lost later,
// which takes two losses in one span.
func (l *losses) empty(group, cut int) float64 {
	c := &l.groups[group].cuts[cut]
	none := max(0, float64(l.areas.size(group))-c.others-c.many)
	return (none + 1) / (none + c.ones/2 + 1.5)
}

func sq(x float64) float64 { return x * x }

// resolve takes from the areas of a span what packets that were lost in it have
// aged, as expected. It returns the variance of what is left within the window.
func (l *losses) resolve(x *span) (variance float64) {
	switch {
	case x.exact, x.open && x.sure >= l.to:
		return 0
	case x.certain(l.to):
		clear(x.area)
		clear(x.way)
		return 0
	}
	spread := l.find(x)
	if !x.open {
		variance = spread
	}
	if x.lost == 0 || x.joined > 0 { // one was lost, and another one joined
		long := float64(l.areas.ends[min(x.to, l.to)] - l.areas.ends[max(x.from, l.from)])
		variance += (1 + float64(x.joined)) * long * long / 6
	}
	before := 0.0
	for k, step := range x.steps {
		cut := x.from + 1 + k
		if step > 0 && x.open {
			m, s := l.age(cut, x.to)
			gone := l.groups[x.group].cuts[cut].gone
			step *= gone
			variance += step * (s - gone*m*m)
		}
		x.area[k] -= (before + step/2) * l.areas.length(cut)
		before += step
		x.way[k] -= before
	}
	return variance
}

// find tells how many packets were lost in each cut of a span, and returns the
// variance of their ages. Wherever the least number outstanding from then on
// rises, packets were lost from there to the cut at which the cell was empty
// again. That is the last one at which no more are outstanding, or one with the
// same level.
func (l *losses) find(x *span) (spread float64) {
	n, least := len(x.out), int32(0)
	x.steps = resize(x.steps, n)
	clear(x.steps)
	for k := range n {
		up := x.most[k] - least
		if up <= 0 {
			continue
		}
		least = x.most[k]
		end, next := k, k
		for ; next < n && x.most[next] == least; next++ {
			if x.on[next] == least {
				end = next
			}
		}
		again := end
		for i := end; i >= k; i-- {
			if x.levels[i] == x.levels[end] && x.on[i] == least {
				again = i
			}
		}
		chance := 1.0
		if again < end {
			end = again
		} else if next < n || x.open {
			chance = l.empty(x.group, x.from+1+end)
		}
		spread += l.place(x, float64(up), k, end, chance)
	}
	return spread
}

// place distributes packets lost over the cuts from k to end, or with the rest of
// the chance after it, and returns the variance of their ages.
func (l *losses) place(x *span, number float64, k, end int, chance float64) (spread float64) {
	var mean, square float64
	put := func(i int, w float64) {
		x.steps[i] += number * w
		m, s := l.age(x.from+1+i, x.to)
		mean += w * m
		square += w * s
	}
	if chance < 1 {
		after := min(end+1, len(x.out)-1)
		put(after, 1-chance)
		if cut := x.from + 1 + after; cut > l.from && cut <= l.to && !x.open {
			l.groups[x.group].doubt += number * min(chance, 1-chance) * l.areas.length(cut)
		}
	}
	sent, alone := 0.0, 0.0
	for i := k; i <= end; i++ {
		sent += float64(x.out[i])
	}
	if end > k && sent > 1 && x.out[k] > 0 {
		alone = 1 // was still on its way
	}
	for i := k; i <= end; i++ {
		w := float64(x.out[i])
		if i == k {
			w -= alone
		}
		if sent > 0 {
			put(i, chance*w/(sent-alone))
		} else if i == k {
			put(i, chance)
		}
	}
	return number * max(0, square-mean*mean)
}

// variance returns the variance of the areas of a group's spans that is due to
// how many packets were lost in open ones, and to when they were lost in all.
func (l *losses) variance(group int) float64 {
	g := &l.groups[group]
	var own, aged, vague, unseen, unsure float64
	for k := range g.cuts {
		c := &g.cuts[k]
		if c.risen == 0 {
			continue
		}
		m, _ := l.age(k, l.areas.latest())
		expected := l.expected(g, k)
		own += min(expected, sq(c.risen)/4) * m * m
		aged += c.risen * c.gone * m
		unsure += c.risen * c.gone * (1 - c.gone) * m
		if c.known < c.all/2 {
			vague += min(expected, c.risen) * m
		}
		unseen += min((c.all-c.known)/max(1, l.of), c.risen) * m
	}
	return own + sq(vague)*l.uneven + sq(aged)*l.burst/max(1, l.total) + sq(unseen) + (sq(g.doubt)+sq(unsure))/3
}
