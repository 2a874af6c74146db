package lds

import (
	"math"

	"github.com/hoplag/hoplag/estimate"
)

// How an Accumulator follows a cell. What is outstanding, the number and the digest
// of the packets sent and not received, is the cell's level. Where nothing is on its
// way, the cell is settled. Between two settled cuts of one level all packets came,
// and the sum of their delays is exact, however many crossed the cuts in between. A
// lost packet raises the level for good: if the same level is there at two cuts that
// are further apart than any packet takes, nothing was on its way at either. Then it
// is known how many packets the span before lost, but not when they were sent. They
// are taken to be sent like the others in the span, which has a variance.
//
// A cell that always has packets on their way never settles. Then its packets' delays
// lie between what they are if all that is outstanding is lost, and if all is on its way.

// A stretch is what passed a cell since it was settled. Sums wrap.
type stretch struct {
	delay   uint64 // time stamps received less those sent
	sent    uint64 // time stamps sent, since the cell was settled
	in, out uint32
}

// A follower follows a cell.
type follower struct {
	level uint64  // packets and digest outstanding, beyond those known to be lost
	base  moment  // the cut at which the cell was settled last
	open  stretch // since the base
	// There is a mark: the latest cut with the fewest outstanding.
	marked    bool
	unsure    bool // packets may have been on their way at the base
	markLevel uint64
	first     moment  // cut at the level of the mark
	last      moment  // cut at it
	mark      stretch // up to the first
	in        uint32  // packets received up to the last
	gone      gone
}

// Gone are the packets of a cell that count as lost. Those that come after all are
// taken to have been sent when these were.
type gone struct {
	level   uint64 // their number and digest
	packets float64
	sent    float64 // mean time, ns
	spread  float64 // variance of that, of one packet
	charged float64 // variance that spans were charged for not knowing it
	earlier bool    // some were lost in a report that has ended
}

// A moment is a cut: its number and its time.
type moment struct {
	cut uint32
	at  int64
}

// A total adds up the spans of a cell.
type total struct {
	exact, lossy   content // what is known of packets received, in spans that lost none and others
	sent, received uint64
	lost           int // packets, for certain
}

// plus returns what passed in both.
func (p stretch) plus(q stretch) stretch {
	return stretch{p.delay + q.delay, p.sent + q.sent, p.in + q.in, p.out + q.out}
}

func (p stretch) less(q stretch) stretch {
	return stretch{p.delay - q.delay, p.sent - q.sent, p.in - q.in, p.out - q.out}
}

// outstanding returns the number of packets of a level.
func outstanding(level uint64) int { return int(int32(level)) }

// cut takes what passed the cell in the interval that ends now.
func (f *follower) cut(a *Accumulator, t *total, up, down *cell) {
	if f.level == 0 && !f.unsure && up.tally|down.tally == 0 {
		f.base = a.now
		return
	}
	n, now := up.count(), a.now
	f.open = f.open.plus(stretch{down.sum - up.sum, up.sum - uint64(f.base.at)*uint64(n), down.count(), n})
	f.level = (f.level + up.tally - down.tally) & a.mask
	t.sent += uint64(n)
	t.received += uint64(down.count())
	switch late := float64(now.at-f.last.at) > a.patience(); {
	case f.level == 0 && !f.unsure:
		a.learn(f.open.in, now.at-f.base.at)
		a.exact(t, f.open)
		f.settle(now)
	case f.gone.packets > 0 && (f.level+f.gone.level)&a.mask == 0:
		// All came that had counted as lost.
		f.mark, f.first, f.markLevel = f.open, now, f.level
		a.lossy(t, f)
		t.lost += outstanding(f.level)
		f.settle(now)
	case f.marked && f.level == f.markLevel:
		a.learn(f.open.in-f.in, now.at-f.last.at)
		f.in, f.last = f.open.in, now
		if float64(now.at-f.first.at) < a.patience() {
			return
		}
		if !f.unsure {
			a.lossy(t, f)
			t.lost += outstanding(f.markLevel)
		}
		a.exact(t, f.open.less(f.mark))
		f.settle(now)
	case !f.marked || late || outstanding(f.level) <= outstanding(f.markLevel):
		f.marked, f.markLevel, f.first, f.last, f.mark, f.in = true, f.level, now, now, f.open, f.open.in
	}
}

// learn takes how long some packets took at most, all of which came.
func (a *Accumulator) learn(packets uint32, over int64) {
	switch {
	case packets == 1:
		a.longest = max(a.longest, over)
	case packets > 1 && (a.shortest == 0 || over < a.shortest):
		a.shortest = over
	}
}

// settle says that nothing was on its way at a cut.
func (f *follower) settle(at moment) { *f = follower{base: at, gone: f.gone} }

// lapse forgets what is outstanding.
func (f *follower) lapse(at moment) { *f = follower{base: at, unsure: true} }

// exact adds a stretch of which all packets came.
func (a *Accumulator) exact(t *total, p stretch) {
	if a.config.fits(uint64(p.in)) {
		t.exact.beyond += float64(estimate.SignExtend(p.delay, int(a.config.SumBits)))
		t.exact.packets += float64(p.in)
	}
}

// lossy adds what passed up to the mark, at which nothing was on its way. Counted from
// the base, packets were lost at the mean time s, so
//
//	Σ received − Σ sent + lost·s
//
// are the delays of those received. If fewer are outstanding than at the base, packets
// came that had counted as lost: s is when they were sent, and before the base.
func (a *Accumulator) lossy(t *total, f *follower) {
	p := f.mark
	lost := float64(p.out) - float64(p.in)
	f.gone.level += f.markLevel
	if cuts := f.first.cut - f.base.cut; cuts <= shortSpan {
		for k := f.base.cut + 1; k <= f.first.cut; k++ {
			a.when[k%mostCuts].lost += max(lost, 0) / float64(cuts)
		}
	}
	when, variance, ok := a.returned(f, -lost)
	if lost >= 0 {
		when, variance = a.lostAt(f, p, f.first)
		f.gone.add(lost, float64(f.base.at)+when, variance)
		ok = true
	} else if f.gone.packets == 0 {
		// All came: what was taken for when they were sent is taken back, unless it is
		// in a report that has ended.
		if !f.gone.earlier {
			t.lossy.variance = max(0, t.lossy.variance-f.gone.charged)
		}
		f.gone = gone{}
	}
	if !ok || p.in == 0 || !a.config.fits(uint64(max(p.out, p.in))) {
		return
	}
	t.lossy.beyond += a.moved(p, f.base.at) + lost*when
	t.lossy.packets += float64(p.in)
	charge := sq(max(math.Abs(lost), 1)) * variance
	t.lossy.variance += charge
	if f.gone.packets > 0 {
		f.gone.charged += charge
	}
}

// add counts packets as lost that were sent at a time.
func (g *gone) add(packets, sent, spread float64) {
	if all := g.packets + packets; all > 0 {
		share := packets / all
		g.spread += share * (spread - g.spread + (1-share)*sq(sent-g.sent))
		g.sent += share * (sent - g.sent)
		g.packets = all
	}
}

// returned takes packets that had counted as lost from those that do, and returns when
// they were sent, from the base, and the variance of that. It is not known of more
// packets than have been lost.
func (a *Accumulator) returned(f *follower, packets float64) (when, variance float64, ok bool) {
	g := &f.gone
	if packets <= 0 || packets > g.packets {
		return 0, 0, false
	}
	a.longest = max(a.longest, a.now.at-int64(g.sent))
	variance = g.spread
	if !g.earlier { // of all of them the mean is what was taken before
		variance *= 1 - packets/g.packets
	}
	g.packets -= packets
	return g.sent - float64(f.base.at), variance, true
}

// A cutLoss is an interval that ends at a time, and how many packets were lost in it
// as far as spans of an interval or two tell.
type cutLoss struct {
	end  int64
	lost float64
}

const (
	mostCuts  = 256
	shortSpan = 2
	unseen    = 1.0 // losses that are like packets sent, beside those seen
)

// lostAt returns when packets were lost that were sent from a cell's base to a cut, and
// the variance of that, of all together, as in a burst: by when all cells lost packets,
// and by when the cell's own were sent.
func (a *Accumulator) lostAt(f *follower, p stretch, end moment) (mean, variance float64) {
	over, s := float64(end.at-f.base.at), a.meanSent(p)
	n, sum, squares := unseen, unseen*s, unseen*(s*s+over*over/12)
	if end.cut-f.base.cut < mostCuts {
		begin := f.base.at
		for k := f.base.cut + 1; k <= end.cut; k++ {
			c := &a.when[k%mostCuts]
			from, to := float64(begin-f.base.at), float64(c.end-f.base.at)
			n += c.lost
			sum += c.lost * (from + to) / 2
			squares += c.lost * (from*from + from*to + to*to) / 3
			begin = c.end
		}
	}
	mean = sum / n
	return mean, max(squares/n-mean*mean, 0)
}

// moved returns the times received less those sent, both counted from the base.
func (a *Accumulator) moved(p stretch, base int64) float64 {
	return float64(estimate.SignExtend(p.delay+uint64(base)*(uint64(p.out)-uint64(p.in)), int(a.config.SumBits)))
}

// meanSent returns the mean time at which packets were sent, from the base.
func (a *Accumulator) meanSent(p stretch) float64 {
	return float64(estimate.SignExtend(p.sent, int(a.config.SumBits))) / max(float64(p.out), 1)
}

// unsettled adds what passed a cell since it was settled, up to now. With T the time
// since then, and s when packets were lost, the delays of those received are at least
//
//	Σ received − Σ sent + outstanding·s,
//
// if all that are outstanding are lost, and at most the same with T for s, if all are
// on their way. Of packets sent at a steady rate r that wait d on average r·d are on
// their way, which tells where between the two they are; their variance holds both.
func (a *Accumulator) unsettled(t *total, f *follower) {
	p, over := f.open, float64(a.now.at-f.base.at)
	out, in := float64(p.out), float64(p.in)
	left := out - in
	if f.unsure || in == 0 || -left > f.gone.packets || !a.config.fits(uint64(max(p.out, p.in))) {
		return
	}
	when, variance := a.lostAt(f, p, a.now)
	if left < 0 {
		when, variance = f.gone.sent-float64(f.base.at), f.gone.spread
		over = when
	}
	least := a.moved(p, f.base.at) + left*when
	most := least + left*(over-when)
	steady := least
	if waited := in - out/max(over, 1)*(over-when); waited > 0 {
		steady = min(max(least*in/waited, least), most)
	}
	t.lossy.beyond += steady
	t.lossy.packets += in
	t.lossy.variance += sq(left)*variance + sq((most-least)/2)
}

// A borrowing says how much longer packets of spans that lost some waited than those
// of the same cell's exact spans, by all cells: where a queue drops its tail, losses
// happen where delays are long. It has the variance of that from cell to cell.
type borrowing struct{ longer, variance float64 }

// borrow compares the lossy spans of all cells with their exact ones. Without
// evidence it takes them to be alike, up to how far means of cells are apart.
func (a *Accumulator) borrow() borrowing {
	b := borrowing{0, sq(a.apart)}
	if b.variance == 0 {
		return b
	}
	compare := func(visit func(longer, variance, weight float64)) {
		for i := range a.all {
			if x, y := &a.all[i].exact, &a.all[i].lossy; x.packets > 0 && y.packets > 0 {
				v := y.variance / sq(y.packets)
				visit(y.beyond/y.packets-x.beyond/x.packets, v, y.packets/(v+sq(a.apart)))
			}
		}
	}
	var sum, weights, squares, excess, of float64
	compare(func(longer, variance, weight float64) {
		sum += weight * longer
		weights += weight
		squares += sq(weight) * (variance + sq(a.apart))
	})
	if weights == 0 {
		return b
	}
	chance := squares / sq(weights)
	b.longer = sum / weights * b.variance / (b.variance + chance)
	compare(func(longer, variance, weight float64) {
		excess += sq(weight) * (sq(longer-b.longer) - variance)
		of += sq(weight)
	})
	if chance < b.variance {
		b.variance = max(b.variance, excess/of)
	}
	return b
}

// content returns what is known about a cell.
func (t *total) content(b *borrowing) content {
	x, y := t.exact, t.lossy
	x.usable = true
	if y.packets == 0 {
		return x
	}
	if x.packets > 0 && y.variance > 0 {
		// The less is exact, the less it says.
		like := y.packets * (x.beyond/x.packets + b.longer)
		variance := sq(y.packets) * b.variance * (1 + y.packets/x.packets)
		part := y.variance / (y.variance + variance)
		y.beyond += part * (like - y.beyond)
		y.variance *= 1 - part
	}
	return content{x.packets + y.packets, x.beyond + y.beyond, y.variance, true}
}

func sq(x float64) float64 { return x * x }
