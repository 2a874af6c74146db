package rli

import (
	"math"
	"math/bits"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// A record is what is kept of a flow: eight words, a cache line. Delays are
// kept as differences from the receiver's origin, one of the delays that it
// saw, so that no clock offset makes the sums large; and as whole nanoseconds,
// so that the order of packets and merges makes no difference.
type record struct {
	flow        hashing.Flow
	tally       uint64 // count and gaps
	first, last int64  // departures of its first and latest packet
	bytes       uint64
	sum         int64 // m(f), eq. (3)
	squares     wide  // v(f), eq. (4)
}

const recordSize = 64

// A tally counts packets, in its low bits, and above them between how many pairs
// of references they came, up to a limit.
const (
	countBits = 48
	countMask = 1<<countBits - 1
	maxGaps   = 1<<(64-countBits) - 1
)

// count is the number of packets: c(f), eq. (2); 0 where there is no record.
func (r *record) count() uint64 { return r.tally & countMask }

// gaps is between how many pairs of references they came: their errors within one
// are much the same.
func (r *record) gaps() uint64 { return r.tally >> countBits }

// enter counts a gap if the flow's packet is the first after its left reference
// departed.
func (r *record) enter(left int64) {
	if r.last <= left && r.tally>>countBits < maxGaps || r.tally>>countBits == 0 {
		r.tally += 1 << countBits
	}
}

// merge accumulates all packets of b.
func (r *record) merge(b *record) {
	if b.count() == 0 {
		return
	}
	if r.count() == 0 {
		*r = *b
		return
	}
	r.first, r.last = min(r.first, b.first), max(r.last, b.last)
	r.tally = min(r.gaps()+b.gaps(), maxGaps)<<countBits | (r.count()+b.count())&countMask
	r.bytes += b.bytes
	r.sum += b.sum
	r.squares.add(b.squares)
}

// shift moves the origin down by step, so that all differences grow by it:
//
//	Σ(x+s)² = Σx² + 2sΣx + ns²
func (r *record) shift(step int64) {
	r.squares.add(product(2*step, r.sum))
	r.squares.add(product(int64(r.count())*step, step))
	r.sum += int64(r.count()) * step
}

// result is the record as an estimate, eq. (5) and (6).
func (r *record) result(origin int64) Result {
	n := int64(r.count())
	middle := floorDivide(r.sum, n)
	rest := float64(r.sum-n*middle) / float64(n) // mean less middle
	around := *r
	around.shift(-middle)
	variance := around.squares.float()/float64(n) - rest*rest
	return Result{
		Delay: estimate.Delay{
			Mean:   float64(origin+middle) + rest,
			StdDev: math.Sqrt(max(variance, 0)),
			N:      r.count(),
		},
		Bytes: r.bytes,
		First: r.first,
		Last:  r.last,
		gaps:  r.gaps(),
	}
}

// floorDivide is x/n rounded down, n over 0, so that it does not depend on
// where the origin is.
func floorDivide(x, n int64) int64 {
	q := x / n
	if x%n < 0 {
		q--
	}
	return q
}

// A wide is a number of 128 bits in two's complement.
type wide struct{ high, low uint64 }

func (w *wide) add(b wide) {
	var carry uint64
	w.low, carry = bits.Add64(w.low, b.low, 0)
	w.high, _ = bits.Add64(w.high, b.high, carry)
}

// float is the value of a number that is not negative.
func (w wide) float() float64 {
	return float64(w.high)*(1<<64) + float64(w.low)
}

// product is x·y, exactly.
func product(x, y int64) wide {
	high, low := bits.Mul64(magnitude(x), magnitude(y))
	if x < 0 == (y < 0) {
		return wide{high, low}
	}
	low, borrow := bits.Sub64(0, low, 0)
	return wide{-high - borrow, low}
}

func magnitude(x int64) uint64 {
	if x < 0 {
		return -uint64(x)
	}
	return uint64(x)
}
