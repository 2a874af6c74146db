package joint

import (
	"context"
	"math"
)

// Conjugate gradients solve the equations (S⁻¹ + AᵀD⁻¹A) h = b. Divide rows and
// columns by the roots of the diagonal, and let L be what is then below the
// diagonal: the matrix is L + 1 + Lᵀ. The preconditioner is symmetric
// Gauss–Seidel, (1 + L)(1 + Lᵀ). In the form of Eisenstat (SIAM J. Sci. Stat.
// Comput. 2, 1981) the preconditioned matrix times v is
//
//	(1 + L)⁻¹ (L + 1 + Lᵀ) (1 + Lᵀ)⁻¹ v = t + (1 + L)⁻¹ (v − t),  t = (1 + Lᵀ)⁻¹ v
//
// so an iteration is two triangular solves. These are two passes over the
// entries, as many as a product with AᵀD⁻¹A takes. With flows in order of size
// it needs a quarter of the iterations that a diagonal preconditioner needs.
//
// h is the minimum of (y − Ah)ᵀD⁻¹(y − Ah) + hᵀS⁻¹h. Every iteration lowers that
// sum by a known amount. The amounts of all further iterations are extrapolated
// from the last ones as a geometric series. Their total is the square of the
// iteration's error; the first term of the sum is, in the same measure, the
// noise of the cells. So the iteration ends when it adds little to the error
// that the noise makes, whether flows are known to a millionth or hardly at all.
const (
	lookBack = 4     // iterations in each of the two terms of the extrapolation
	rounding = 1e-15 // fraction of a sum that may be rounding
	enough   = 0.3   // error of the iteration, as a fraction of the noise
)

// gradient is the state of conjugate gradients.
type gradient struct {
	*sweep
	x, residual, direction []float64 // the solution, and those of the preconditioned equations
	before, after          []float64 // the first and the second solve of the direction
}

// conjugateGradient solves the equations for x, which starts at zero, and
// overwrites b. square is yᵀD⁻¹y, or 0 if b does not come from cells; the error
// is then compared with the solution. It returns the number of iterations and
// the remaining error.
func (s *system) conjugateGradient(
	ctx context.Context, x, b []float64, square, tolerance float64, most int, work *progress,
) (int, float64, error) {
	defer work.next()
	if s.gradient == nil {
		flows := func() []float64 { return make([]float64, len(b)) }
		s.gradient = &gradient{sweep: s.newSweep(), direction: flows(), before: flows(), after: flows()}
	}
	g := s.gradient
	g.x, g.residual = x, b
	norm := g.start(s.inverse)
	fell := fall{square: square}
	left, turn, i := 1.0, 0.0, 0
	for left > tolerance && i < most && norm > 0 {
		if err := ctx.Err(); err != nil {
			return 0, 0, err
		}
		i++
		product := g.turn(turn)
		if !(product > rounding*norm) {
			break // no equation is left that rounding does not hide
		}
		step := norm / product
		fell.now += step * norm
		next := g.step(step)
		if i%lookBack == 0 {
			left = fell.left(s.believed(x))
		}
		work.residual(left, tolerance)
		turn, norm = next/norm, next
	}
	for f, inverse := range s.inverse {
		x[f] *= math.Sqrt(inverse)
	}
	if norm == 0 {
		left = 0
	}
	return i, left, ctx.Err()
}

// start sets the residual to that of x = 0, and returns its square.
func (g *gradient) start(inverse []float64) (norm float64) {
	g.empty()
	for f, b := range g.residual {
		r := g.next(f, b*math.Sqrt(inverse[f]))
		g.residual[f] = r
		norm += r * r
	}
	return norm
}

// turn sets the direction to the residual plus the given part of the last
// direction. It returns the product of the direction and its image.
func (g *gradient) turn(part float64) (product float64) {
	if g.part == nil && g.width == 4 {
		return g.turnFour(part)
	}
	g.empty()
	for f := len(g.direction) - 1; f >= 0; f-- {
		v := g.residual[f] + part*g.direction[f]
		g.direction[f], g.before[f] = v, g.next(f, v)
	}
	g.empty()
	for f, v := range g.direction {
		t := g.before[f]
		u := g.next(f, v-t)
		g.after[f] = u
		product += v * (t + u)
	}
	return product
}

// turnFour is turn for four cells a flow that have equal weight: most sketches
// have four rows, and decoding spends its time here.
func (g *gradient) turnFour(part float64) (product float64) {
	n := len(g.direction)
	runs, cells, entries, residual, before, after := g.Cells, g.cells, g.entry[:n], g.residual[:n], g.before[:n], g.after[:n]
	g.empty()
	for f := n - 1; f >= 0; f-- {
		v, entry := residual[f]+part*g.direction[f], entries[f]
		g.direction[f] = v
		run := (*[4]uint32)(runs[4*f:])
		a, b, c, d := &cells[run[0]], &cells[run[1]], &cells[run[2]], &cells[run[3]]
		v -= entry * (a.sum*a.trust + b.sum*b.trust + c.sum*c.trust + d.sum*d.trust)
		before[f] = v
		v *= entry
		a.sum += v
		b.sum += v
		c.sum += v
		d.sum += v
	}
	g.empty()
	for f, v := range g.direction {
		t, entry := before[f], entries[f]
		run := (*[4]uint32)(runs)
		runs = runs[4:]
		a, b, c, d := &cells[run[0]], &cells[run[1]], &cells[run[2]], &cells[run[3]]
		u := v - t - entry*(a.sum*a.trust+b.sum*b.trust+c.sum*c.trust+d.sum*d.trust)
		after[f] = u
		product += v * (t + u)
		u *= entry
		a.sum += u
		b.sum += u
		c.sum += u
		d.sum += u
	}
	return product
}

// step moves the solution along the direction, and returns the square of the
// residual.
func (g *gradient) step(size float64) (norm float64) {
	for f, t := range g.before {
		g.x[f] += size * t
		r := g.residual[f] - size*(t+g.after[f])
		g.residual[f] = r
		norm += r * r
	}
	return norm
}

// believed returns hᵀS⁻¹h of a solution that is not yet divided by the roots of
// the diagonal.
func (s *system) believed(x []float64) (square float64) {
	for f, v := range s.variance {
		if v > 0 {
			square += x[f] * x[f] * s.inverse[f] / v
		}
	}
	return square
}

// fall tells how much the minimised sum fell: in all iterations, in the last
// ones together, in those before them, and in those since.
type fall struct{ square, all, before, last, now float64 }

// left returns the remaining error, given hᵀS⁻¹h. It returns 1 as long as the
// error is unknown. The very first iterations do not count: they fit the largest
// flows, and say nothing about the rest.
func (l *fall) left(believed float64) float64 {
	first := l.all == 0
	l.all += l.now
	l.before, l.last, l.now = l.last, l.now, 0
	if l.last <= rounding*rounding*l.all {
		return 0
	}
	if first {
		l.last = 0
		return 1
	}
	if l.last >= l.before {
		return 1
	}
	further, noise := l.last*l.last/(l.before-l.last), l.all
	if l.square > 0 {
		noise = max(l.square-l.all-believed, rounding*l.square)
	}
	return min(1, math.Sqrt(further/noise))
}
