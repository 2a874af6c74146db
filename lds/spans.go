package lds

import (
	"math"

	"github.com/hoplag/hoplag/estimate/areas"
)

// A total adds up the spans of a cell.
type total struct {
	exact, lossy   content // what is known of packets received, in spans that lost none and others
	open           pending
	sent, received uint64
	unknown        uint64  // packets received of which nothing is known
	lost, left     int     // packets lost for certain, and those outstanding at the end
	tally          uint64  // the sum of those upstream
	seen           bool    // in the part that is added
	before         int     // outstanding when the report began
	hidden         uint64  // packets sent in spans in which others came as well, which hide losses
	told           int     // packets taken for lost in earlier reports
	theirs         float64 // time of the last packets that were lost, if none came in their span

	began, ended, gone ages // of the packets on their way when the report began, at its end, and at gaps
}

// ages are those of some packets, added up: at least, and at most.
type ages struct{ Packets, Least, Most float64 }

func (x ages) plus(y ages) ages {
	return ages{x.Packets + y.Packets, x.Least + y.Least, x.Most + y.Most}
}

// A pending is what is known of a span that has not ended. Its parts lack the same packets, so their deviations
// add up. If it turns out to have lost none, it is exact.
type pending struct {
	took
	gone, aged        float64 // packets lost, as expected, and for how long these aged
	deviation, unsure float64 // of that by when they were lost, and relative one by how many
	outstanding       int     // packets at the end, in a span of any kind
}

// correct says how many packets of the past were lost, as expected since. The time for which they aged rises as their number, and its
// variance no more than as that or its square.
func (p *pending) correct(gone, unsure float64) {
	if p.gone > 0 && gone > 0 {
		more := gone / p.gone
		p.aged, p.deviation, p.unsure = p.aged*more, p.deviation*max(more, math.Sqrt(more)), unsure
	}
}

// settle adds a span that went on to the others.
func (t *total) settle(exact bool) {
	if p := &t.open; exact {
		t.exact.add(p.took, 0)
	} else {
		t.lossy.add(p.took, p.aged)
		t.lossy.variance += sq(p.deviation) + sq(p.unsure*p.aged)
	}
	t.open = pending{}
}

// over ends a span that went on, and lost so many packets.
func (t *total) over(lost int) {
	if t.lost += lost; lost != 0 {
		t.theirs = 0
	}
	t.open.correct(float64(lost), 0)
	t.settle(lost == 0)
}

// add adds a span. If it is one of the first, it tells what was on its way when the report began.
func (t *total) add(s *areas.Span, c *Config, first bool) {
	own := took{float64(s.Received), s.Area, s.Usual}
	t.sent, t.received = t.sent+uint64(s.Sent), t.received+uint64(s.Received)
	if *s == (areas.Span{Cell: s.Cell, Sent: s.Sent, Received: s.Received, Area: s.Area, Usual: s.Usual}) && c.fits(uint64(s.Received)) {
		t.exact.add(own, 0)
		return // it tells nothing of others, and may come before them
	}
	if t.ended = t.ended.plus(s.Ends[1]); first {
		t.began = t.began.plus(s.Ends[0])
	}
	// What was outstanding before, and is not, was lost by a span that has ended since, or this is the same one.
	unsure, exact := math.Sqrt(s.Unsure)/max(s.Aged, 1e-9), s.Variance == 0 && s.Aged == 0
	if lost := t.open.outstanding - int(s.Ends[0].Packets); !t.seen && (lost != 0 || !s.Late) {
		t.over(lost)
	}
	t.open.correct(s.Gone[0], unsure)
	t.seen = true
	if s.Joined > 0 || !s.Open && s.Lost == 0 && s.Variance > 0 {
		t.hidden += uint64(s.Sent)
	}
	switch p := &t.open; {
	case s.Received == 0 && s.Lost > 0 && !s.Open: // all were lost, and the time was theirs, which counts if they come after all
		t.theirs = s.Area
	case math.IsInf(s.Variance, 1) || !c.fits(uint64(s.Received)):
		t.unknown += uint64(s.Received)
	default:
		if exact && s.Lost < 0 {
			own.beyond += t.theirs
		}
		if p.add(own, 0); s.Lost != 0 && !s.Open {
			t.theirs = 0
		}
		p.aged, p.deviation, p.unsure = p.aged+s.Aged, p.deviation+math.Sqrt(s.Variance-s.Unsure), unsure
	}
	if s.Open {
		t.left += s.Lost
	} else {
		t.lost += s.Lost
		t.settle(exact)
	}
	t.open.outstanding, t.open.gone = int(s.Ends[1].Packets), s.Gone[1]
}

// owes returns by how much the time on the way may be more and less than delays, of all packets that the cells
// of a row stand for. If more were on their way at the ends than were received, that is +Inf.
func (t *total) owes(rate float64) (less, more float64) {
	if math.Abs(t.began.Packets)+math.Abs(t.ended.Packets) > float64(t.received) {
		return math.Inf(1), math.Inf(1)
	}
	return max(0, t.ended.Most-t.began.Least) / rate, max(0, t.began.Most-t.ended.Least) / rate
}

// A borrowing says how much longer packets waited in spans with losses than in exact spans of the same cell, over all cells: where a queue
// drops its tail, losses happen when delays are long. It also has the variance of that between cells, beyond chance.
type borrowing struct{ longer, variance, single, apart float64 }

func (b *borrowing) chance(packets float64) float64 { return min(b.single/packets, b.apart) }

// borrow compares the lossy spans of all cells with their exact ones. Without evidence they are alike, except for how far cells are apart.
func (a *Accumulator) borrow() borrowing {
	b := borrowing{0, a.differ, a.single, sq(a.apart)}
	if b.variance == 0 || math.IsInf(b.variance, 1) || math.IsInf(b.single, 1) {
		return b
	}
	var sum, weights, doubt, noise, common float64
	var n, longerSum, longerSquares float64 // by the squares of weights
	for i := range a.all {
		if t, x, y := &a.all[i], &a.all[i].exact, &a.all[i].lossy; x.packets > 0 && y.packets > 0 {
			variance := y.variance/sq(y.packets) + b.chance(x.packets) + b.chance(y.packets)
			longer, weight := y.beyond/y.packets-t.like(), 1/(variance+a.differ)
			sum += weight * longer
			common += weight * math.Sqrt(y.variance) / y.packets
			weights += weight
			n += sq(weight)
			longerSum += sq(weight) * longer
			longerSquares += sq(weight * longer)
			noise += sq(weight) * variance
			doubt += sq(sq(weight)) * 2 * sq(variance)
		}
	}
	if weights == 0 {
		return b
	}
	chance := float64(a.config.Rows)/weights + sq(common/weights) // rows have the same packets, cells the same bursts
	part := b.variance / (b.variance + chance)
	b.longer = part * sum / weights
	excess := (longerSquares-2*b.longer*longerSum-noise)/n + sq(b.longer)
	doubt = math.Sqrt(doubt) / n
	b.variance *= (max(0, excess) + doubt) / (b.variance + doubt)
	b.variance += part * chance
	return b
}

// like returns how long packets of lossy spans take if they differ from those of exact ones as other cells' do in the same intervals.
func (t *total) like() float64 {
	x, y := &t.exact, &t.lossy
	return (x.beyond-x.usual)/x.packets + y.usual/y.packets
}

func (t *total) content(b *borrowing) content {
	x, y, u, received := t.exact, t.lossy, float64(t.unknown), float64(t.received)
	if x.packets > 0 && y.packets > 0 && y.variance > 0 {
		// The less is exact, the less it says.
		like := y.packets * (t.like() + b.longer)
		variance := sq(y.packets) * (b.variance + b.chance(x.packets) + b.chance(y.packets))
		part := y.variance / (y.variance + variance)
		y.beyond += part * (like - y.beyond)
		y.variance *= 1 - part
	}
	all := took{received, x.beyond + y.beyond, 0}
	if known := received - u; u > 0 && known > 0 { // others are as these, or slow, as those on their way at a cut
		all.beyond *= received / known
		y.variance = y.variance*sq(received/known) + sq(u)*b.single*(1+1/u)
	}
	return content{all, y.variance, u <= received/4, t.sent, t.tally}
}
