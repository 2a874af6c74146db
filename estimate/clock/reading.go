package clock

import (
	"fmt"
	"math"

	"github.com/hoplag/hoplag/estimate"
)

// A Reading says how far the far point's clock is ahead of the near point's at a time, and how sure that is.
type Reading struct {
	Time   int64   `json:",string"` // by the near point's clock; text in JSON, whose numbers have 53 bits
	Offset float64 // nanoseconds that the far clock is ahead
	Drift  float64 // by how much faster it runs, as a fraction: 3e-5 is 30 ppm

	// Certain holds the offset whatever the delays were, since none is negative. It is about as wide as the shortest round trip, and its
	// Confidence is 1. It relies on all samples but [Config.Outliers] of them, on the limits of the Config, and on the clock running as
	// before until a sample shows a step, which is the first one afterwards that queues delay by less than the step. If samples leave open
	// whether there was a step, the interval is unbounded.
	//
	// Likely holds the offset with a probability of at least Confidence if the least delays of the two
	// directions differ by no more than [Config.Asymmetry].
	Certain, Likely estimate.Interval

	// CertainDrift and LikelyDrift are the same for the drift.
	CertainDrift, LikelyDrift estimate.Interval

	// RoundTrip is the shortest round trip seen, in nanoseconds: the least delay there plus the least delay back.
	RoundTrip float64

	// Stepped says that the clock stepped, or suddenly changed its rate, in the latest interval, near Time or
	// after it. Certain and Likely then hold the offsets before and after.
	Stepped bool
}

// At returns the reading at a time by the near point's clock. The farther the time is from the latest interval,
// the wider the reading's intervals.
//
// If the offset is not known, for example with samples of one direction only, the error wraps
// [estimate.ErrNoSamples], and the intervals have no ends.
func (t *Tracker) At(time int64) (Reading, error) {
	if !t.known {
		why := "offset of clocks needs both directions"
		if t.both {
			why = "samples of both directions contradict each other: a drift beyond MaxDrift, or other packets"
		}
		drifts := estimate.Interval{Low: -t.config.MaxDrift, High: t.config.MaxDrift, Confidence: 1}
		r := Reading{Time: time, Certain: anywhere, Likely: anywhere, CertainDrift: drifts, LikelyDrift: drifts, RoundTrip: math.Inf(1)}
		return r, fmt.Errorf("clock: %w: %s", estimate.ErrNoSamples, why)
	}
	r := t.reading(t.now, time)
	if t.stepped && time <= t.cut {
		r = t.reading(t.before, time).and(r)
		r.Stepped = true
	}
	if time > t.doubtFrom {
		r.Certain, r.Likely = anywhere, anywhere
	}
	return r, nil
}

var anywhere = estimate.Interval{Low: math.Inf(-1), High: math.Inf(1), Confidence: 1}

// Between returns the reading of the middle of an interval, for packets whose times in it are not known: the intervals hold
// at any time of it. The error is that of [Tracker.At].
func (t *Tracker) Between(from, to int64) (Reading, error) {
	r, err := t.At(from + (to-from)/2)
	for _, end := range [2]int64{from, to} { // what lines allow is widest at the ends
		other, _ := t.At(end)
		r = r.and(other)
	}
	return r, err
}

// and returns r with intervals that also contain those of s.
func (r Reading) and(s Reading) Reading {
	r.Certain, r.Likely = union(r.Certain, s.Certain), union(r.Likely, s.Likely)
	r.CertainDrift, r.LikelyDrift = union(r.CertainDrift, s.CertainDrift), union(r.LikelyDrift, s.LikelyDrift)
	r.Stepped = r.Stepped || s.Stepped
	return r
}

// Within returns r with what its intervals have in common with those of another reading of the same clocks, where that is
// something. Its offset is the middle of Likely, which lies in Certain where they meet, and its drift that of LikelyDrift.
func (r Reading) Within(s Reading) Reading {
	r.Certain = meet(r.Certain, s.Certain)
	r.CertainDrift, r.LikelyDrift = meet(r.CertainDrift, s.CertainDrift), meet(r.LikelyDrift, s.LikelyDrift)
	in := meet(r.Certain, r.Likely)
	r.Likely.Low, r.Likely.High = in.Low, in.High
	r.Offset, r.Drift = in.Low+(in.High-in.Low)/2, r.LikelyDrift.Low+(r.LikelyDrift.High-r.LikelyDrift.Low)/2
	return r
}

// Allow returns r where the least delays of the two directions may differ by so much more, or by anything if that is infinite.
func (r Reading) Allow(asymmetry float64) Reading {
	wide := r
	wide.Likely.Low, wide.Likely.High = r.Likely.Low-asymmetry/2, r.Likely.High+asymmetry/2
	return wide.Within(r)
}

// meet returns what two intervals have in common, or the first if that is nothing.
func meet(a, b estimate.Interval) estimate.Interval {
	if low, high := max(a.Low, b.Low), min(a.High, b.High); low <= high {
		a.Low, a.High = low, high
	}
	return a
}

func union(a, b estimate.Interval) estimate.Interval {
	return estimate.Interval{Low: min(a.Low, b.Low), High: max(a.High, b.High), Confidence: min(a.Confidence, b.Confidence)}
}

const likely = 0.95 // confidence of likely intervals

// reading returns what a fit says about a time.
func (t *Tracker) reading(f *fit, time int64) Reading {
	x := float64(time - f.origin)
	b := float64(t.base)
	strayed := t.config.Wander * math.Abs(x)
	floor := max(0, f.margin-f.excess-t.config.Asymmetry/2)
	offset := b + f.offset + f.drift*x
	// If the samples leave only one line, its two sides meet except for rounding: an interval contains its estimate in any case.
	within := func(low, high, by, middle, confidence float64) estimate.Interval {
		return estimate.Interval{Low: min(low-by, middle), High: max(high+by, middle), Confidence: confidence}
	}
	interval := func(margin, confidence float64) (offsets, drifts estimate.Interval) {
		low, high := f.offsets(margin, x)
		offsets = within(b+low, b+high, strayed, offset, confidence)
		low, high = f.drifts(margin)
		return offsets, within(low, high, t.config.Wander, f.drift, confidence)
	}
	r := Reading{Time: time, Offset: offset, Drift: f.drift, RoundTrip: 2 * f.margin}
	r.Certain, r.CertainDrift = interval(-f.short, 1)
	r.Likely, r.LikelyDrift = interval(floor, likely)
	return r
}

// Reverse returns the same reading as the far point sees it, for delays from there to the near point.
func (r Reading) Reverse() Reading {
	r.Offset, r.Drift = -r.Offset, -r.Drift
	for _, i := range []*estimate.Interval{&r.Certain, &r.Likely, &r.CertainDrift, &r.LikelyDrift} {
		i.Low, i.High = -i.High, -i.Low
	}
	return r
}

// Subtract subtracts the reading from a delay that was measured from the near point to the far one; for one measured back, use
// [Reading.Reverse]. The mean is then as uncertain as the offset. The reading must be of the packets' mean time: the drift between that
// and the reading's time is an error that no interval includes, and that cells corrected one by one do not have ([Reading.NearSum]).
// spread is the standard deviation of the packets' times, in nanoseconds, over which the drift widened the delays: for an evenly filled
// interval of length T it is T/√12.
func (r Reading) Subtract(measured estimate.Delay, spread float64) estimate.Delay {
	variance := measured.StdDev*measured.StdDev - r.Drift*r.Drift*spread*spread
	measured.Mean -= r.Offset
	measured.StdDev = math.Sqrt(max(0, variance))
	return measured
}

// NearTime returns what the near clock says when the far clock says far. It is for timestamps that travel, such
// as those of RLI's reference packets.
func (r Reading) NearTime(far int64) int64 {
	return int64(r.NearSum(uint64(far), 1, 64))
}

// NearSum returns what the timestamps of a cell of the far point, which add up to sum modulo 2^bits, would add up to by the near clock,
// modulo 2^64. It is right for every packet, whenever in the interval it passed; and so is everything that a synopsis says of delays, once
// its far point's cells are corrected. The reading must be of the middle of the interval: the packets' times may differ from it by
// 2^(bits-1) ns in total, which at 40 bits is nine minutes. A reading that is not a number panics.
func (r Reading) NearSum(sum uint64, packets uint64, bits int) uint64 {
	if math.IsNaN(r.Offset + r.Drift) {
		panic("clock: a reading that is not a number")
	}
	whole := math.Floor(r.Offset)
	early := packets * uint64(r.Time+int64(whole)) // as if all had come at the reading's time
	later := float64(estimate.SignExtend(sum-early, bits))
	later = (later - float64(packets)*(r.Offset-whole)) / (1 + r.Drift)
	return packets*uint64(r.Time) + uint64(int64(math.Round(later)))
}
