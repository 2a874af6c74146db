package rli

import (
	"math"

	"github.com/hoplag/hoplag/hashing"
)

// The receiver learns from references how far off estimates are. It estimates
// each reference from its neighbours, as if it had not come, and compares the
// estimate with the reference's own delay, on behalf of all packets since the
// reference before. Two references are twice as far apart as usual then, so
// the error comes out rather too large, and so does the error predicted for it.
//
// An error over the predicted one is a residual. Residuals of packets of one
// flow may have a part in common: the packets of a paced flow meet the same
// flows again and again. The product of two residuals of one flow shows that
// part.
type quality struct {
	references float64
	packets    float64 // that they stand for
	seen       float64 // squares of errors, for each packet
	told       float64 // squares of predicted errors
	sum        float64 // of errors, for each packet
	squares    float64 // of these, for each reference
	predicted  float64 // predicted errors, for each packet
	blur       float64 // of the base delay
	twins      float64 // pairs of residuals of one flow
	common     float64 // their products
	commonest  float64 // squares of these
	extremes
}

// extremes are the largest there were.
type extremes struct {
	span    float64 // ns between the shortest delay of a reference and the longest
	longest float64 // ns that a packet took to send
	slack   float64 // ns that stamps may be off
}

const (
	qualityFields = 14
	sumFields     = 11 // of these
)

// list returns all fields in the order of the encoding.
func (q *quality) list() [qualityFields]*float64 {
	return [...]*float64{&q.references, &q.packets, &q.seen, &q.told, &q.sum, &q.squares, &q.predicted, &q.blur, &q.twins, &q.common,
		&q.commonest, &q.span, &q.longest, &q.slack}
}

func (q *quality) add(b *quality) {
	theirs := b.list()
	for i, x := range q.list() {
		if i < sumFields {
			*x += *theirs[i]
		} else {
			*x = max(*x, *theirs[i])
		}
	}
}

// learn takes in a residual.
func (q *quality) learn(off, predicted, packets float64) {
	q.references++
	q.packets += packets
	q.seen += packets * off * off
	q.told += packets * predicted * predicted
	q.sum += packets * off
	q.squares += packets * packets * off * off
	q.predicted += packets * predicted
}

// A twin is the latest residual of a flow.
type twin struct {
	flow   hashing.Flow
	off    float64
	number uint32 // of the reference
}

// twinsApart is how many references two residuals of one flow must be apart: the
// estimates of neighbours rest on each other.
const twinsApart = 3

// meet compares a residual with the one before of the same flow.
func (r *Receiver) meet(f hashing.Flow, off float64) {
	if f == 0 {
		return
	}
	t := &r.twins[uint64(f)%uint64(len(r.twins))]
	if t.flow == f && r.gap-t.number < twinsApart {
		return
	}
	if t.flow == f {
		q := &r.quality
		q.twins++
		q.common += off * t.off
		q.commonest += off * off * t.off * t.off
	}
	*t = twin{f, off, r.gap}
}

// test estimates the left reference from the line between the one before it
// and the right one or, with Left, the right one from the left one.
func (r *Receiver) test(right mark) {
	q, e := &r.quality, r.order.extent()
	q.span = max(q.span, float64(e.high-e.low))
	q.slack = max(q.slack, r.slack)
	if !r.left.seen || r.method != Left && !r.earlier.seen {
		return
	}
	told, off := &r.left, 0.0
	if r.method == Left {
		told = &right
		off = float64(r.left.delay - right.delay)
	} else {
		line := r.lineBetween(&r.earlier, &right)
		off = line.at(r.left.departed) - float64(r.left.delay)
	}
	predicted, n := math.Sqrt(r.lineError), float64(told.packets)
	r.tested++
	r.lineError += (off*off - r.lineError) / min(float64(r.tested), rounds)
	if b := &r.probe; b.told {
		b.told = false
		busy := b.wait - b.at.wait
		r.contest.add(off, busy, n)
		if r.bridging() {
			off, predicted = busy, b.spread
		}
	}
	predicted = math.Hypot(predicted, r.slack)
	q.learn(off, predicted, n)
	if r.link.pinned() {
		q.blur += r.link.blur()
	}
	r.meet(told.flow, off/predicted)
}

// lineSpread is the predicted error of a packet on a line: what it was lately,
// and more if the line has one end only.
func (r *Receiver) lineSpread(right *mark) float64 {
	if right == nil || !r.left.seen {
		return 2 * math.Sqrt(r.lineError)
	}
	return math.Sqrt(r.lineError)
}
