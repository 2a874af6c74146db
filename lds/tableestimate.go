package lds

import (
	"fmt"
	"math"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

var errNotHeld = fmt.Errorf("%w: a table does not hold the flow", errNoSamples)

// EstimateTable returns the delay of flow f from both points' tables of one interval. Mean is that of the packets in those of the
// flow's cells that lost none: exact if none did, and otherwise from a sample, whose interval rests on how far apart packets and
// means of the table's flows are. StdDev is count-conditioned over these cells. Share is the part of the flow's packets that
// arrived while it was held, 1 if all did. For the earlier ones, the interval allows for delays that rise steadily.
//
// Packets that cross an end of the interval count as lost at one point or the other, and slow ones cross more
// often, so the interval should be long compared with the delays. MeanInterval is unbounded if many packets
// arrive twice, or if too few flows show how far packets are apart.
//
// It returns [estimate.ErrNoSamples] if the points do not both hold the flow, or if all of its cells lost
// packets, and [estimate.ErrMismatch] if the Configs or the intervals differ.
func EstimateTable(up, down *Table, f hashing.Flow) (Result, error) {
	if made(up != nil && down != nil && up.buckets > 0, "Table"); up.config != down.config {
		return Result{}, mismatch(up.config, down.config)
	}
	if err := up.stamp.match(down.stamp); err != nil {
		return Result{}, err
	}
	sent, received := up.room(f), down.room(f)
	if sent == nil || received == nil {
		return Result{}, errNotHeld
	}
	result := Result{Sent: sent.packets(), Received: received.packets()}
	result.Lost = result.Sent - min(result.Sent, result.Received)
	b := tableBucket{up: up, down: down, first: up.bucket(f) * bucketFlows}
	b.each(func(f hashing.Flow) bool { // look for a centre of few packets, and for copies
		b.cells(f, func(up, down *cell) { b.around.look(up, down, b.up.config.SumBits) })
		if sent, received := b.up.room(f), b.down.room(f); sent != nil && received != nil {
			b.balance.add(float64(sent.packets()), float64(received.packets()))
		}
		return b.around.packets == 1 || b.around.packets == 2
	})
	own := b.read(f)
	if own.cells == 0 {
		return result, errUnlike
	}
	beyond := own.sum / own.packets
	result.Usable, result.N, result.DegreesOfFreedom = int(own.cells), uint64(own.packets), uint64(own.cells-1)
	result.Mean = float64(b.around.delay) + beyond
	if own.cells > 1 {
		result.StdDev = math.Sqrt(own.variance())
	}
	// A point that reserved room for the flow missed none: noLimit + 1 is 0.
	before := max(1, float64(max(sent.before+1, received.before+1))) - 1
	result.Share = float64(result.Received) / (float64(result.Received) + before)
	// Packets that are in no cell that was read: of the held ones a random part, and those before it was admitted:
	// a geometric number, of twice its mean's square on average, and √3 deviations off if delays rise steadily.
	left, early := max(0, 1/own.packets-1/float64(result.Received)), 1-result.Share
	if part := left + 6*early*early; part > 0 || result.Received > result.Sent {
		variance, times := b.others(f, beyond)
		if part > 0 {
			result.MeanError = math.Sqrt(part * variance)
		}
		result.Late = b.late(1-float64(result.Sent)/float64(result.Received), early, times)
	}
	if copied(float64(result.Sent), float64(result.Received)) {
		result.MeanError = math.Inf(1)
	}
	result.MeanError += rounding * (math.Abs(result.Mean) + math.Abs(beyond))
	return result, nil
}

// rounding is the relative error of a mean that is exact except for its rounding.
const rounding = 1e-15

// A tableBucket has flows that tell each other the offset of the clocks and how much packets of a flow differ.
type tableBucket struct {
	up, down *Table
	first    int
	around   centre
	balance
}

// cells calls do for the cells of a flow that lost nothing.
func (b *tableBucket) cells(f hashing.Flow, do func(up, down *cell)) {
	sent, received, c := b.up.room(f), b.down.room(f), &b.up.config
	if sent == nil || received == nil {
		return
	}
	for k := range sent.cells {
		u, d := &sent.cells[k], &received.cells[k]
		if u.count() > 0 && same(u, d, c.DigestBits) && fits(uint64(u.count()), c.SumBits, reach) {
			do(u, d)
		}
	}
}

// each calls do for the flows of the bucket, and of the next ones until there are enough.
func (b *tableBucket) each(do func(f hashing.Flow) (enough bool)) {
	for i, n := 0, len(b.up.keys); i < n; i++ {
		if do(b.up.keys[(b.first+i)%n]) && i%bucketFlows == bucketFlows-1 {
			return
		}
	}
}

func (b *tableBucket) read(f hashing.Flow) (s scatter) {
	b.cells(f, func(up, down *cell) { s.add(b.around.beyond(up, down, b.up.config.SumBits), float64(up.count())) })
	return s
}

// farDegrees are degrees of freedom that tell a variance where one packet in five hundred is slow.
const farDegrees = 2048

// others returns the variance of the delays of flow f's packets, and that of the times at which packets were sent. The flow
// has at most three cells, so other flows tell, those of its bucket and of the next ones. The packets of a flow that
// differs from others may be as far from each other as it is from them. If hardly any flow has two cells, that is infinite.
func (b *tableBucket) others(f hashing.Flow, mean float64) (variance, times float64) {
	origin, known := b.around.origin(&b.up.stamp)
	squares, degrees := 0.0, 0.0
	var means estimate.Moments
	var sent scatter
	b.each(func(other hashing.Flow) bool {
		s := b.read(other)
		b.cells(other, func(up, _ *cell) {
			if n := up.count(); n <= fewPackets {
				sent.add(up.since(origin, b.up.config.SumBits), float64(n))
			}
		})
		if other == f || s.cells == 0 {
			return false
		}
		if means.Add(s.sum / s.packets); s.cells > 1 {
			squares += s.variance() * (s.cells - 1)
			degrees += s.cells - 1
		}
		return degrees >= farDegrees
	})
	if variance, times = squares/degrees+sq(mean-means.Mean()), sent.variance(); degrees < intervalDegrees {
		variance = math.Inf(1)
	}
	if !known || sent.cells <= intervalDegrees {
		times = math.Inf(1)
	}
	return variance, times
}
