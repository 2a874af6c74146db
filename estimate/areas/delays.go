package areas

import (
	"math"
	"slices"
)

// delays adds up the delays of the packets that came in a window, whatever becomes of the others (METHODS.md, section 3). In each cell
// the packets outstanding at both ends cancel. When those outstanding at only one end were sent, levels tell to within an interval.
type delays struct {
	areas         *Areas
	from, to      int
	packets, time float64
	ends          [2]endAges  // of packets on their way within a part
	sent          []sentGroup // by interval
	doubt         float64     // what is not known of the time: standard errors that add up,
	variance      float64     // and variances
	unknown       bool        // packets came that had been sent before the cuts that are kept
	stays         moment      // which part of the packets sent evenly in an interval stay at its end, by those that were alone

	left    []leftPackets // of one cell, in the order in which they were sent
	first   int           // of those left of which none came since where nobody knows which
	waiting moment        // those that stay: how many, and when they were sent
	mixed   []mixedPackets
}

// leftPackets were sent in an interval between two parts, and stay. Some may have come since where nobody knows which.
type leftPackets struct {
	packets        float64
	tally          uint64
	mixed, cut     int     // how often some had come before, and the interval
	sent, variance float64 // when, on average, after the oldest cut, and how sure that is
	counts         float64 // how often that counts in the time: once if they were sent in the window
}

// mixedPackets tell which part of those left came where nobody knows which, and which part came in the window, then or later.
type mixedPackets struct{ part, inside float64 }

// A sentGroup is about the packets of an interval that count: the ages at its end of those that were alone in their cell, and of the
// others; how many more of the others add than subtract; and the variance of their ages if they are independent.
type sentGroup struct {
	alone, others    moment
	counts, variance float64
}

// delay returns the mean delay of those received, and its standard error, or +Inf if it is not known.
func (a *Areas) delay(t *Transit) (mean, deviation float64) {
	if !a.digestsShow() || t.Joined > 0 || t.Error == 0 && t.Last.Pending == 0 { // or areas are as sure
		return 0, math.Inf(1)
	}
	d, most := &a.delays, math.Sqrt(sq(t.Error*t.Received)+owedVariance(&[2]OnWay{t.First, t.Last}))+t.Late*t.Received
	if d.count(a, a.losses.from, a.losses.to, most); d.unknown || d.doubt > most || d.packets != t.Received {
		return 0, math.Inf(1)
	}
	of, levels := *t, a.onWay
	for i, end := range [2]*OnWay{&of.First, &of.Last} {
		a.onWay[i].bounds, a.onWay[i].widths = d.ends[i].bounds, d.ends[i].widths
		a.onWay[i].others, a.onWay[i].alike, a.onWay[i].like = ageBounds{}, ageBounds{}, stands{}
		*end = OnWay{Packets: d.ends[i].bounds.Packets}
	}
	of.scale, of.change, of.along = 1, 0, 0
	a.age(&of)
	a.onWay = levels
	variance := sq(d.doubt) + d.variance + owedVariance(&[2]OnWay{of.First, of.Last})
	for k, s := range d.sent { // to which packets are sent evenly, or in bursts, as far as those that were alone show it
		even := sq(a.length(max(k, 1))) / 12
		variance += max(s.variance, sq(s.counts)*even/(s.alone.n+1))
		if s.alone.n > 0 && s.others.n > 0 {
			variance += sq(s.counts) * max(0, sq(s.alone.sum/s.alone.n-s.others.sum/s.others.n)-even/s.alone.n)
		}
	}
	return (d.time + of.First.Ages - of.Last.Ages) / d.packets, math.Sqrt(variance) / d.packets
}

// count counts the packets of all cells, unless their time is less sure than most, as that by areas is.
func (d *delays) count(a *Areas, from, to int, most float64) {
	cuts := len(a.ends)
	*d = delays{areas: a, from: from, to: to, stays: moment{1, 1, 1}, left: d.left, mixed: d.mixed, sent: zeros(d.sent, cuts)}
	d.packets, d.time = a.window.calmly.packets, a.window.calmly.time
	for i := range a.alone {
		d.stays.add(a.alone[i].Weight, min(1, math.Abs(float64(a.alone[i].Delay))/a.step))
	}
	for i := 0; i < len(a.cells) && d.doubt <= most && !d.unknown; i++ {
		d.cell(&a.cells[i])
	}
}

// inside reports whether an interval is in the window.
func (d *delays) inside(cut int) bool { return cut > d.from && cut <= d.to }

// cell counts the packets of a cell. A part reaches from the first cut of a level to the last. Parts lie one
// within the other, or apart; only those that lie in no other count.
func (d *delays) cell(c *areaCell) {
	a, level, from := d.areas, c.oldest, 0
	a.passed = a.events[c.first:c.end]
	if n := len(a.passed); n == 0 || int(a.passed[n-1].cut)-a.before <= d.from || int(a.passed[0].cut)-a.before > d.to {
		return // nothing passed in the window
	}
	mistaken := float64(c.alike) // packets that were taken for earlier ones, which took no longer than the patience
	for i := range a.passed {
		if e := &a.passed[i]; judgement(e.note)&repeated != 0 {
			mistaken += float64(e.sent)
		}
	}
	if mistaken > 0 {
		d.doubt += mistaken * a.patience / math.Sqrt(3)
	}
	d.left, d.mixed, d.first, d.waiting = d.left[:0], d.mixed[:0], 0, moment{}
	if moved := (level - c.anchor) & a.mask; outstanding(moved) > 0 {
		d.leave(leftPackets{tally: moved, packets: float64(outstanding(moved)), variance: sq(a.patience)})
	}
	for first := 0; ; first++ {
		next := first
		for k := first; k < len(a.passed) && outstanding((a.passed[k].level-level)&a.mask) >= 0; k++ {
			if a.passed[k].level == level {
				next = k + 1
			}
		}
		if next > first {
			d.part(c, from, first, next, level)
		}
		if first = next; first == len(a.passed) {
			break
		}
		e := &a.passed[first]
		from = int(e.cut) - a.before
		d.move(e, from, (e.level-level)&a.mask)
		level = e.level
	}
	d.end()
}

// part counts the events of a part, which begins at cut number from, up to the next event after it. Exactly the
// packets come in it that were sent in it.
func (d *delays) part(c *areaCell, from, first, next int, level uint64) {
	a, was, at, crosses := d.areas, 0, from, [2]bool{}
	for k := first; k < next; k++ {
		e := &a.passed[k]
		cut, on := int(e.cut)-a.before, outstanding((e.level-level)&a.mask)
		d.time += float64(was) * a.between(min(max(at, d.from), d.to), min(max(cut-1, d.from), d.to))
		for i, end := range [2]int{d.from, d.to} {
			crosses[i] = crosses[i] || was != 0 && at <= end && end < cut
		}
		if d.inside(cut) {
			d.add(e, cut, on, was)
		}
		was, at = on, cut
	}
	for i, cut := range [2]int{d.from, d.to} {
		if crosses[i] {
			x := &a.span
			x.from, x.to, x.level, x.before = from, at, level, 0
			a.fill(c, first, true, level)
			d.ends[i].bound(a.bounds(x, cut), 1)
		}
	}
}

// add counts an event, at whose cut so many packets are outstanding, and before it so many others.
func (d *delays) add(e *areaEvent, cut, on, was int) {
	d.time += d.areas.near(e.delay+uint64(on)*uint64(d.areas.ends[cut])-uint64(was)*uint64(d.areas.ends[cut-1]), e.received)
	d.packets += float64(e.received)
}

// move counts an event after which other packets are outstanding than before. If none of those left has the missing
// tally, others came, and more of those sent stay than the level has risen by.
func (d *delays) move(e *areaEvent, cut int, moved uint64) {
	a, inside, rose := d.areas, d.inside(cut), outstanding(moved)
	fell, more, ages := max(0, -rose), 0.0, 0.0
	missing := func(l leftPackets) bool { return l.tally == -moved&a.mask && l.tally != 0 }
	if at := slices.IndexFunc(d.left[d.first:], missing) + d.first; at >= d.first {
		l := d.left[at]
		d.left = slices.Delete(d.left, at, at+1)
		d.waiting.add(-l.packets, l.sent)
		ages = l.packets * (d.since(cut-1) - l.sent)
		if inside {
			l.counts--
		}
		d.counted(&l, l.packets)
	} else {
		if more = d.stay(e, cut, rose); rose <= 0 || more > 0 {
			moved = 0
		}
		ages = d.some(float64(fell)+more, cut)
	}
	if n := float64(rose+fell) + more; n > 0 {
		age := a.sentAge(cut, e.sent, e.sentSum)
		l := leftPackets{tally: moved, packets: n, cut: cut, sent: d.since(cut) - age}
		l.variance = sq(a.length(cut)) / 12 * max(0, 1-n/max(1, float64(e.sent)))
		if inside {
			l.counts = 1
		}
		d.leave(l)
		ages -= n * age
	}
	if inside {
		d.time += ages + more*a.length(cut)
		d.add(e, cut, rose+fell, fell)
	}
}

// stay returns how many of the packets sent in an interval are likely to be still on their way at its end, beyond those
// by which the level rose; as many earlier ones arrived.
func (d *delays) stay(e *areaEvent, cut, rose int) (more float64) {
	of, sent := &d.waiting, float64(e.sent)
	least, up, down := 0.0, float64(max(rose, 0)), float64(max(-rose, 0))
	if rose == 0 { // and yet others are outstanding
		least = 1
	}
	most := min(sent-up, float64(e.received)-down, of.n-down)
	if most <= least {
		return least
	}
	part := min(1, d.stays.sum/d.stays.n*d.areas.step/d.areas.length(cut))
	more = min(max(sent*part-up, least), most)
	if d.inside(cut) && of.n > 0 {
		d.variance += min(sent*part*(1-part), sq(most-least)/4) * (of.spread() + sq(d.since(cut)-of.sum/of.n))
	}
	return more
}

// since returns how long after the oldest cut another one is.
func (d *delays) since(cut int) float64 { return d.areas.between(0, cut) }

// counted says that n of the packets left count as they do.
func (d *delays) counted(l *leftPackets, n float64) {
	s, age := &d.sent[l.cut], d.since(l.cut)-l.sent
	switch {
	case l.counts == 0:
	case l.variance == 0:
		s.alone.add(n, age)
	default:
		s.others.add(n, age)
		s.counts += n * l.counts
		s.variance += n * l.variance
	}
}

// leave takes packets that stay.
func (d *delays) leave(l leftPackets) {
	l.mixed = len(d.mixed)
	d.left = append(d.left, l)
	d.waiting.add(l.packets, l.sent)
}

// some takes n of those left where nobody knows which came in an interval: the same part of each. It returns their
// ages when the interval began. Which they are is alike in all cells, so errors add up.
func (d *delays) some(n float64, cut int) (ages float64) {
	of, m := &d.waiting, mixedPackets{}
	d.unknown = d.unknown || n > of.n+1e-9 && d.inside(cut)
	if n <= 1e-9 || of.n <= 1e-9 {
		return 0
	}
	m.part = min(n/of.n, 1)
	if d.inside(cut) {
		d.doubt += n * math.Sqrt(of.spread())
		m.inside = m.part
	}
	ages = m.part * (of.n*d.since(cut-1) - of.sum)
	*of = moment{(1 - m.part) * of.n, (1 - m.part) * of.sum, (1 - m.part) * of.squares}
	d.mixed, d.first = append(d.mixed, m), len(d.left)
	return ages
}

// end counts those left of a cell.
func (d *delays) end() {
	d.mixed = append(d.mixed, mixedPackets{part: 1}) // after which none are left
	for i := len(d.mixed) - 2; i >= 0; i-- {
		m := &d.mixed[i]
		m.inside += (1 - m.part) * d.mixed[i+1].inside
	}
	for _, l := range d.left {
		m := &d.mixed[l.mixed]
		if m.part < 1 { // which of them it was is not known
			l.variance = sq(d.areas.length(max(l.cut, 1))) / 12
		}
		came := m.inside * l.packets
		d.counted(&l, l.packets-came)
		l.counts--
		d.counted(&l, came)
	}
}
