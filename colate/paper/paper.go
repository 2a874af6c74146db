// Package paper is COLATE as in the paper, for comparison; package colate is for use. A recorder is one epoch,
// in which no counter overflows and nothing is lost.
//
// # Source
//
// M. Shahzad, A. X. Liu, Noise Can Help: Accurate and Efficient Per-flow Latency Measurement without Packet
// Probing and Time Stamping, SIGMETRICS 2014. There counters have 19 bits, in a unit that it does not name: so
// wide a sum of timestamps shows a delay only if the clock ticks while a packet is on its way.
//
//	paper        here                                      where
//	n            Config.Counters                           §3.1
//	m            Config.PerFlow                            §3.1
//	C_X          the counters of a [Recorder]              §3.1
//	H(f, j)      position                                  §3.1
//	t_X          Recorder.fill                             §3.2
//	t̃_f,X        Recorder.timeSum, eq. (4)                 §4.1
//	μ̃_f          [Theorem2], eq. (3)                       §4.1
//
// The paper's deviation (§4.2) is not here: no experiment asks for it.
package paper

import (
	"fmt"
	"math"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// A Config holds every size of a recorder.
type Config struct {
	// Identity keys the hash that maps a flow to its counters. Two points with
	// the same Identity and Counters map flows alike.
	Identity uint64
	// Counters is the number of counters (n): more than PerFlow.
	Counters int
	// PerFlow is the number of counters that the packets of one flow are
	// spread over (m), an even number from 2 on.
	PerFlow int
	// TimeBits is the width of a time stamp, 1 to 63: the clock in nanoseconds, modulo 2^TimeBits.
	TimeBits uint8
}

// A Recorder is one point in one epoch (§3.1). It is not safe for concurrent use.
type Recorder struct {
	Sums []uint64 // of the timestamps in each counter

	config Config
	fill   uint64 // the sum of all timestamps (t_X)
}

// New returns an empty recorder. The error wraps [estimate.ErrConfig].
func New(c Config) (*Recorder, error) {
	if c.PerFlow < 2 || c.PerFlow%2 != 0 || c.Counters <= c.PerFlow || c.TimeBits < 1 || c.TimeBits > 63 {
		return nil, fmt.Errorf("paper: %w: %+v", estimate.ErrConfig, c)
	}
	return &Recorder{config: c, Sums: make([]uint64, c.Counters)}, nil
}

// Update records that packet p of flow f passed at time t, in nanoseconds since an epoch that all points share.
// The paper draws j at random. Here the packet's digest decides, so that two points agree.
func (r *Recorder) Update(f hashing.Flow, p hashing.Packet, t int64) {
	stamp := uint64(t) & (1<<r.config.TimeBits - 1)
	r.Sums[r.position(f, hashing.Row(uint64(p), uint64(r.config.PerFlow)))] += stamp
	r.fill += stamp
}

// position returns where counter H(f, j) of a flow is (§3.1).
func (r *Recorder) position(f hashing.Flow, j uint64) uint64 {
	return hashing.Row(hashing.Mix(uint64(f)^r.config.Identity, j), uint64(r.config.Counters))
}

// Positions appends the positions of a flow's counters to dst.
func (r *Recorder) Positions(dst []uint32, f hashing.Flow) []uint32 {
	for j := range uint64(r.config.PerFlow) {
		dst = append(dst, uint32(r.position(f, j)))
	}
	return dst
}

// timeSum estimates the sum of the flow's timestamps (Theorem 2, eq. (4)).
func (r *Recorder) timeSum(f hashing.Flow) float64 {
	n, m := float64(r.config.Counters), float64(r.config.PerFlow)
	var sum uint64
	for _, at := range r.Positions(nil, f) {
		sum += r.Sums[at]
	}
	return (n*float64(sum) - m*float64(r.fill)) / (n - m)
}

// Theorem2 returns the paper's mean delay of the flow in nanoseconds, eqs. (3) and (4). If the two points have
// different numbers of counters, the noise of others' timestamps does not cancel.
func Theorem2(up, down *Recorder, f hashing.Flow, packets uint64) float64 {
	return (down.timeSum(f) - up.timeSum(f)) / float64(packets)
}

// Theorem2Interval returns the interval of [Theorem2] that follows from the paper's reliability analysis (§5,
// eqs. 11, 12, 21). It assumes that each point's sum has the variance of eq. (2), as if its time units, and not
// its packets, were spread over the counters one by one. For real traffic it is too narrow by the square root
// of the number of units in a timestamp; the finer the unit, the worse.
func Theorem2Interval(up, down *Recorder, f hashing.Flow, packets uint64, confidence float64) estimate.Interval {
	deviations := math.Sqrt2 * math.Erfinv((1+confidence)/2) // eq. (11)
	mean, half := Theorem2(up, down, f, packets), deviations*(up.unitDeviation(f)+down.unitDeviation(f))/float64(packets)
	return estimate.Interval{Low: mean - half, High: mean + half, Confidence: confidence}
}

// unitDeviation returns the deviation of timeSum by the variance of a counter, eq. (2): h·√m·n/(n−m).
func (r *Recorder) unitDeviation(f hashing.Flow) float64 {
	n, m, total := float64(r.config.Counters), float64(r.config.PerFlow), float64(r.fill)
	own := min(max(r.timeSum(f), 0), total)
	return math.Sqrt(m*(own/m*(1-1/m)+(total-own)/n*(1-1/n))) * n / (n - m)
}
