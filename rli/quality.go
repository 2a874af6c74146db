package rli

import (
	"math"

	"github.com/hoplag/hoplag/hashing"
)

// quality records how far off estimates of references are, each made from its neighbours as if it had not come,
// on behalf of all packets since the one before. A residual is an error over a typical predicted one.
type quality struct { // sums:
	references float64
	seen       float64 // squares of errors, for each packet
	told       float64 // squares of predicted errors
	squares    float64 // of the terms of lean
	packets    float64 // that references stand for
	fourths    float64 // squares of those squares
	foretold   float64 // squares of predicted squares
	twins      float64 // mean squares of the residuals of pairs of one flow
	common     float64 // their products
	commonest  float64 // squares of these
	gone       float64 // references lost while no packet was
	lean       float64 // errors, for each packet: how far off the mean of all is
	behind     float64 // ns that packets may have waited for references ahead, or less for pauses there, beyond estimates
	late       float64 // ns that they may be off because the sender pauses at references
	// The largest there were:
	span  float64 // ns between the shortest delay of a reference and the longest
	slack float64 // ns that stamps may be off
	held  float64 // ns that the sender pauses at references
}

const (
	qualityFields = 17
	sumFields     = 14   // the first of them
	twinsApart    = 3    // references: the estimates of neighbours rest on each other
	twins         = 4096 // flows whose references are compared
	twinSize      = 24
)

// list is in the order of the encoding.
func (q *quality) list() [qualityFields]*float64 {
	return [...]*float64{&q.references, &q.seen, &q.told, &q.squares, &q.packets, &q.fourths, &q.foretold, &q.twins, &q.common,
		&q.commonest, &q.gone, &q.lean, &q.behind, &q.late, &q.span, &q.slack, &q.held}
}

func (q *quality) add(b *quality) {
	mine, theirs := q.list(), b.list()
	add(mine[:sumFields], theirs[:sumFields])
	q.span, q.slack, q.held = max(q.span, b.span), max(q.slack, b.slack), max(q.held, b.held)
}

// stamps returns the variance of a packet's delay that is of stamps.
func (q *quality) stamps() float64 { return (q.slack*q.slack-tolerance*tolerance)/9 + rounding }

// A trend is a mean of which older values fade.
type trend struct {
	mean float64
	n    int
}

func (t *trend) add(x float64) {
	t.n = min(t.n+1, 256)
	t.mean += (x - t.mean) / float64(t.n)
}

// A twin is what the residuals of a flow add up to.
type twin struct {
	flow            hashing.Flow
	sum, squares, n float32
	number          uint32 // of the latest reference
}

// meet compares a residual with all before of the same flow.
func (r *Receiver) meet(f hashing.Flow, off float64) {
	if f == 0 {
		return
	}
	off = min(max(off, -3), 3) // so that no single one decides
	t := &r.twins[uint64(f)%twins]
	if t.flow != f {
		*t = twin{flow: f}
	} else if r.gap-t.number < twinsApart {
		return
	}
	q, sum, x := &r.quality, float64(t.sum), float32(off)
	q.twins += (float64(t.n)*off*off + float64(t.squares)) / 2
	q.common += off * sum
	q.commonest += off * off * sum * sum
	t.sum, t.squares, t.n, t.number = t.sum+x, t.squares+x*x, t.n+1, r.gap
}

// alike returns the part of their errors that a flow's stretches have in common: what pairs of errors say and what
// chance may hide. If pairs tell it to within an eighth, the latter is not added, but returned as hidden.
func (q *quality) alike() (part, hidden float64) {
	chance := math.Sqrt(q.commonest)
	if q.twins == 0 {
		return 1, 0
	} else if q.twins > math.Sqrt(enough)*chance {
		hidden, chance = chance/q.twins, 0
	}
	return min((max(q.common, 0)+chance)/q.twins, 1), hidden
}

// test estimates the left reference from its neighbours or, with Left, the right one from the left.
func (r *Receiver) test(right mark) {
	q, e := &r.quality, r.order.extent()
	q.span, q.slack = max(q.span, float64(e.high-e.low)), max(q.slack, r.slack)
	if !r.left.seen || r.config.Method != Left && !r.earlier.seen {
		return
	}
	line, of := lineBetween(&r.earlier, &right), &r.left
	// The delay of a packet that is larger than its neighbours is longer than the line's.
	larger := float64(of.bytes) - float64(r.earlier.bytes+right.bytes)/2
	if r.config.Method == Left {
		line, of, larger = lineBetween(&r.left, nil), &right, float64(right.bytes-r.left.bytes)
	}
	off, n := line.at(of.departed)-float64(of.delay), float64(of.packets)
	predicted, cell := r.expect(&line)
	r.lines.learn(cell, off*off, r.lineError.mean, 1)
	r.lineError.add(off * off)
	r.fourths.add(off * off * off * off)
	r.bySize.learn(larger*(larger*r.perLineByte()-off), larger*larger, 0)
	if b := &r.class.probe; b.told {
		b.told = false
		if r.bridging() {
			off, predicted = b.estimated-b.wait, b.expected
		}
	}
	predicted = math.Hypot(predicted, r.slack)
	q.references++
	q.seen += n * off * off
	q.told += n * predicted * predicted
	q.lean += n * off
	q.squares += n * off * n * off
	q.fourths += n * off * off * n * off * off
	q.foretold += n * predicted * predicted * n * predicted * predicted
	q.packets += n
	r.meet(of.flow, off/math.Sqrt(q.told/q.packets))
}
