package rli

import "math"

// An estimate is the mean of what a packet may have waited, and means are
// closer together than waits: a flow's 99th percentile of them is too low. So
// a histogram takes a draw from what the packet may have waited.
//
// A Bessel bridge is the distance from the origin of a Brownian bridge in
// three dimensions. The directions of its ends, at distances a and b, differ
// by an angle θ, where cos θ has a density proportional to exp(κ·cos θ), κ =
// ab/σ²T. At the fraction u,
//
//	w = |M + √v·N|,  M² = m² − 2u(1−u)·ab·(1−cos θ)
//
// where N is normal in three dimensions; see spread.

// scatter records how much a draw exceeds the estimate, for packets of the
// buffer that are on a bridge.
func (r *Receiver) scatter(packets []held, p *period, b *bridge) {
	first := cap(r.buffer) - cap(packets)
	for i := range packets {
		h := &packets[i]
		size := r.sending(h.bytes)
		place := p.place(h.time, size)
		since, left := place-b.from.place, b.to.place-place
		if since <= 0 || left <= 0 {
			continue
		}
		wait := b.at(place, size)
		_, plain, variance := b.plain(since, left, size)
		drawn := 0.0
		if b.mend == nil {
			plain, drawn = 1, r.distance(0, math.Pi/8)
		} else if variance > 0 {
			drawn = r.distance(b.middle(since, left, variance, r.random.Float64()), variance)
		}
		if plain > 0 && drawn > 0 {
			drawn = max(min(wait*drawn/plain, b.from.wait+since), b.to.wait-left, 0)
			r.offsets[first+i] = int32(max(min(math.Round(drawn-wait), math.MaxInt32), math.MinInt32))
		}
	}
}

// distance draws |M + √v·N|.
func (r *Receiver) distance(middle, variance float64) float64 {
	d := math.Sqrt(variance)
	x, y, z := middle+d*r.random.NormFloat64(), d*r.random.NormFloat64(), d*r.random.NormFloat64()
	return math.Sqrt(x*x + y*y + z*z)
}

// middle returns M, for an angle that follows from a uniform draw.
func (b *bridge) middle(since, left, variance, uniform float64) float64 {
	m := (b.from.wait*left + b.to.wait*since) / b.length
	x := b.product * since * left / (b.length * b.length)
	turn := 2 * (1 - uniform) // 1 − cos θ
	if k := x / variance / 2; k > 1e-6 {
		turn = -math.Log(uniform+(1-uniform)*math.Exp(-2*k)) / k
	}
	return math.Sqrt(max(m*m-x*turn, 0))
}
