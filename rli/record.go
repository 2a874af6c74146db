package rli

import (
	"math"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// A record is what is kept of a flow: a cache line. Delays are relative to the first packet's. Errors of different
// stretches, between two references and of one busy period, are taken to be independent.
type record struct {
	flow        hashing.Flow
	tally       uint64  // count and stretches
	base        int64   // the first packet's delay
	sum         int64   // m(f), eq. (3)
	squares     float64 // v(f), eq. (4)
	error       float32 // predicted square of the sum's error up to the latest stretch: squares of stretches' errors
	fourths     float32 // sum of the squares of these, by 2^64
	partial     float32 // predicted errors of the packets in the latest stretch
	first, last uint32  // numbers of stretches
	doubtful    uint32  // packets whose estimate rests on what is doubtful, and why
}

const recordSize = 64

// A tally counts packets in its low bits, and above them, up to a limit, stretches.
const (
	countBits     = 48
	countMask     = 1<<countBits - 1
	mostStretches = 1<<(64-countBits) - 1
)

// count returns the number of packets, c(f), eq. (2): 0 if there is no record.
func (r *record) count() uint64     { return r.tally & countMask }
func (r *record) stretches() uint64 { return r.tally >> countBits }

// atMost returns how many stretches there may be.
func (r *record) atMost() float64 {
	if n := r.stretches(); n < mostStretches {
		return float64(max(n, 1))
	}
	return float64(max(r.count(), mostStretches))
}

// variance returns the predicted square of the sum's error. Half of the last digit may be lost at each stretch.
func (r *record) variance() float64 { return float64(r.error) * (1 + r.atMost()*0x1p-25) }

// enter counts packets of a stretch, with the sum of their predicted errors, which go together.
func (r *record) enter(n uint64, stretch uint32, errors float32) {
	if r.last != stretch {
		r.begin(stretch, 1)
	}
	r.tally += n
	r.partial += errors
}

// begin ends the latest stretch, begins another, and counts so many more. It is not inlined, so that enter can be.
//
//go:noinline
func (r *record) begin(stretch uint32, more uint64) {
	r.tally = min(r.stretches()+more, mostStretches)<<countBits | r.count()
	small := r.partial * 0x1p-16
	r.vary(r.partial*r.partial, small*small*small*small)
	r.last, r.partial = stretch, 0
}

func (r *record) vary(error, fourths float32) {
	r.error = min(r.error+error, math.MaxFloat32)
	r.fourths = min(r.fourths+fourths, math.MaxFloat32)
}

// alike returns how many stretches with errors of one size would make a sum as uncertain: if few errors are large, few.
func (r *record) alike() float64 {
	if r.fourths == 0 {
		return r.atMost()
	}
	return max(float64(r.error)*float64(r.error)/0x1p64/float64(r.fourths), 1)
}

func (r *record) add(delay int64) {
	d := delay - r.base
	r.sum += d
	r.squares += float64(d) * float64(d)
}

// merge adds all packets of b, in a stretch.
func (r *record) merge(b record, stretch uint32) {
	if r.count() == 0 {
		*r = b
		r.first, r.last = stretch, stretch
		return
	}
	if r.last != stretch {
		r.begin(stretch, 0)
	}
	b.rebase(r.base)
	r.tally = min(r.stretches()+b.stretches(), mostStretches)<<countBits | (r.count()+b.count())&countMask
	r.sum, r.squares = r.sum+b.sum, r.squares+b.squares
	r.vary(b.error, b.fourths)
	r.doubt(doubts(b.doubtful&allDoubts), uint64(b.doubtful>>doubtBits))
}

// rebase makes delays relative to another one: Σ(x+s)² = Σx² + 2sΣx + ns².
func (r *record) rebase(base int64) {
	step, n := float64(r.base-base), float64(r.count())
	r.squares += step * (2*float64(r.sum) + n*step)
	r.sum, r.base = r.sum+int64(r.count())*(r.base-base), base
}

// seal makes a record ready to leave the receiver: its base is then the mean, rounded down.
func (r *Receiver) seal(f record) record {
	n := int64(f.count())
	if n == 0 {
		return f
	}
	if r.across(&f) {
		f.doubt(stepOfClock, f.count())
	}
	f.begin(0, 0)
	f.first = 0
	f.rebase(f.base + (f.sum-(f.sum%n+n)%n)/n)
	f.squares = max(f.squares, 0)
	return f
}

// delay returns the estimate of the record, eq. (5) and (6).
func (r *record) delay() estimate.Delay {
	n, mean := float64(r.count()), float64(r.sum)/float64(r.count())
	return estimate.Delay{Mean: float64(r.base) + mean, StdDev: math.Sqrt(max(r.squares/n-mean*mean, 0)), N: r.count()}
}
