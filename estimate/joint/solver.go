package joint

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/hoplag/hoplag/estimate"
)

// How joint decoding models the cells. Let flow f send w packets, of which a = w × rate ÷ k are expected in each of its cells. Its mean
// is what was guessed plus h, of variance s, and each packet differs from that by itself. What the guesses leave of the cells' sums is
//
//	y = A h + e
//
// where e has the variance D of how packets fell into cells, and of what the caller says of the sums. A flow that has one cell in a
// row has all its packets there, which adds next to nothing. The estimate of least square error solves
//
//	(S⁻¹ + AᵀD⁻¹A) h = AᵀD⁻¹ y
//
// where a sample is like a cell of its flow alone, by conjugate gradients, with the diagonal as the preconditioner.
const (
	clockNoise    = 1.0 / 6 // variance of clocks' ticks, of a nanosecond, twice a packet
	enoughPackets = 2       // deviations: packets beyond so many above those expected are of flows that are not listed
	// Iteration ends when what it still gains, foretold from the last two groups of iterations, is this part of the sum of squares.
	enough         = 0.05
	enoughExact    = 1e-8 // where cells determine flows
	lookBack       = 4    // iterations in a group
	leastOf        = 4    // groups
	mostIterations = 1500 // some dozens are usual, and a thousand where cells hardly determine flows
)

// A solver has the equations of a problem.
type solver struct {
	*weighted
	mean     float64            // of all packets in usable cells
	base     float64            // what guesses are above
	expected []float64          // by cell: packets of the listed flows
	above    []float64          // by flow: its guess
	typical  [sizeCount]float64 // by size: a guess
	means    [sizeCount]float64 // by size: the first guess, and how far it may be off
	doubt    [sizeCount]float64
	differs  []float64   // see differ
	unsure   [][]float64 // the covariance of their errors
	variance []float64   // by flow: s, 0 if it has no equation
	sampled  []float64   // by flow: the precision of its sample, or 0
	trust    []float64   // by cell: D⁻¹, 0 if it says nothing
	rest     []float64   // by cell: y, and then what the solution leaves of it
	cell     []float64   // by cell: scratch, and of the solution A h
}

// newSolver guesses, and sets up the equations.
func newSolver(p *weighted) (*solver, error) {
	flows, cells := func() []float64 { return make([]float64, len(p.Packets)) }, func() []float64 { return make([]float64, len(p.Sum)) }
	s := &solver{
		weighted: p, above: flows(), variance: flows(), sampled: flows(),
		expected: cells(), trust: cells(), rest: cells(), cell: cells(),
	}
	p.scatter(s.expected, nil)
	var sum, packets float64
	for c, n := range s.expected {
		if n > 0 && p.usable(c) {
			if p.Count != nil {
				n = p.Count[c]
			}
			sum += p.Sum[c]
			packets += n
		}
	}
	if packets == 0 {
		return nil, fmt.Errorf("%w: no flow has a packet in a usable cell", estimate.ErrNoSamples)
	}
	s.mean = sum / packets
	s.guess()
	s.equations()
	return s, nil
}

// square returns the square of the delay that goes with flow f's guess, with what is typical.
func (s *solver) square(f int) float64 {
	x, typical := s.above[f], s.typical[s.class[f]]
	return x*x + typical*typical
}

// equations fills in s, D⁻¹ and y.
func (s *solver) equations() {
	reference := s.cell // the mean of the guesses of a cell's packets, 0 if their number is unknown
	clear(reference)
	clear(s.trust)
	s.scatter(reference, s.above)
	for c, n := range s.expected {
		s.rest[c] = reference[c] + s.base*n
		if reference[c] /= n; s.Count == nil {
			reference[c] = -s.base
		}
	}
	spread := 1 - 1/float64(s.CellsPerRow)
	if s.Rows == 1 && s.CellsPerRow > 1 {
		spread = 1
	}
	for f, w := range s.Packets {
		if w == 0 {
			continue
		}
		usual, own := s.usual(f), s.square(f) // own: as of exponential delays, of a flow about its guess and of a packet about its flow
		for i, c := range s.run(f) {
			share := s.of(f*s.width + i)
			apart := s.above[f] - reference[c]
			v := own + apart*apart
			noise := w * share * (v*(1-(1-spread)*share) + s.slack*(min(own, usual)+apart*apart))
			if s.Doubt != nil {
				doubt := s.Doubt[f] * share
				off := min(s.Doubt[f]/w, 1)
				noise += doubt * doubt * (off*off*own + apart*apart)
			}
			s.trust[c] += noise
		}
		if s.variance[f] > 0 { // a usable cell
			s.variance[f] = min(own+own/max(w, 1), usual)
		}
		if s.Sampled == nil {
			continue
		}
		if x := s.Sampled[f]; x.Packets > 0 {
			mean := s.base + s.above[f]
			s.sampled[f] = 1 / (max(own, x.Part*mean*mean) * max(1/x.Packets-1/w, s.slack/x.Packets))
		}
	}
	usual := (s.mean - s.base) * (s.mean - s.base)
	for c, n := range s.expected {
		if n == 0 || !s.usable(c) || s.Count != nil && s.Count[c] == 0 {
			s.trust[c], s.rest[c] = 0, 0
			continue
		}
		v, sum := s.trust[c]+n*clockNoise+s.Variance[c], s.Sum[c]
		if s.Count != nil {
			k := s.Count[c]
			sum *= n / k // as if it had as many packets as expected
			v += usual * max(0, k-n-enoughPackets*math.Sqrt(k))
			v *= n / k
		}
		s.trust[c] = 1 / v
		s.rest[c] = sum - s.rest[c]
	}
}

// solve returns h, and leaves y − A h in rest. Where next to no slack takes too long, it tries with more.
func (s *solver) solve(ctx context.Context, opts Options) ([]float64, error) {
	tolerance := cmp.Or(opts.tolerance, enough)
	if opts.tolerance == 0 && s.slack < slack { // what is left is seen
		tolerance = enoughExact
	}
	vector := func() []float64 { return make([]float64, len(s.variance)) }
	h, direction, image, residual, inverse := vector(), vector(), vector(), vector(), vector()
	norm, square := s.begin(direction, residual, inverse)
	var before, last, now float64 // how much groups of iterations lowered the sum of squares
	for i, converged := 1, false; norm > 0 && !converged; i++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if i > mostIterations && s.slack < slack {
			s.slack = min(slackMore*s.slack, slack)
			s.equations()
			return s.solve(ctx, opts)
		} else if i > mostIterations {
			return nil, fmt.Errorf("%w: no solution in %d iterations", estimate.ErrNoSamples, mostIterations)
		}
		product := s.multiply(image, direction)
		if !(product > 0) {
			break
		}
		step, next := norm/product, 0.0
		now += step * norm
		square -= step * norm
		for f, d := range direction {
			h[f] += step * d
			residual[f] -= step * image[f]
			next += residual[f] * residual[f] * inverse[f]
		}
		for f := range direction {
			direction[f] = residual[f]*inverse[f] + next/norm*direction[f]
		}
		norm = next
		if i%lookBack == 0 {
			before, last, now = last, now, 0
			left := last * last / (before - last) // a geometric series
			converged = i >= leastOf*lookBack && last < before && left <= tolerance*max(square, 1e-9*left)
		}
	}
	clear(s.cell)
	s.scatter(s.cell, h)
	for c := range s.rest {
		s.rest[c] -= s.cell[c]
	}
	return h, nil
}

// begin sets the first direction, the residual of h = 0 and the inverse diagonal of S⁻¹ + AᵀD⁻¹A. It returns its norm
// and yᵀD⁻¹y.
func (s *solver) begin(direction, residual, inverse []float64) (norm, square float64) {
	for c, y := range s.rest {
		s.cell[c] = y * s.trust[c]
		square += y * s.cell[c]
	}
	for f, v := range s.variance {
		if v > 0 {
			d := 1/v + s.sampled[f]
			for i, c := range s.run(f) {
				a := s.Packets[f] * s.of(f*s.width+i)
				d += a * a * s.trust[c]
			}
			inverse[f] = 1 / d
			residual[f] = s.Packets[f] * s.gather(f, s.cell)
			if by := s.sampled[f]; by > 0 {
				off := s.Sampled[f].Mean - s.base - s.above[f]
				residual[f] += by * off
				square += by * off * off
			}
			direction[f] = residual[f] / d
			norm += residual[f] * direction[f]
		}
	}
	return norm, square
}

// multiply sets image to (S⁻¹ + AᵀD⁻¹A) times a direction, and returns their product.
func (s *solver) multiply(image, direction []float64) (product float64) {
	clear(s.cell)
	s.scatter(s.cell, direction)
	for c, trust := range s.trust {
		s.cell[c] *= trust
	}
	for f, d := range direction {
		if v := s.variance[f]; v > 0 {
			image[f] = d/v + d*s.sampled[f] + s.Packets[f]*s.gather(f, s.cell)
			product += d * image[f]
		}
	}
	return product
}
