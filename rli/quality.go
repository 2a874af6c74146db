package rli

import (
	"math"

	"github.com/hoplag/hoplag/hashing"
)

// quality is how far off estimates of references are, each from its neighbours, as if it had not come,
// on behalf of all packets since the one before. Products of two residuals, errors over the predicted
// ones, of a flow show what its errors have in common.
type quality struct {
	references float64
	seen       float64 // squares of errors, for each packet
	told       float64 // squares of predicted errors
	squares    float64 // of their sums over the packets of each reference
	packets    float64 // that references stand for
	fourths    float64 // squares of those squares
	twins      float64 // mean squares of the residuals of pairs of one flow
	common     float64 // their products
	commonest  float64 // squares of these
	gone       float64 // references lost while no packet was
	astray     float64 // references that waited for packets lost behind the link
	// The largest there were:
	span  float64 // ns between the shortest delay of a reference and the longest
	slack float64 // ns that stamps may be off
}

const (
	qualityFields = 13
	sumFields     = 11 // of these
)

func (q *quality) list() [qualityFields]*float64 {
	return [...]*float64{&q.references, &q.seen, &q.told, &q.squares, &q.packets, &q.fourths, &q.twins, &q.common,
		&q.commonest, &q.gone, &q.astray, &q.span, &q.slack}
}

func (q *quality) add(b *quality) {
	mine, theirs := q.list(), b.list()
	add(mine[:sumFields], theirs[:sumFields])
	q.span, q.slack = max(q.span, b.span), max(q.slack, b.slack)
}

// A trend is a mean of which older values fade.
type trend struct {
	mean float64
	n    int
}

func (t *trend) add(x float64) {
	t.n++
	t.mean += (x - t.mean) / float64(min(t.n, 256))
}

// A twin is what the residuals of a flow add up to.
type twin struct {
	flow         hashing.Flow
	sum, squares float64
	n            float64
	number       uint32 // of the latest reference
}

const twinsApart = 3 // references: the estimates of neighbours rest on each other

// meet compares a residual with all before of the same flow.
func (r *Receiver) meet(f hashing.Flow, off float64) {
	if f == 0 {
		return
	}
	off = min(max(off, -3), 3) // so that no single one decides
	t := &r.twins[uint64(f)%uint64(len(r.twins))]
	if t.flow != f {
		*t = twin{flow: f}
	} else if r.gap-t.number < twinsApart {
		return
	}
	q := &r.quality
	q.twins += (t.n*off*off + t.squares) / 2
	q.common += off * t.sum
	q.commonest += off * off * t.sum * t.sum
	t.sum, t.squares, t.n, t.number = t.sum+off, t.squares+off*off, t.n+1, r.gap
}

// alike returns the part of their errors that a flow's stretches have in common: all, until pairs
// of residuals tell it within an eighth; then none, unless it is three standard errors.
func (q *quality) alike() float64 {
	chance := math.Sqrt(q.commonest)
	if q.twins > math.Sqrt(enough)*chance && q.common <= 3*chance {
		return 0
	}
	if q.twins == 0 {
		return 1
	}
	return min((max(q.common, 0)+chance)/q.twins, 1)
}

// test estimates the left reference from its neighbours or, with Left, the right one from the left.
func (r *Receiver) test(right mark) {
	q, e := &r.quality, r.order.extent()
	q.span = max(q.span, float64(e.high-e.low))
	q.slack = max(q.slack, r.slack)
	if !r.left.seen || r.config.Method != Left && !r.earlier.seen {
		return
	}
	line, of := lineBetween(&r.earlier, &right), &r.left
	if r.config.Method == Left {
		line, of = lineBetween(&r.left, nil), &right
	}
	off := line.at(of.departed) - float64(of.delay)
	predicted, n := math.Sqrt(r.lineError.mean), float64(of.packets)
	r.lineError.add(off * off)
	// Of a packet that is larger than its neighbours, the delay is longer than the line's.
	larger := float64(of.bytes) - float64(r.earlier.bytes+right.bytes)/2
	if r.config.Method == Left {
		larger = float64(right.bytes - r.left.bytes)
	}
	r.bySize.learn(larger*(larger*r.perLineByte()-off), larger*larger, 0)
	if b := &r.class.probe; b.told {
		b.told = false
		busy := b.estimated - b.wait
		r.edge.add(n * (off*off - busy*busy))
		if r.bridging() {
			off, predicted = busy, b.expected
		}
	}
	predicted = math.Hypot(predicted, r.slack)
	q.references++
	q.seen += n * off * off
	q.told += n * predicted * predicted
	q.squares += n * n * off * off
	q.fourths += n * off * off * n * off * off
	q.packets += n
	r.meet(of.flow, off/predicted)
}
