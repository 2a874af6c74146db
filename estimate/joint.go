package estimate

import (
	"context"
	"fmt"
	"math"
)

// A JointProblem is what one interval of a shared synopsis says about the
// mean delays of all its flows: cells that many flows share, and for each flow
// the cells its packets fell in and how many packets it had.
//
// A flow's cells come in Rows runs of CellsPerRow. Each packet of the flow
// fell in exactly one cell of each run, chosen evenly by a hash of the packet
// and independently from run to run. An LDS has its rows and the length of the
// virtual LDA; COLATE has one row of m counters; cells of different rows are
// numbered apart by the caller (row × columns + column). The same cell may
// stand more than once in a run, and then it gets more than one share.
//
// A JointProblem is only read, and may be solved by several goroutines.
type JointProblem struct {
	// Sum is, for each cell, the sum of the delays of its packets in
	// nanoseconds: receiver's sum minus sender's.
	Sum []float64
	// Count is, for each cell, how many packets it holds. Nil where the cells
	// do not count; the estimates are then considerably worse.
	Count []float64
	// Unusable marks the cells that must not be believed, because a packet of
	// theirs was lost or reordered out of the interval. Nil: all are usable.
	Unusable []bool

	Rows        int // how many cells each packet fell in, 1 or more
	CellsPerRow int // how many cells of a row a flow's packets are spread over, 1 or more

	// Packets is, for each flow, how many packets it had, known or decoded.
	// Its length is the number of flows. A flow of 0 packets is allowed, and
	// gets the prior.
	Packets []float64
	// Cells holds Rows × CellsPerRow cell indices for each flow: those of
	// flow f begin at f × Rows × CellsPerRow.
	Cells []uint32
}

// A JointPrior is what is believed of any flow before its cells are read: its
// delays are Mean + a deviation of the flow + a deviation of the packet.
// Nothing but these three moments is assumed of the distributions.
type JointPrior struct {
	Mean    float64 // nanoseconds: the mean delay of flows
	Between float64 // nanoseconds: standard deviation of flows' means around Mean
	Within  float64 // nanoseconds: standard deviation of packets around their flow's mean
}

// JointOptions tune [JointProblem.Solve]. The zero value is good.
type JointOptions struct {
	// Prior, or nil to use the problem's own [JointProblem.EstimatePrior].
	Prior *JointPrior
	// Tolerance ends the iteration when the residual of the normal equations,
	// in the norm of their preconditioner, is this part of the right-hand
	// side's. 0 means 1e-6.
	Tolerance float64
	// MaxIterations of one linear solve; 0 means 1,000. Reaching it is not an
	// error: see JointResult.Converged.
	MaxIterations int
	// Progress, if not nil, is called from the solving goroutine after every
	// iteration with the fraction of the work that is done, which never falls.
	Progress func(done float64)
}

// A JointResult is a mean delay for every flow.
type JointResult struct {
	// Mean is, for each flow, the estimate of the mean delay over the packets
	// that it sent, in nanoseconds.
	Mean []float64
	// StdDev is, for each flow, the deviation of Mean from the truth that is
	// to be expected, in nanoseconds.
	StdDev []float64

	Prior      JointPrior // the prior used
	Iterations int        // conjugate-gradient iterations of the solve for the means
	Residual   float64    // relative, in the measure of JointOptions.Tolerance
	Converged  bool       // whether Residual reached the tolerance
}

// Interval is the confidence interval of flow f's mean at z deviations, for
// example 1.96 for 95 %.
func (r *JointResult) Interval(f int, z float64) Interval {
	return Interval{
		Low:        r.Mean[f] - z*r.StdDev[f],
		High:       r.Mean[f] + z*r.StdDev[f],
		Confidence: math.Erf(z / math.Sqrt2),
	}
}

// Solve estimates the mean delay of every flow from all cells at once.
//
// It returns [ErrConfig] where the problem's slices do not fit each other,
// [ErrNoSamples] where no usable cell holds a packet, and the context's error
// as soon as the context is done.
func (p *JointProblem) Solve(ctx context.Context, opts JointOptions) (JointResult, error) {
	if err := p.validate(); err != nil {
		return JointResult{}, err
	}
	return JointResult{}, fmt.Errorf("%w: joint decoding is not written yet", ErrNoSamples)
}

// EstimatePrior estimates the three moments of the prior from the cells
// alone, by the method of moments.
func (p *JointProblem) EstimatePrior() (JointPrior, error) {
	if err := p.validate(); err != nil {
		return JointPrior{}, err
	}
	return JointPrior{}, fmt.Errorf("%w: joint decoding is not written yet", ErrNoSamples)
}

// validate reports the first thing that does not fit.
func (p *JointProblem) validate() error {
	cells, flows := len(p.Sum), len(p.Packets)
	switch {
	case p.Rows < 1 || p.CellsPerRow < 1:
		return fmt.Errorf("%w: %d rows of %d cells per flow, want at least 1 of 1", ErrConfig, p.Rows, p.CellsPerRow)
	case p.Count != nil && len(p.Count) != cells:
		return fmt.Errorf("%w: %d counts for %d cells", ErrConfig, len(p.Count), cells)
	case p.Unusable != nil && len(p.Unusable) != cells:
		return fmt.Errorf("%w: %d unusable marks for %d cells", ErrConfig, len(p.Unusable), cells)
	case len(p.Cells)/p.Rows/p.CellsPerRow != flows || len(p.Cells)%p.Rows != 0 || len(p.Cells)/p.Rows%p.CellsPerRow != 0:
		return fmt.Errorf("%w: %d cell indices for %d flows of %d × %d", ErrConfig, len(p.Cells), flows, p.Rows, p.CellsPerRow)
	}
	for i, c := range p.Cells {
		if uint64(c) >= uint64(cells) {
			return fmt.Errorf("%w: cell %d of flow %d, want below %d", ErrConfig, c, i/p.Rows/p.CellsPerRow, cells)
		}
	}
	for f, w := range p.Packets {
		if !(w >= 0) || math.IsInf(w, 0) {
			return fmt.Errorf("%w: %g packets in flow %d, want a finite number from 0", ErrConfig, w, f)
		}
	}
	return nil
}
