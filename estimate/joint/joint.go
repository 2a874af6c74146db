package joint

import (
	"context"
	"fmt"
	"math"

	"github.com/hoplag/hoplag/estimate"
)

// A Problem is what one interval of a shared synopsis says about the mean
// delays of all its flows: cells that many flows share and, for each flow, the
// cells that its packets fell in and the number of its packets.
//
// A flow's cells come in Rows runs of CellsPerRow. Each packet of the flow
// fell in one cell of each run. A hash of the packet chose the cell evenly,
// and independently from run to run. An LDS has its rows and the length of the
// virtual LDA; COLATE has one row of m counters. The caller numbers cells of
// different rows apart (row × columns + column). A cell that occurs more than
// once in a run gets more than one share.
//
// List all flows of the interval. Packets of unlisted flows count as
// independent packets of unknown flows, which understates what one large
// unlisted flow does to its cells.
//
// Solving only reads a Problem, so several goroutines may solve it at once.
type Problem struct {
	// Sum holds, for each cell, the sum of the delays of its packets in
	// nanoseconds: the receiver's sum minus the sender's, up to 10^30.
	Sum []float64
	// Count holds, for each cell, the number of its packets. Nil means that
	// cells do not count; the estimates are then considerably worse.
	Count []float64
	// Unusable marks cells that must not be believed, because one of their
	// packets was lost or reordered out of the interval. Nil means that all
	// are usable.
	Unusable []bool

	Rows        int // number of cells that each packet fell in, 1 or more
	CellsPerRow int // number of cells of a row that a flow's packets are spread over, 1 or more
	// Rates holds, for each row, the fraction of all packets recorded in it,
	// sampled by a hash of the packet: 10^-9 to 1. Nil means all packets.
	Rates []float64

	// Packets holds, for each flow, the number of its packets before any
	// sampling, known or decoded, 10^-9 to 10^18. Its length is the number of
	// flows. A flow may have 0 packets; it gets the prior.
	Packets []float64
	// Doubt holds, for each flow, the standard deviation of the error of
	// Packets if they were decoded. Errors are assumed independent from flow
	// to flow. Nil means that Packets are exact.
	Doubt []float64
	// Cells holds Rows × CellsPerRow cell indices for each flow. Those of flow
	// f begin at f × Rows × CellsPerRow, row by row.
	Cells []uint32
	// Parts holds, for each entry of Cells, the fraction of the flow's packets
	// there that are in Sum and Count, 0 to 1, if these leave out packets that
	// passed at other times. Nil means all packets.
	Parts []float32
}

// A Prior is the belief about any flow before its cells are read: a delay is
// Mean, plus a deviation of the flow, plus a deviation of the packet. It
// assumes nothing about the distributions but these three moments. It also
// assumes that a flow's delay does not depend on its size, and that deviations
// do not depend on the delay.
//
// Neither is true of delays in queues. A caller's prior then gives the
// smallest expected square error. But an error of a hundredth of a slow flow's
// delay is many times the delay of a fast one, and if delay depends on size,
// intervals cover too few of the flows of middle sizes. Without a prior,
// [Problem.Solve] takes deviations in proportion to the delay.
type Prior struct {
	Mean    float64 // nanoseconds: the mean delay of flows
	Between float64 // nanoseconds: standard deviation of flows' means around Mean
	Within  float64 // nanoseconds: standard deviation of packets around their flow's mean
}

// Options tunes [Problem.Solve]. The zero value is a good choice.
type Options struct {
	// Prior is believed of all flows alike. Nil is better for nearly all
	// traffic: every flow then has its own prior, in proportion to what its
	// cells suggest; see [Problem.Solve].
	Prior *Prior
	// Tolerance ends the iteration when its error is this fraction of the error
	// that the noise of the cells makes, which the solver estimates from what
	// the cells leave unexplained. The estimate errs to the safe side: with
	// zero, which means 0.3, half of the means are within a tenth of StdDev of
	// the exact solution.
	Tolerance float64
	// MaxIterations limits one linear solve; 0 means 1,000. Reaching it is not
	// an error: see Result.Converged.
	MaxIterations int
	// MeansOnly leaves StdDev out, which saves half the time or more.
	MeansOnly bool
	// Deviations asks for Result.Deviation. There is none if cells do not
	// count, or with MeansOnly.
	Deviations bool
	// Progress, if not nil, is called from the solving goroutine after every
	// iteration with the fraction of the work done, from 0 to 1. It never
	// falls, and ends at 1.
	Progress func(done float64)
}

// A Result holds a mean delay for every flow.
type Result struct {
	// Mean holds, for each flow, the estimated mean delay of the packets that
	// it sent, in nanoseconds.
	Mean []float64
	// StdDev holds, for each flow, the expected root mean square error of
	// Mean, in nanoseconds. Without a given prior it is such that MeanInterval
	// covers. It is nil with Options.MeansOnly.
	StdDev []float64
	// Deviation holds, for each flow, the standard deviation of its packets'
	// delays, and Freedom the squares behind it, its degrees of freedom. If
	// these are few, the deviation is near the one that goes with the flow's
	// delay in all other flows. One cell a row that has all packets says
	// nothing. Both are nil without Options.Deviations.
	Deviation []float64
	Freedom   []float32
	// Usable holds, for each flow, the number of usable cells that hold its
	// packets, up to 65,535. If it is 0 nothing is known about the flow, and
	// Mean is that of all flows.
	Usable []uint16
	// Share holds, for each flow, the fraction of its packets behind the best
	// of its usable cells: 1 without Problem.Parts, and 0 without a cell.
	Share []float32
	// Packets holds those of the Problem, known or decoded.
	Packets []float64

	Prior      Prior   // the prior used, or what EstimatePrior says if none was given
	Iterations int     // conjugate-gradient iterations of the solve for the means
	Remaining  float64 // error of the iteration, in the measure of Options.Tolerance
	Converged  bool    // whether Remaining reached the tolerance
}

// degrees are the degrees of freedom of MeanInterval's Student distribution.
// The errors of small flows have the skew and the modes of the delays
// themselves, of which only two moments are known: if packets are either fast
// or slow, normal quantiles for 95 % cover some 90 % of the flows of one
// packet. This is a margin, not a derivation; it widens the 95 % interval by
// 31 %.
const degrees = 5

// MeanInterval returns the interval of flow f's mean at the given confidence,
// between 0 and 1. It extends to both sides by as many deviations as Student's
// distribution with 5 degrees of freedom says (2.57 at 95 %). It is unbounded
// for a flow without a usable cell, and without StdDev.
func (r *Result) MeanInterval(f int, confidence float64) estimate.Interval {
	if r.Usable[f] == 0 || r.StdDev == nil {
		return estimate.Interval{Low: math.Inf(-1), High: math.Inf(1), Confidence: confidence}
	}
	return estimate.StudentInterval(estimate.Delay{Mean: r.Mean[f], StdDev: r.StdDev[f], N: 1}, degrees, confidence)
}

// Solve estimates the mean delay of every flow from all cells at once. It
// returns the linear estimate of least expected square error under a prior.
//
// Without a prior in opts, it first guesses every flow's delay above the
// smallest, by letting cells and flows agree on factors. Then it solves with
// deviations in proportion to the guesses. Finally it scales StdDev by how far
// cells are from what the others say, by the same factor for flows of similar
// size. This suits delays that are a microsecond for most flows and
// milliseconds for others, as in captured traffic, where one prior for all
// flows leaves errors many times the delay of a fast one. If all delays are
// within a factor of four or so of each other, it is mostly as good as the one
// prior, with wider intervals. It is somewhat worse if dozens of flows share
// each cell, most of all for the largest of them.
//
// Solve has limits. It guesses a flow of few packets among many in all its
// cells near the typical delay of its size, with a deviation as wide as delays
// are apart. A flow without a usable cell gets the mean of all. Flows that
// lost packets, and so their cells, are often those that waited longest, which
// no deviation knows. Without counts Solve takes delays to be above 0, so a
// clock offset must be small. A delay that one packet in thousands has is in
// no deviation of a flow without such a packet.
//
// It holds about 20 numbers per flow, 7 per cell, and 8 bytes per entry of
// Cells, and takes time in proportion to Cells. The same problem gives the
// same bits on the same machine: nothing is random but signs drawn from a
// fixed seed.
//
// It returns [estimate.ErrConfig] if the problem's slices do not fit each
// other or hold a value out of range, [estimate.ErrNoSamples] if no flow has a
// packet in a usable cell, and the context's error once the context is done.
func (p *Problem) Solve(ctx context.Context, opts Options) (Result, error) {
	if err := p.validate(); err != nil {
		return Result{}, err
	}
	inOrder, order := p.inOrder()
	r, err := weigh(inOrder).solve(ctx, opts)
	if err != nil {
		return Result{}, err
	}
	r.putBack(order)
	r.Packets = p.Packets
	return r, nil
}

// solve solves a problem of which the flows are in order.
func (q *weighted) solve(ctx context.Context, opts Options) (Result, error) {
	if opts.Tolerance == 0 {
		opts.Tolerance = enough
	}
	if opts.MaxIterations == 0 {
		opts.MaxIterations = 1000
	}
	if !(opts.Tolerance > 0 && opts.Tolerance < 1) || opts.MaxIterations < 0 {
		return Result{}, fmt.Errorf("%w: tolerance %g and %d iterations, want below 1 and both above 0",
			estimate.ErrConfig, opts.Tolerance, opts.MaxIterations)
	}
	work := progress{report: opts.Progress, stages: 2}
	if !opts.MeansOnly && q.CellsPerRow > 1 {
		work.stages += probes
	}
	if opts.Deviations {
		work.stages++
	}
	if opts.Prior == nil {
		return q.solveGuessed(ctx, opts, &work)
	}
	prior := *opts.Prior
	if !(math.Abs(prior.Mean) <= mostSum && prior.Between > 0 && prior.Between <= mostSum && prior.Within >= 0 && prior.Within <= mostSum) {
		return Result{}, fmt.Errorf("%w: prior %+v, want up to %g, with Between above 0 and Within from 0",
			estimate.ErrConfig, prior, float64(mostSum))
	}
	s := newSystem(q, prior)
	r, err := s.solve(ctx, s.rightHandSide(), opts, &work)
	if err != nil {
		return Result{}, err
	}
	s.finish(r.Mean, r.StdDev)
	s.mark(&r, opts)
	if opts.Deviations {
		base, _ := q.least(prior.Mean, q.expected())
		if err := q.deviate(ctx, &r, base, &work); err != nil {
			return Result{}, err
		}
	}
	work.finish()
	return r, nil
}

// solveGuessed solves without a prior from the caller.
func (p *weighted) solveGuessed(ctx context.Context, opts Options, work *progress) (Result, error) {
	prior, err := p.estimatePrior()
	if err != nil {
		return Result{}, err
	}
	work.stages++
	if !opts.MeansOnly {
		work.stages++
		if p.CellsPerRow > 1 {
			work.stages += 2
		}
	}
	p.classify()
	expected := p.expected()
	whole, err := p.guess(ctx, prior.Mean, expected, -1, work)
	if err != nil {
		return Result{}, err
	}
	s, b := newGuessedSystem(p, prior, expected, whole)
	r, err := s.solve(ctx, b, opts, work)
	if err != nil {
		return Result{}, err
	}
	s.finishGuessed(whole, r.Mean, r.StdDev)
	s.mark(&r, opts)
	if !opts.MeansOnly && p.CellsPerRow > 1 {
		even, err := p.guess(ctx, prior.Mean, expected, 0, work)
		if err != nil {
			return Result{}, err
		}
		odd, err := p.guess(ctx, prior.Mean, expected, 1, work)
		if err != nil {
			return Result{}, err
		}
		p.check(even, odd, r.StdDev)
	}
	if opts.Deviations {
		if err := p.deviate(ctx, &r, whole.base, work); err != nil {
			return Result{}, err
		}
	}
	work.finish()
	return r, nil
}

// mark fills in from how many cells each flow is known, and removes the
// deviations if they were not asked for.
func (s *system) mark(r *Result, opts Options) {
	if opts.MeansOnly {
		r.StdDev = nil
	}
	r.Usable, r.Share = make([]uint16, len(s.Packets)), make([]float32, len(s.Packets))
	for f, w := range s.Packets {
		n := 0
		for i, c := range s.run(f) {
			at := f*s.width + i
			if w > 0 && s.trust[c] > 0 && s.of(at) > 0 {
				n++
				part := float32(1)
				if s.Parts != nil {
					part = s.Parts[at]
				}
				r.Share[f] = max(r.Share[f], part)
			}
		}
		r.Usable[f] = uint16(min(n, math.MaxUint16))
	}
}

// solve returns the regression's effects h as means and its variances v as
// deviations, still to be finished.
func (s *system) solve(ctx context.Context, b []float64, opts Options, work *progress) (Result, error) {
	if !s.informed {
		return Result{}, fmt.Errorf("%w: no flow has a packet in a usable cell", estimate.ErrNoSamples)
	}
	effect := make([]float64, len(b))
	iterations, remaining, err := s.conjugateGradient(ctx, effect, b, s.square, opts.Tolerance, opts.MaxIterations, work)
	if err != nil {
		return Result{}, err
	}
	variance, err := s.posterior(ctx, effect, opts, work)
	if err != nil {
		return Result{}, err
	}
	return Result{
		Mean: effect, StdDev: variance,
		Prior: s.prior, Iterations: iterations, Remaining: remaining, Converged: remaining <= opts.Tolerance,
	}, nil
}

// The fourth powers of numbers beyond these need not fit a float64. No sum of
// delays of 64 bits, and no count, comes near.
const (
	mostSum      = 1e30 // ns
	mostPackets  = 1e18
	leastPackets = 1e-9 // packets, and the least rate
)

// validate reports the first thing that does not fit.
func (p *Problem) validate() error {
	cells, flows := len(p.Sum), len(p.Packets)
	switch {
	case p.Rows < 1 || p.CellsPerRow < 1:
		return fmt.Errorf("%w: %d rows of %d cells per flow, want at least 1 of 1", estimate.ErrConfig, p.Rows, p.CellsPerRow)
	case p.Count != nil && len(p.Count) != cells:
		return fmt.Errorf("%w: %d counts for %d cells", estimate.ErrConfig, len(p.Count), cells)
	case p.Unusable != nil && len(p.Unusable) != cells:
		return fmt.Errorf("%w: %d unusable marks for %d cells", estimate.ErrConfig, len(p.Unusable), cells)
	case p.Doubt != nil && len(p.Doubt) != flows:
		return fmt.Errorf("%w: %d doubts for %d flows", estimate.ErrConfig, len(p.Doubt), flows)
	case p.Rates != nil && len(p.Rates) != p.Rows:
		return fmt.Errorf("%w: %d rates for %d rows", estimate.ErrConfig, len(p.Rates), p.Rows)
	case len(p.Cells)%p.Rows != 0 || len(p.Cells)/p.Rows%p.CellsPerRow != 0 || len(p.Cells)/p.Rows/p.CellsPerRow != flows:
		return fmt.Errorf("%w: %d cell indices for %d flows of %d × %d", estimate.ErrConfig, len(p.Cells), flows, p.Rows, p.CellsPerRow)
	}
	for r, rate := range p.Rates {
		if !(rate >= leastPackets && rate <= 1) {
			return fmt.Errorf("%w: rate %g of row %d, want %g to 1", estimate.ErrConfig, rate, r, leastPackets)
		}
	}
	for c, x := range p.Sum {
		if p.usable(c) && !(math.Abs(x) <= mostSum) {
			return fmt.Errorf("%w: sum %g in cell %d, want an absolute value of at most %g", estimate.ErrConfig, x, c, float64(mostSum))
		}
	}
	for c, n := range p.Count {
		if p.usable(c) && !(n >= 0 && n <= mostPackets) {
			return fmt.Errorf("%w: count %g in cell %d, want 0 to %g", estimate.ErrConfig, n, c, float64(mostPackets))
		}
	}
	for i, c := range p.Cells {
		if uint64(c) >= uint64(cells) {
			return fmt.Errorf("%w: cell %d of flow %d, want below %d", estimate.ErrConfig, c, i/p.Rows/p.CellsPerRow, cells)
		}
	}
	for f, d := range p.Doubt {
		if !(d >= 0 && d <= mostPackets) {
			return fmt.Errorf("%w: doubt of %g packets in flow %d, want 0 to %g", estimate.ErrConfig, d, f, float64(mostPackets))
		}
	}
	if p.Parts != nil && len(p.Parts) != len(p.Cells) {
		return fmt.Errorf("%w: %d parts for %d cell indices", estimate.ErrConfig, len(p.Parts), len(p.Cells))
	}
	for i, part := range p.Parts {
		if !(part >= 0 && part <= 1) {
			return fmt.Errorf("%w: part %g of flow %d, want 0 to 1", estimate.ErrConfig, part, i/p.Rows/p.CellsPerRow)
		}
	}
	for f, w := range p.Packets {
		if w != 0 && !(w >= leastPackets && w <= mostPackets) {
			return fmt.Errorf("%w: %g packets in flow %d, want 0, or %g to %g", estimate.ErrConfig, w, f, leastPackets, float64(mostPackets))
		}
	}
	return nil
}

func (p *Problem) usable(cell int) bool {
	return p.Unusable == nil || !p.Unusable[cell]
}

// A progress turns the residuals of several solves into one fraction.
type progress struct {
	report        func(float64)
	stages, stage int
	done          float64
}

// residual records that the current solve has reached this relative residual.
func (w *progress) residual(now, tolerance float64) {
	w.part(math.Log(now) / math.Log(tolerance))
}

// part records which fraction of the current stage is done.
func (w *progress) part(part float64) {
	if w.report == nil {
		return
	}
	w.done = max(w.done, (float64(w.stage)+min(max(part, 0), 1))/float64(w.stages+1))
	w.report(w.done)
}

func (w *progress) next() { w.stage++ }

func (w *progress) finish() {
	if w.report != nil {
		w.report(1)
	}
}
