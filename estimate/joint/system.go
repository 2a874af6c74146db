package joint

import "math"

// How joint decoding models the cells, here under a prior that is the same for
// all flows (guess.go has one for each). Let flow f send w packets whose
// delays are μ + g + e: μ the prior mean, g of variance τ² once per flow, e of
// variance σ² once per packet. We want the mean over the packets sent. It
// varies by ρ = τ² + σ²/w.
//
// Let a = w × rate ÷ k be the packets expected in a cell. Subtracting μ ×
// count from every cell removes μ exactly, however the packets fell. (Without
// counts, μ × Σa is subtracted, and what remains of μ is noise like g and e.)
// The packets fall multinomially, so flow f's part of the cells has exactly
// the covariance
//
//	within a row:    κw·diag(a) + (ρ − κ)·aaᵀ,   κ = (τ² + σ²)/w,
//	                 or (μ² + τ² + σ²)/w without counts
//	between rows:    ρ·aaᵀ
//
// Here κ is what is saved because all of the flow's packets are somewhere in
// the row. So the covariance of all cells is a diagonal plus one small matrix
// per flow. For one row it is diag + a·s·aᵀ with s = ρ − κ, which is what
// ridge regression inverts. For several rows the −κ blocks are spread:
//
//	the part θ of them   evenly over the flow's rows: s = ρ − θκ/rows
//	the part 1 − θ       on the diagonal: κa² less noise
//
// with θ = 1 − 1/k, or 1 for one row of k > 1. This is exact for one row, and
// for k = 1, where a flow's packets are all in one cell and make no noise at
// all. Otherwise it overstates the noise of a flow's own cells, never that of
// others.
//
// With D the diagonal, A the matrix of a, and S the diagonal of s, conjugate
// gradients solve the equations (S⁻¹ + AᵀD⁻¹A) h = AᵀD⁻¹y for h, one unknown
// per flow. This takes some dozens of iterations (see gradient.go); the
// equations of the cells, D + ASAᵀ, would need thousands. As h = S·Aᵀz with z
// the weights of the cells, the flow's mean is μ + ρ·aᵀz = μ + (ρ/s)·h, and
// its variance is ρ − ρ²·aᵀ(D + ASAᵀ)⁻¹a = ρ − (ρ/s)²·(s − v), where v is the
// variance that the regression leaves h.

// leastPart keeps s above this fraction of ρ. For a flow of one packet, and
// for small flows without counts, κ outweighs ρ. What the flow would then
// subtract from the covariance between its cells is neglected.
const leastPart = 1e-3

// A system holds the equations of a Problem under a prior.
type system struct {
	*weighted
	prior    Prior
	before   []float64 // per flow: its mean before the cells are read, μ if there is a prior
	rho      []float64 // per flow: ρ
	variance []float64 // per flow: s, 0 for a flow of no packets
	inverse  []float64 // per flow: of the diagonal of S⁻¹ + AᵀD⁻¹A
	trust    []float64 // per cell: D⁻¹, 0 where unusable
	cell     []float64 // per cell: scratch
	observed []float64 // per cell: D⁻¹y, if there is no prior
	factor   []float64 // per flow: of its variance, by calibration
	square   float64   // yᵀD⁻¹y
	gradient *gradient // kept for the next solve
	informed bool      // whether any flow has a packet in a usable cell
}

// perPacket returns the variance that one packet of an unknown flow adds.
func (p *Problem) perPacket(prior Prior) float64 {
	v := prior.Between*prior.Between + prior.Within*prior.Within
	if p.Count == nil {
		v += prior.Mean * prior.Mean
	}
	return v
}

// ofMean returns ρ, the variance of the mean of w packets of one flow.
func (prior Prior) ofMean(w float64) float64 {
	return prior.Between*prior.Between + prior.Within*prior.Within/max(w, 1)
}

// emptySystem returns a system without equations, in which every flow has the
// mean and ρ of the prior.
func emptySystem(p *weighted, prior Prior) *system {
	s := &system{
		weighted: p, prior: prior,
		before:   make([]float64, len(p.Packets)),
		rho:      make([]float64, len(p.Packets)),
		variance: make([]float64, len(p.Packets)),
		inverse:  make([]float64, len(p.Packets)),
		trust:    make([]float64, len(p.Sum)),
		cell:     make([]float64, len(p.Sum)),
	}
	for f, w := range p.Packets {
		s.before[f], s.rho[f] = prior.Mean, prior.ofMean(w)
	}
	return s
}

// spread returns θ.
func (p *Problem) spread() float64 {
	if p.Rows == 1 && p.CellsPerRow > 1 {
		return 1
	}
	return 1 - 1/float64(p.CellsPerRow)
}

// newSystem returns the equations under a prior that is the same for all
// flows.
func newSystem(p *weighted, prior Prior) *system {
	s := emptySystem(p, prior)
	packet := p.perPacket(prior)
	spread := p.spread()

	expected, saved := s.cell, s.trust // trust becomes D⁻¹ below
	for f, w := range p.Packets {
		saving := packet / max(w, 1) // κ
		if w > 0 {
			s.variance[f] = max(leastPart*s.rho[f], s.rho[f]-spread*saving/float64(p.Rows))
		}
		for i, c := range s.run(f) {
			a := w * s.of(f*s.width+i)
			expected[c] += a
			saved[c] += (1 - spread) * saving * a * a
		}
	}
	// A packet attributed to the wrong flow adds that flow's deviation.
	doubt := p.doubts()
	ofFlow := prior.Between * prior.Between
	if p.Count == nil {
		ofFlow += prior.Mean * prior.Mean
	}
	for c, n := range expected {
		if n == 0 || !p.usable(c) {
			s.trust[c] = 0
			continue
		}
		s.informed = true
		if p.Count != nil {
			n = max(n, p.Count[c]) // packets of flows that are not listed
		}
		noise := max(0, n*packet-saved[c]) + s.slack*n*packet
		if doubt != nil {
			noise += doubt[c] * ofFlow
		}
		s.trust[c] = 1 / noise
	}
	s.invertDiagonal()
	return s
}

// invertDiagonal fills inverse. It is 0 for flows without packets, which have
// no equation.
func (s *system) invertDiagonal() {
	clear(s.cell)
	for f, v := range s.variance {
		if v > 0 {
			run, diagonal := s.run(f), 1/v
			for i, c := range run {
				s.cell[c] += s.Packets[f] * s.of(f*s.width+i) // all entries, if one is there twice
			}
			for i, c := range run {
				diagonal += s.Packets[f] * s.of(f*s.width+i) * s.cell[c] * s.trust[c]
			}
			for _, c := range run {
				s.cell[c] = 0
			}
			s.inverse[f] = 1 / diagonal
		}
	}
}

// centred stores in dst what the prior mean does not explain of the cells.
func (p *Problem) centred(dst []float64, mean float64, expected []float64) {
	for c, x := range p.Sum {
		n := expected[c]
		if p.Count != nil {
			n = p.Count[c]
		}
		dst[c] = x - mean*n
	}
}

// doubts returns, for each cell, the variance of the number of its packets
// that are attributed to the right flow, or nil without Doubt.
func (p *weighted) doubts() []float64 {
	if p.Doubt == nil {
		return nil
	}
	v := make([]float64, len(p.Sum))
	for f, d := range p.Doubt {
		for i, c := range p.run(f) {
			off := d * p.of(f*p.width+i)
			v[c] += off * off
		}
	}
	return v
}

// rightHandSide returns AᵀD⁻¹y.
func (s *system) rightHandSide() []float64 {
	y := s.cell
	s.centred(y, s.prior.Mean, s.expected())
	for c, trust := range s.trust {
		if trust == 0 {
			y[c] = 0 // even where the sum is not a number
			continue
		}
		s.square += y[c] * y[c] * trust
		y[c] *= trust
	}
	return s.gathered(y)
}

// gathered returns Aᵀ times a vector of cells.
func (s *system) gathered(y []float64) []float64 {
	b := make([]float64, len(s.variance))
	for f := range b {
		if s.variance[f] > 0 {
			b[f] = s.Packets[f] * s.gather(f, y)
		}
	}
	return b
}

// finish turns the regression's effects h into means and its variances v into
// deviations, in place. Without variances there are only means.
func (s *system) finish(mean, deviation []float64) {
	packet := s.perPacket(s.prior)
	for f, w := range s.Packets {
		rho, v := s.rho[f], s.variance[f]
		scale := 0.0
		if v > 0 {
			scale = rho / v
		}
		mean[f] = s.prior.Mean + scale*mean[f]
		switch {
		case deviation == nil:
			continue
		case v == 0:
			deviation[f] = math.Sqrt(rho)
			continue
		}
		// A flow alone in its cells is left with the slack.
		least := s.slack * min(rho, packet/max(w, 1)) / float64(s.Rows)
		deviation[f] = math.Sqrt(max(least, rho-scale*scale*(v-deviation[f])))
		if s.Doubt != nil {
			// An error of the flow's own count is in all its cells alike, and
			// scales the distance from the mean.
			deviation[f] = math.Hypot(deviation[f], s.Doubt[f]/w*(mean[f]-s.prior.Mean))
		}
	}
}
