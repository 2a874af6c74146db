package joint

import (
	"context"
	"math"
	"math/rand/v2"

	"github.com/hoplag/hoplag/estimate"
)

// The variances that the regression leaves are the diagonal of the inverse of
// S⁻¹ + AᵀD⁻¹A. The inverse of its own diagonal is too small, because it takes
// all other flows as known. Any count of a flow's own cells alone would be too
// large for the same reason. Two steps come closer:
//
// Messages. The noise that flow f sees in a cell is D, plus a²v for every
// other flow there, with their v as the rest of their cells leaves it. This is
// a fixed point, found by sweeping over all entries: belief propagation for a
// normal model. If the cells of flows are drawn independently, so that few
// flows meet twice, it is right to a per cent.
//
// Probes. The same flows meet more than once in neighbouring cells, as of LDS.
// The messages are then too small by a factor that depends on how well a flow
// is known. For a random sign per flow, e, the products e·(M⁻¹e) have the
// diagonal as their mean, but much noise. So the factor is averaged over all
// flows that are about equally well known.
const (
	probes    = 2
	probeSeed = 0x6a6f696e74 // fixed: results must not differ between runs
	// The error of a probe's solve need only be below its noise.
	probeTolerance = 3e-2
	sweeps         = 20
	fewSweeps      = 5    // enough to see which flows are known well
	settledChange  = 0.01 // largest relative change of a variance in the last sweep
	// Flows whose variance fell by the same half powers of two are one class.
	knownClasses = 256
	// A class's factor is used if its relative standard error is below this.
	factorError = 0.1
)

// posterior estimates the variance v that the regression leaves every flow.
func (s *system) posterior(ctx context.Context, effect []float64, opts Options, work *progress) ([]float64, error) {
	if opts.MeansOnly && opts.Prior != nil {
		return nil, nil
	}
	rounds := sweeps
	if opts.MeansOnly && s.slack != slackExact {
		rounds = fewSweeps
	}
	v, told, err := s.messages(ctx, rounds, work)
	if err != nil || opts.MeansOnly {
		return v, err
	}
	grown, err := s.probe(ctx, v, opts, work)
	if err != nil {
		return nil, err
	}
	s.gradient = nil
	if s.observed != nil {
		if s.factor, err = s.calibrate(ctx, effect, v, grown, told, work); err != nil {
			return nil, err
		}
	}
	for f := range v {
		v[f] *= grown[f]
	}
	return v, nil
}

// probe returns the factors by which v is too small.
func (s *system) probe(ctx context.Context, v []float64, opts Options, work *progress) ([]float64, error) {
	grown := make([]float64, len(v))
	if s.CellsPerRow == 1 {
		for f := range grown {
			grown[f] = 1
		}
		return grown, nil
	}
	class := func(f int) int {
		return min(int(2*math.Log2(s.variance[f]/v[f])+1e-9), knownClasses-1)
	}
	var ratios [knownClasses]estimate.Moments
	rng := rand.New(rand.NewPCG(probeSeed, probeSeed))
	signs := make([]float64, len(v))
	answer := make([]float64, len(v))
	for range probes {
		for f := range signs {
			signs[f] = float64(1 - 2*int(rng.Uint64()&1))
		}
		b := make([]float64, len(v))
		for f, sign := range signs {
			if s.variance[f] > 0 {
				b[f] = sign
			}
		}
		clear(answer)
		if _, _, err := s.conjugateGradient(ctx, answer, b, 0, probeTolerance, opts.MaxIterations, work); err != nil {
			return nil, err
		}
		for f, x := range answer {
			if s.variance[f] > 0 {
				ratios[class(f)].Add(signs[f] * x / v[f])
			}
		}
	}

	var factor [knownClasses]float64
	last := 1.0
	for i := range ratios {
		// Take two standard errors more. Classes with too few flows use the
		// factor of the last class that had enough, because it levels off for
		// flows that are known well.
		m := &ratios[i]
		if n := m.N(); n > 1 {
			wrong := math.Sqrt(m.Variance() / float64(n))
			if wrong < factorError*m.Mean() {
				last = max(1, m.Mean()+2*wrong)
			}
		}
		factor[i] = last
	}
	for f := range v {
		if s.variance[f] > 0 {
			grown[f] = min(s.variance[f]/v[f], factor[class(f)])
		}
	}
	return grown, nil
}

// messages iterates the flows' variances to their fixed point, or for the
// given number of rounds.
func (s *system) messages(ctx context.Context, rounds int, work *progress) ([]float64, []float32, error) {
	defer work.next()
	v := append([]float64(nil), s.variance...)
	// What each entry of Cells says to its flow, as a fraction of a²×trust,
	// which is the most it could: 0 before the first sweep.
	told := make([]float32, len(s.Cells))
	for round := range rounds {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		if s.sweep(v, told) < settledChange {
			break
		}
		work.part(float64(round+1) / float64(rounds))
	}
	return v, told, nil
}

// sweep does one round of messages. It returns the largest relative change of
// a variance.
func (s *system) sweep(v []float64, told []float32) (change float64) {
	noise := s.cell
	clear(noise)
	for f, w := range s.Packets {
		if v[f] == 0 {
			continue
		}
		at := f * s.width
		for i, c := range s.run(f) {
			a := w * s.of(at+i)
			noise[c] += a * a * s.without(v[f], float64(told[at+i])*a*a*s.trust[c])
		}
	}
	for f, w := range s.Packets {
		if v[f] == 0 {
			continue
		}
		at := f * s.width
		precision := 1 / s.variance[f]
		for i, c := range s.run(f) {
			a := w * s.of(at+i)
			a2 := a * a
			most := a2 * s.trust[c]
			others := max(0, noise[c]-a2*s.without(v[f], float64(told[at+i])*most))
			part := 1 / (1 + others*s.trust[c])
			told[at+i] = float32(part)
			precision += part * most
		}
		change = max(change, math.Abs(v[f]*precision-1))
		v[f] = 1 / precision
	}
	return change
}

// without returns the variance that is left after precision told is removed.
func (s *system) without(v, told float64) float64 {
	return v / max(1-v*told, 1e-9)
}
