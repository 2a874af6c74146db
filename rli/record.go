package rli

import (
	"math"
	"math/bits"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// A record is what is kept of a flow: eight words, a cache line. Delays are
// relative to the receiver's origin, one of the delays that it saw, so that no
// clock offset makes the sums large. They are whole nanoseconds, so that the
// order of packets and merges makes no difference.
//
// A gap is what is between two references. Errors of packets within one gap are
// taken to be the same but for their size, errors of different gaps to be
// independent: the square of the sum's error is the sum over gaps of the square
// of the sum over packets.
type record struct {
	flow    hashing.Flow
	tally   uint64  // count and gaps
	sum     int64   // m(f), eq. (3)
	squares wide    // v(f), eq. (4)
	error   float64 // predicted square of the sum's error

	partial     float32 // predicted error of the packets in the latest gap
	first, last uint32  // numbers of gaps
	doubtful    uint32  // packets whose estimate rests on what is doubtful, and why
}

const recordSize = 64

// A tally counts packets in its low bits. Above them it counts, up to a limit,
// the gaps that the packets came in.
const (
	countBits = 48
	countMask = 1<<countBits - 1
	maxGaps   = 1<<(64-countBits) - 1
)

// count returns the number of packets, c(f), eq. (2). It is 0 if there is no
// record.
func (r *record) count() uint64 { return r.tally & countMask }

// gaps returns the number of gaps that the packets came in.
func (r *record) gaps() uint64 { return r.tally >> countBits }

// enter counts packets of a gap, with the sum of their predicted errors.
func (r *record) enter(n uint64, gap uint32, errors float32) {
	if r.last != gap {
		r.last, r.partial = gap, 0
		if r.gaps() < maxGaps {
			r.tally += 1 << countBits
		}
	}
	r.tally += n
	r.error += float64(errors) * float64(2*r.partial+errors)
	r.partial += errors
}

// merge adds all packets of b.
func (r *record) merge(b *record) {
	if b.count() == 0 {
		return
	}
	if r.count() == 0 {
		*r = *b
		return
	}
	r.tally = min(r.gaps()+b.gaps(), maxGaps)<<countBits | (r.count()+b.count())&countMask
	r.sum += b.sum
	r.squares.add(b.squares)
	r.error += b.error
	r.doubt(doubts(b.doubtful&allDoubts), uint64(b.doubtful>>doubtBits))
}

// shift moves the origin down by step, which adds step to all differences:
//
//	Σ(x+s)² = Σx² + 2sΣx + ns²
func (r *record) shift(step int64) {
	r.squares.add(product(2*step, r.sum))
	r.squares.add(product(int64(r.count())*step, step))
	r.sum += int64(r.count()) * step
}

// delay returns the estimate of the record, eq. (5) and (6).
func (r *record) delay(origin int64) estimate.Delay {
	n := int64(r.count())
	middle := floorDivide(r.sum, n)
	rest := float64(r.sum-n*middle) / float64(n) // mean less middle
	around := *r
	around.shift(-middle)
	variance := around.squares.float()/float64(n) - rest*rest
	return estimate.Delay{Mean: float64(origin+middle) + rest, StdDev: math.Sqrt(max(variance, 0)), N: r.count()}
}

// floorDivide returns x/n rounded down, for n above 0, so that the result does
// not depend on the origin.
func floorDivide(x, n int64) int64 {
	q := x / n
	if x%n < 0 {
		q--
	}
	return q
}

// A wide is a 128-bit number in two's complement.
type wide struct{ high, low uint64 }

func (w *wide) add(b wide) {
	var carry uint64
	w.low, carry = bits.Add64(w.low, b.low, 0)
	w.high, _ = bits.Add64(w.high, b.high, carry)
}

// float returns the value of a non-negative number.
func (w wide) float() float64 {
	return float64(w.high)*(1<<64) + float64(w.low)
}

// product returns x·y exactly.
func product(x, y int64) wide {
	high, low := bits.Mul64(magnitude(x), magnitude(y))
	if x < 0 == (y < 0) {
		return wide{high, low}
	}
	low, borrow := bits.Sub64(0, low, 0)
	return wide{-high - borrow, low}
}

// square is x·x.
func square(x int64) wide {
	size := magnitude(x)
	high, low := bits.Mul64(size, size)
	return wide{high, low}
}

func magnitude(x int64) uint64 {
	if x < 0 {
		return -uint64(x)
	}
	return uint64(x)
}
