package joint

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/hoplag/hoplag/estimate"
)

// A Problem is what one interval of a shared synopsis says about the mean delays of all its flows: cells that many flows
// share and, for each flow, the cells that its packets fell in and the number of its packets.
//
// A flow's cells come in Rows runs of CellsPerRow. Each packet of the flow fell in one cell of each run. A hash of the
// packet chose the cell evenly, and independently from run to run. An LDS has its rows and the length of the virtual LDA;
// COLATE has one row of m counters. The caller numbers cells of different rows apart (row × columns + column). A cell that
// occurs more than once in a run gets more than one share.
//
// List all flows of the interval. Packets of unlisted flows count as independent packets of unknown flows,
// which understates the effect of one large unlisted flow on its cells.
//
// Solving only reads a Problem, so several goroutines may solve it at once.
type Problem struct {
	// Sum holds, for each cell, the sum of the delays of its packets in nanoseconds, up to 10^30.
	Sum []float64
	// Count holds, for each cell, the number of its packets. Nil means that cells do not count, which makes estimates worse.
	Count []float64
	// Unusable marks cells that must not be used, because a packet was lost or reordered out of the interval. Nil: all are usable.
	Unusable []bool

	// Variance holds, for each cell, that of the error of Sum, which differs from cell to cell of a row. Nil means that sums are exact.
	Variance []float64

	Rows        int // number of cells that each packet fell in, 1 or more
	CellsPerRow int // number of cells of a row that a flow's packets are spread over, 1 or more
	// Rates holds, for each row, the fraction of all packets recorded in it, sampled by a hash of the packet: 10^-9 to 1. Nil: all.
	Rates []float64

	// Packets holds, for each flow, the number of its packets before any sampling, known or decoded, 10^-9 to 10^18. Its
	// length is the number of flows. A flow may have 0 packets; it gets the prior.
	Packets []float64
	// Doubt holds, for each flow, the standard deviation of the error of Packets if they were decoded. Errors are assumed
	// independent from flow to flow. Nil means that Packets are exact.
	Doubt []float64
	// Sampled holds, for each flow, what packets of it say that were measured one by one. Nil means that none were.
	Sampled []Sample
	// Cells holds Rows × CellsPerRow cell indices for each flow, row by row.
	Cells []uint32
}

// A Sample is the mean delay of some packets of a flow, taken at random, in nanoseconds.
type Sample struct {
	Mean    float64
	Packets float64 // their number; with 0 the sample says nothing
	Part    float64 // the variance of its packets, as a part of the square of their mean, if that is more than guesses have
}

// Options tunes [Problem.Solve]. The zero value is a good choice.
type Options struct {
	tolerance float64 // of the iteration, for tests; 0 means enough
	// MeansOnly leaves StdDev out, which saves half the time or more.
	MeansOnly bool
}

// A Result holds a mean delay for every flow.
type Result struct {
	// Mean holds, for each flow, the estimated mean delay of the packets that it sent, in nanoseconds. It may be below 0: clocks may
	// be offset, so nothing says that delays are not, and crowded cells, or those of far slower flows, do not show the smallest.
	Mean []float64
	// StdDev holds, for each flow, the expected root mean square error of Mean, in nanoseconds. It is nil with Options.MeansOnly.
	StdDev []float64
	// Degrees holds, for each flow, the degrees of freedom of Mean's Student distribution, 5 or more: more if many flows have a part in
	// its error. Nil means 5 for all.
	Degrees []uint8
	// Usable holds, for each flow, the number of usable cells that hold its packets, up to 65,535. If it is 0 nothing is
	// known about the flow, and Mean is that of all flows.
	Usable []uint16
	// Packets holds the Problem's Packets, known or decoded.
	Packets []float64
}

// degreesOf returns the degrees of freedom of a sum of independent errors with the kurtosis of exponential delays, from its variance
// and the squares of its parts: the excess of n equal ones is an n-th of that of one, which has 5. Errors of flows of few packets, of
// which only two moments are known, have the skew and the modes of delays.
func degreesOf(variance, squares float64) uint8 {
	n := variance * variance / squares
	if !(n >= usualDegrees-noKurtosis) { // out of range, too
		return usualDegrees
	}
	return uint8(math.Round(min(noKurtosis+n, math.MaxUint8)))
}

const noKurtosis, usualDegrees, farDegrees = 4, 5, 3 // the last beyond 95 %: tails as heavy as they can be with a variance

// Widen adds an independent error, of the given deviation, to flow f's mean.
func (r *Result) Widen(f int, deviation float64) {
	was, by := r.StdDev[f]*r.StdDev[f], deviation*deviation
	if r.StdDev[f] = math.Sqrt(was + by); r.Degrees != nil {
		r.Degrees[f] = degreesOf(was+by, was*was/float64(r.Degrees[f]-noKurtosis)+by*by)
	}
}

// MeanInterval returns the interval of flow f's mean at the given confidence, between 0 and 1. It extends to both sides by as many
// deviations as Student's distribution with its Degrees says, and beyond 95 % by as many times more as that with 3 degrees does (4.1
// at 99.9 %). It is unbounded for a flow without a usable cell, and without StdDev.
func (r *Result) MeanInterval(f int, confidence float64) estimate.Interval {
	if r.Usable[f] == 0 || r.StdDev == nil {
		return estimate.Interval{Low: math.Inf(-1), High: math.Inf(1), Confidence: confidence}
	}
	d, of := estimate.Delay{Mean: r.Mean[f], StdDev: r.StdDev[f], N: 1}, uint64(usualDegrees)
	if r.Degrees != nil {
		of = uint64(r.Degrees[f])
	}
	if confidence > 0.95 {
		d.StdDev *= estimate.StudentQuantile(0.975, float64(of)) / estimate.StudentQuantile(0.975, farDegrees)
		of = farDegrees
	}
	return estimate.StudentInterval(d, of, confidence)
}

// Solve estimates the mean delay of every flow from all cells at once: the linear estimate of least expected square error.
//
// It first guesses every flow's delay above the smallest. Then it solves with variances in proportion to the squares of the
// guesses, and scales StdDev by how far cells are from what the others predict.
//
// A flow of few packets, among many in all its cells, is guessed to be near the typical delay of its size, with a deviation as wide
// as delays are apart. A flow without a usable cell gets the mean of all. Flows that lost packets, and so their cells, are often
// those that waited longest, for which no deviation allows. Without counts Solve assumes that delays are positive, so a clock
// offset must be small. If one packet in thousands is slow, the deviation of a flow in whose cells there is none does not include it.
//
// It holds about 10 numbers per flow, 10 per cell, and 8 bytes per entry of Cells, and takes time in proportion to Cells.
// Nothing is random: the same problem gives the same bits on the same machine.
//
// It returns [estimate.ErrConfig] if the problem's slices do not fit each other or hold a value out of range,
// [estimate.ErrNoSamples] if no flow has a packet in a usable cell, and the context's error once the context is done.
func (p *Problem) Solve(ctx context.Context, opts Options) (Result, error) {
	if err := p.validate(); err != nil {
		return Result{}, err
	}
	q := weigh(p)
	s, err := newSolver(q)
	if err != nil {
		return Result{}, err
	}
	h, err := s.solve(ctx, opts)
	if err != nil {
		return Result{}, err
	}
	r := Result{Mean: h, Packets: p.Packets}
	enough := settled
	if opts.MeansOnly {
		enough = nearly
	}
	v, brought, heard := s.posterior(ctx, enough)
	bent := s.finish(h, v)
	if !opts.MeansOnly {
		r.StdDev, r.Degrees = s.deviations(v, brought, heard, h, bent)
	}
	s.mark(&r)
	return r, ctx.Err()
}

// finish turns h into means, and returns by how much each differs from what is linear. Far below its guess a flow is
// not linear: it is faster by a factor. But where cells determine the flow, they are right, and where they do not,
// a mean is moved no farther from what they say than by the deviation that they leave, or up to base.
func (s *solver) finish(h, v []float64) (bent []float64) {
	bent = make([]float64, len(h))
	for f, off := range h {
		if v[f] == 0 {
			h[f] = s.mean
			continue
		}
		above := s.above[f]
		if off < 0 && v[f] > determinedLeft*s.variance[f] {
			bent[f] = min(above*math.Expm1(off/above)-off, max(math.Sqrt(v[f]), -above-off))
		}
		h[f] = s.base + above + off + bent[f]
	}
	return bent
}

const determinedLeft = 1e-2 // of the variance, at most, where cells determine a flow: its deviation is a tenth

// mark fills in from how many cells each flow is known.
func (s *solver) mark(r *Result) {
	r.Usable = make([]uint16, len(s.Packets))
	for f := range s.Packets {
		n := 0
		for _, c := range s.run(f) {
			if s.trust[c] > 0 && s.variance[f] > 0 {
				n++
			}
		}
		r.Usable[f] = uint16(min(n, math.MaxUint16))
	}
}

// Fourth powers of numbers beyond these may not fit a float64. No sum of 64 bits, nor count, comes near.
const (
	mostSum      = 1e30 // ns
	mostPackets  = 1e18
	leastPackets = 1e-9 // packets, and the least rate
)

// validate reports the first thing that does not fit.
func (p *Problem) validate() error {
	cells, flows := len(p.Sum), len(p.Packets)
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{estimate.ErrConfig}, args...)...)
	}
	within := func(what string, of []float64, low, high float64, ask func(i int, x float64) bool) error {
		for i, x := range of {
			if ask(i, x) && !(x >= low && x <= high) {
				return bad("%s %d is %g, want %g to %g", what, i, x, low, high)
			}
		}
		return nil
	}
	if p.Rows < 1 || p.CellsPerRow < 1 {
		return bad("%d rows of %d cells per flow, want at least 1 of 1", p.Rows, p.CellsPerRow)
	}
	if len(p.Cells)%p.Rows != 0 || len(p.Cells)/p.Rows%p.CellsPerRow != 0 || len(p.Cells)/p.Rows/p.CellsPerRow != flows {
		return bad("%d cell indices for %d flows of %d × %d", len(p.Cells), flows, p.Rows, p.CellsPerRow)
	}
	fit := func(given bool, got, want int, what, of string) error {
		if given && got != want {
			return bad("%d %s for %d %s", got, what, want, of)
		}
		return nil
	}
	if err := cmp.Or(fit(p.Count != nil, len(p.Count), cells, "counts", "cells"), fit(p.Doubt != nil, len(p.Doubt), flows, "doubts", "flows"),
		fit(p.Variance != nil, len(p.Variance), cells, "variances", "cells"), fit(p.Rates != nil, len(p.Rates), p.Rows, "rates", "rows"),
		fit(p.Unusable != nil, len(p.Unusable), cells, "unusable marks", "cells"),
		fit(p.Sampled != nil, len(p.Sampled), flows, "samples", "flows")); err != nil {
		return err
	}
	for i, c := range p.Cells {
		if uint64(c) >= uint64(cells) {
			return bad("cell %d of flow %d, want below %d", c, i/p.Rows/p.CellsPerRow, cells)
		}
	}
	every, used := func(int, float64) bool { return true }, func(i int, _ float64) bool { return p.usable(i) }
	for f, x := range p.Sampled {
		if !(math.Abs(x.Mean) <= mostSum && x.Packets >= 0 && x.Packets <= mostPackets && x.Part >= 0 && x.Part <= math.MaxFloat64) {
			return bad("sample of flow %d is %+v", f, x)
		}
	}
	return cmp.Or(within("rate of row", p.Rates, leastPackets, 1, every), within("sum of cell", p.Sum, -mostSum, mostSum, used),
		within("count of cell", p.Count, 0, mostPackets, used), within("variance of cell", p.Variance, 0, mostSum*mostSum, used),
		within("doubt of flow", p.Doubt, 0, mostPackets, every),
		within("number of packets, if not 0, of flow", p.Packets, leastPackets, mostPackets, func(_ int, x float64) bool { return x != 0 }))
}

func (p *Problem) usable(cell int) bool {
	return p.Unusable == nil || !p.Unusable[cell]
}
