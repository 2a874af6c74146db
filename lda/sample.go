package lda

import (
	"math"

	"github.com/hoplag/hoplag/estimate"
)

// A sample adds up what the usable cells of intervals tell. Each interval
// counts by how many packets were received in it, not by how many of them are
// in usable cells: these are fewest where losses are many, as in congestion,
// when delays are long.
type sample struct {
	base      int64 // of the first interval; means are relative to it
	intervals uint64
	spoken    uint64           // packets received in all intervals (R)
	mean      estimate.Moments // of the intervals' means, by packets received
	within    estimate.Cells   // of each interval about its own mean
	variance  float64          // Σ R²σ²/N of the intervals, for the mean of a process
	excess    float64          // Σ R²·(variance of the mean that is due to copies)
	fourth    float64          // Σ (R²σ²/N)²/degrees
	noise     float64          // Σ Rσ²/N
	packets   uint64           // in usable cells (N)
	usable    int
	negative  int
}

// add adds an interval with usable cells.
func (s *sample) add(found *settlement, received uint64) {
	if s.intervals == 0 {
		s.base = found.base
	}
	s.intervals++
	n, r := float64(found.cells.N()), float64(received)
	n *= n / found.squares // the effective number, if some count more than once
	s.within.Pool(found.cells)
	s.mean.AddN(float64(found.base-s.base)+found.cells.Mean(), received)
	// Of few cells the deviation is as uncertain as that of all so far.
	degrees, variance := found.cells.EffectiveDegrees(), found.cells.Variance()
	if degrees < 8 && s.intervals > 1 {
		degrees, variance = max(s.within.EffectiveDegrees(), degrees), max(s.within.Variance(), variance)
	}
	of := r * r * variance / n
	s.variance += of
	s.excess += found.excess * (r / float64(found.cells.N())) * (r / float64(found.cells.N()))
	s.noise += r * variance / n
	if degrees > 0 {
		s.fourth += of * of / float64(degrees)
	}
	s.spoken += received
	s.packets += found.packets
	s.usable += found.distinct
	s.negative += found.negative
}

// report fills in what a Result says of delays.
func (s *sample) report(r *Result) {
	total := float64(s.spoken)
	r.N, r.Spoken, r.Usable, r.Negative = s.packets, s.spoken, s.usable, s.negative
	r.Mean = float64(s.base) + s.mean.Mean()
	unseen := max(0, 1-float64(s.packets)/total) // finite population: the packets seen are no guess
	r.DeviationDegrees = s.within.PopulationDegrees(1 - unseen)
	if s.excess > 0 { // some cells stand for others
		r.DeviationDegrees = s.within.EffectiveDegrees()
	}
	if r.DeviationDegrees == 0 {
		if unseen == 0 {
			r.MeanDegrees = 1
		}
		return
	}
	between := max(0, s.mean.PopulationVariance()-s.noise/total*unseen)
	r.StdDev = math.Sqrt(s.within.Variance() + between)
	r.MeanError = math.Sqrt(s.variance*unseen+s.excess) / total
	r.MeanDegrees = r.DeviationDegrees
	if s.fourth > 0 {
		r.MeanDegrees = uint64(max(1, s.variance*s.variance/s.fourth))
	}
}
