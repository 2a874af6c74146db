package lda

import (
	"math"

	"github.com/hoplag/hoplag/estimate"
)

// MeanInterval is the interval of the mean delay to print: the bound of eq.
// (1), [estimate.HoeffdingInterval], widened as Student's distribution is
// against the normal, since the deviation is not known but estimated from the
// usable cells. With fewer than two of them it is unbounded.
//
// It holds for the mean of the packets that arrived in the interval, and no
// less for the mean of the process that they are a sample of; for the former
// it is wider than need be where most packets are in usable cells. Packets are
// in cells by their hash, whatever their delay, so delays that depend on one
// another in time, and losses that come in bursts or with the longest delays,
// do not spoil it.
func (r *Result) MeanInterval(confidence float64) estimate.Interval {
	hoeffding := estimate.HoeffdingInterval(r.Delay, confidence)
	student := estimate.StudentInterval(r.Delay, r.usable.EffectiveDegrees(), confidence)
	if math.IsInf(hoeffding.High, 1) || math.IsInf(student.High, 1) {
		return student
	}
	normal := estimate.NormalInterval(r.Delay, confidence)
	half := hoeffding.High - r.Mean
	if normal.High > r.Mean {
		half *= (student.High - r.Mean) / (normal.High - r.Mean)
	}
	return estimate.Interval{Low: r.Mean - half, High: r.Mean + half, Confidence: confidence}
}

// CentralLimitInterval is the interval of the mean delay by the central limit
// theorem, with Student's quantile for the usable cells' degrees of freedom:
// three quarters as wide as [Result.MeanInterval] at 98 %, and without its
// margin for delays whose sums over a cell are not normal yet. Where that one
// covered the mean in 99 % of 1,000 runs and more, at all losses from 0.01 to
// 20 %, this one did in 97 % and more.
func (r *Result) CentralLimitInterval(confidence float64) estimate.Interval {
	return r.usable.MeanInterval(confidence)
}

// DeviationInterval is the chi-square interval of the deviation, see
// [estimate.Cells.DeviationInterval], with half the probability of a miss kept
// as a margin, because its degrees of freedom are estimated, too. It holds for
// delays with light tails. The heavier they are, and the fewer packets a cell
// holds, the more often it is too narrow, because no estimate of a deviation
// can know of rare long delays that the sample lacks: with four packets to a
// cell, 98 % became 97 % for Weibull delays, 96 % for Pareto delays of shape 5,
// and 86 % for shape 3, where a few packets make most of the deviation.
func (r *Result) DeviationInterval(confidence float64) estimate.Interval {
	if !(confidence > 0) { // of which half the rest would be a confidence
		return r.usable.DeviationInterval(confidence)
	}
	i := r.usable.DeviationInterval(1 - (1-confidence)/2)
	if i.Confidence < 1 {
		i.Confidence = confidence
	}
	return i
}

// Loss is the share of the packets that were lost, 0 if none was sent.
func (r *Result) Loss() float64 {
	if r.Sent == 0 {
		return 0
	}
	return float64(r.Lost) / float64(r.Sent)
}

// LossInterval is the Clopper–Pearson interval of the probability that a
// packet is lost. The number lost in this interval is known exactly, sampled
// or not; how well it tells what to expect of the next is what this says, for
// losses independent of one another.
func (r *Result) LossInterval(confidence float64) estimate.Interval {
	return estimate.ProportionInterval(min(r.Lost, r.Sent), r.Sent, confidence)
}
