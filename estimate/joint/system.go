package joint

import (
	"context"
	"math"
)

// How joint decoding models the cells, here under a prior that is the same for
// all flows (joint_guess.go has one for each). Let flow f send w packets whose delays
// are μ + g + e: μ the prior mean, g of variance τ² once per flow, e of
// variance σ² once per packet. The mean over the packets sent, which is what
// is asked for, then varies by ρ = τ² + σ²/w.
//
// Let a = w × rate ÷ k be the packets expected in a cell. Taking μ × count
// from every cell removes μ exactly, however the packets fell. (Without
// counts, μ × Σa is taken, and what remains of μ is noise like g and e.) The
// packets fall multinomially, so flow f's part of the cells has the covariance
//
//	within a row:    κw·diag(a) + (ρ − κ)·aaᵀ,   κ = (τ² + σ²)/w,
//	                 or (μ² + τ² + σ²)/w without counts
//	between rows:    ρ·aaᵀ
//
// exactly: κ is what is saved because all of the flow's packets are somewhere
// in the row. So the covariance of all cells is a diagonal plus one small
// matrix per flow. For one row it is diag + a·s·aᵀ with s = ρ − κ, which is
// what ridge regression inverts. For several rows the −κ blocks are spread:
//
//	the part θ of them   evenly over the flow's rows: s = ρ − θκ/rows
//	the part 1 − θ       on the diagonal: κa² less noise
//
// with θ = 1 − 1/k, or 1 for one row of k > 1. This is exact for one row and
// for k = 1, where a flow's packets are all in one cell and make no noise at
// all; between them it overstates the noise of a flow's own cells, never that
// of others.
//
// With D the diagonal, A the matrix of a, S the diagonal of s, the equations
// (S⁻¹ + AᵀD⁻¹A) h = AᵀD⁻¹y are solved for h by conjugate gradients, one
// unknown per flow. Their Jacobi preconditioner leaves 10 to 200 iterations,
// where the equations of the cells, D + ASAᵀ, would need thousands. As
// h = S·Aᵀz with z the weights of the cells, the flow's mean is
// μ + ρ·aᵀz = μ + (ρ/s)·h, and its variance ρ − ρ²·aᵀ(D + ASAᵀ)⁻¹a
// = ρ − (ρ/s)²·(s − v), where v is the variance that the regression leaves h.

// slack is noise beyond the model, as a part of all packets' variance:
// clocks tick and hashes are not perfect. With k = 1 there is no other, and
// the equations would have no solution if one cell did not fit.
const slack = 0.01

// leastPart keeps s above this part of ρ. For a flow of one packet, and for
// small flows without counts, κ outweighs ρ; then what the flow would take off
// the covariance between its cells is neglected.
const leastPart = 1e-3

// A system is the equations of a Problem under a prior.
type system struct {
	*Problem
	prior    Prior
	before   []float64 // per flow: its mean before the cells are read, μ if there is a prior
	rho      []float64 // per flow: ρ
	share    []float64 // per run of cells: a = packets × share
	span     int       // cells per run: all rows' in one run where they share alike
	variance []float64 // per flow: s, 0 for a flow of no packets
	diagonal []float64 // per flow: of S⁻¹ + AᵀD⁻¹A
	trust    []float64 // per cell: D⁻¹, 0 where unusable
	cell     []float64 // per cell: scratch
	informed bool      // whether any flow has a packet in a usable cell
}

// perPacket is the variance that one packet of an unknown flow brings.
func (p *Problem) perPacket(prior Prior) float64 {
	v := prior.Between*prior.Between + prior.Within*prior.Within
	if p.Count == nil {
		v += prior.Mean * prior.Mean
	}
	return v
}

// ofMean is ρ, the variance of the mean of w packets of one flow.
func (prior Prior) ofMean(w float64) float64 {
	return prior.Between*prior.Between + prior.Within*prior.Within/max(w, 1)
}

// emptySystem has no equations yet, and every flow's mean and ρ of the prior.
func emptySystem(p *Problem, prior Prior) *system {
	s := &system{
		Problem: p, prior: prior, share: p.shares(),
		before:   make([]float64, len(p.Packets)),
		rho:      make([]float64, len(p.Packets)),
		variance: make([]float64, len(p.Packets)),
		diagonal: make([]float64, len(p.Packets)),
		trust:    make([]float64, len(p.Sum)),
		cell:     make([]float64, len(p.Sum)),
	}
	for f, w := range p.Packets {
		s.before[f], s.rho[f] = prior.Mean, prior.ofMean(w)
	}
	s.span = p.CellsPerRow
	if p.Rates == nil {
		s.share, s.span = s.share[:1], p.Rows*p.CellsPerRow
	}
	return s
}

// spread is θ.
func (p *Problem) spread() float64 {
	if p.Rows == 1 && p.CellsPerRow > 1 {
		return 1
	}
	return 1 - 1/float64(p.CellsPerRow)
}

// newSystem is the equations of a prior that is the same for all flows.
func newSystem(p *Problem, prior Prior) *system {
	s := emptySystem(p, prior)
	packet := p.perPacket(prior)
	spread := p.spread()

	expected, saved := s.cell, s.trust // trust becomes D⁻¹ below
	for f, w := range p.Packets {
		saving := packet / max(w, 1) // κ
		if w > 0 {
			s.variance[f] = max(leastPart*s.rho[f], s.rho[f]-spread*saving/float64(p.Rows))
		}
		for r, share := range s.share {
			a := w * share
			cells, _ := s.run(f, r)
			for _, c := range cells {
				expected[c] += a
				saved[c] += (1 - spread) * saving * a * a
			}
		}
	}
	// A packet that is put down to the wrong flow brings that flow's deviation.
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
		noise := max(0, n*packet-saved[c]) + slack*n*packet
		if doubt != nil {
			noise += doubt[c] * ofFlow
		}
		s.trust[c] = 1 / noise
	}
	s.fillDiagonal()
	return s
}

func (s *system) fillDiagonal() {
	for f, v := range s.variance {
		if v > 0 {
			s.diagonal[f] = 1 / v
			for r, share := range s.share {
				a := s.Packets[f] * share
				cells, _ := s.run(f, r)
				for _, c := range cells {
					s.diagonal[f] += a * a * s.trust[c]
				}
			}
		}
	}
}

// run is the r-th run of cells of flow f, and where in Cells it begins.
func (s *system) run(f, r int) ([]uint32, int) {
	from := (f*len(s.share) + r) * s.span
	return s.Cells[from : from+s.span], from
}

// gather is aᵀ of flow f times a vector of cells.
func (s *system) gather(f int, of []float64) float64 {
	total := 0.0
	for r, share := range s.share {
		sum := 0.0
		cells, _ := s.run(f, r)
		for _, c := range cells {
			sum += of[c]
		}
		total += share * sum
	}
	return s.Packets[f] * total
}

// centred puts what the prior mean does not explain of the cells into dst.
func (p *Problem) centred(dst []float64, mean float64, expected []float64) {
	for c, x := range p.Sum {
		n := expected[c]
		if p.Count != nil {
			n = p.Count[c]
		}
		dst[c] = x - mean*n
	}
}

// expected is, for each cell, how many packets of all flows should be in it.
func (p *Problem) expected() []float64 {
	n := make([]float64, len(p.Sum))
	share := p.shares()
	for f, w := range p.Packets {
		for r := range share {
			for _, c := range p.run(f, r) {
				n[c] += w * share[r]
			}
		}
	}
	return n
}

// doubts is, for each cell, the variance of how many of its packets are put
// down to the right flow, or nil without Doubt.
func (p *Problem) doubts() []float64 {
	if p.Doubt == nil {
		return nil
	}
	v := make([]float64, len(p.Sum))
	share := p.shares()
	for f, d := range p.Doubt {
		for r := range share {
			for _, c := range p.run(f, r) {
				v[c] += d * d * share[r] * share[r]
			}
		}
	}
	return v
}

// rightHandSide is AᵀD⁻¹y.
func (s *system) rightHandSide() []float64 {
	y := s.cell
	s.centred(y, s.prior.Mean, s.expected())
	for c, trust := range s.trust {
		if trust == 0 {
			y[c] = 0 // even where the sum is not a number
		} else {
			y[c] *= trust
		}
	}
	return s.gathered(y)
}

// gathered is Aᵀ times a vector of cells.
func (s *system) gathered(y []float64) []float64 {
	b := make([]float64, len(s.variance))
	for f := range b {
		if s.variance[f] > 0 {
			b[f] = s.gather(f, y)
		}
	}
	return b
}

// multiply sets dst to (S⁻¹ + AᵀD⁻¹A) x and returns xᵀ dst.
func (s *system) multiply(dst, x []float64) float64 {
	u := s.cell
	clear(u)
	for f, v := range x {
		if v == 0 {
			continue
		}
		for r, share := range s.share {
			add := s.Packets[f] * share * v
			cells, _ := s.run(f, r)
			for _, c := range cells {
				u[c] += add
			}
		}
	}
	for c, trust := range s.trust {
		u[c] *= trust
	}
	product := 0.0
	for f, v := range s.variance {
		if v > 0 {
			dst[f] = x[f]/v + s.gather(f, u)
			product += x[f] * dst[f]
		}
	}
	return product
}

// conjugateGradient solves the equations for x, which is zero at first, and
// uses up b. It returns how many iterations it took and the relative residual
// in the norm of the inverse diagonal.
func (s *system) conjugateGradient(ctx context.Context, x, b []float64, tolerance float64, most int, work *progress) (int, float64, error) {
	defer work.next()
	residual := b
	direction := make([]float64, len(b))
	image := make([]float64, len(b))
	norm := 0.0
	for f, r := range residual {
		if s.variance[f] > 0 {
			direction[f] = r / s.diagonal[f]
			norm += r * direction[f]
		}
	}
	first := norm
	if first == 0 {
		return 0, 0, ctx.Err()
	}
	for i := 1; ; i++ {
		if err := ctx.Err(); err != nil {
			return 0, 0, err
		}
		step := norm / s.multiply(image, direction)
		next := 0.0
		for f, d := range direction {
			if s.variance[f] > 0 {
				x[f] += step * d
				residual[f] -= step * image[f]
				next += residual[f] * residual[f] / s.diagonal[f]
			}
		}
		relative := math.Sqrt(next / first)
		work.residual(relative, tolerance)
		if relative <= tolerance || i >= most {
			return i, relative, nil
		}
		turn := next / norm
		norm = next
		for f := range direction {
			if s.variance[f] > 0 {
				direction[f] = residual[f]/s.diagonal[f] + turn*direction[f]
			}
		}
	}
}

// finish turns the regression's effects h into means and its variances v into
// deviations, in place.
func (s *system) finish(mean, deviation []float64) {
	packet := s.perPacket(s.prior)
	for f, w := range s.Packets {
		rho, v := s.rho[f], s.variance[f]
		if v == 0 {
			mean[f] = s.prior.Mean
			deviation[f] = math.Sqrt(rho)
			continue
		}
		scale := rho / v
		mean[f] = s.prior.Mean + scale*mean[f]
		// A flow alone in its cells is left with the slack.
		least := slack * min(rho, packet/max(w, 1)) / float64(s.Rows)
		deviation[f] = math.Sqrt(max(least, rho-scale*scale*(v-deviation[f])))
		if s.Doubt != nil {
			// What the flow's own count is off by, it is in all its cells
			// alike, and scales the distance from the mean.
			deviation[f] = math.Hypot(deviation[f], s.Doubt[f]/w*(mean[f]-s.prior.Mean))
		}
	}
}
