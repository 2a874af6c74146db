package lda

import (
	"math"

	"github.com/hoplag/hoplag/estimate"
)

// tailReach is how many times longer than the mean delay, or than the deviation
// if that is greater, an unseen packet is taken to be at most.
const tailReach = 1000

// MeanInterval is the interval of the mean delay of the packets that arrived
// (Spoken of them): the bound of eq. (1), [estimate.HoeffdingInterval], for as
// many packets as were not seen, widened as Student's distribution is against
// the normal, since the deviation is estimated; and on the upper side by what
// the sample may have missed.
//
// No sample knows of delays so rare that it has none of them. Of a share
// [Result.Unseen] of the packets it may have none, and if each of them takes
// up to 1,000 times the mean, or the deviation where that is greater, the
// mean is that much greater. Where all packets are in usable cells nothing is
// missed, and the interval is as narrow as rounding.
//
// Packets are in cells by their hash, whatever their delay, so delays that
// depend on one another in time, and losses that come in bursts or with the
// longest delays, do not spoil it. Of an [Accumulator] it is wider by MeanDoubt,
// which knows as much of the intervals that miss packets as the others tell. An offset between clocks shifts it.
func (r *Result) MeanInterval(confidence float64) estimate.Interval {
	i := r.CentralLimitInterval(confidence)
	if math.IsInf(i.High, 1) {
		return i
	}
	normal := -estimate.NormalQuantile((1 - confidence) / 2)
	if normal > 0 {
		half := (i.High - r.Mean) * math.Sqrt(2*math.Log(2/(1-confidence))) / normal
		i.Low, i.High = r.Mean-half, r.Mean+half
	}
	i.High += r.Unseen(confidence) * tailReach * max(math.Abs(r.Mean), r.StdDev)
	return i
}

// CentralLimitInterval is the interval of the mean delay by the central limit
// theorem, with Student's quantile: three quarters as wide as eq. (1) at 98 %,
// without its margin for delays whose sums over a cell are not normal yet, and
// without [Result.MeanInterval]'s for what was not seen. It suits delays whose
// tails are known to be light.
func (r *Result) CentralLimitInterval(confidence float64) estimate.Interval {
	i := estimate.StudentInterval(estimate.Delay{Mean: r.Mean, StdDev: r.MeanError, N: min(r.N, 1)}, r.MeanDegrees, confidence)
	margin := r.rounding() + r.MeanDoubt
	i.Low -= margin
	i.High += margin
	return i
}

// rounding is by how much floating-point arithmetic may be off.
func (r *Result) rounding() float64 { return math.Abs(r.Mean)*0x1p-50 + r.StdDev*0x1p-30 }

// Unseen is the greatest share of the received packets that may all have been
// outside usable cells, with the given confidence: of rare long delays that
// make up less, the estimates may know nothing. Strays count, as they may be the
// slow ones. It is 0 where all packets were
// in usable cells, and 1 for bad arguments.
func (r *Result) Unseen(confidence float64) float64 {
	if !(confidence > 0 && confidence < 1) || r.Spoken == 0 {
		return 1
	}
	share, strays := float64(r.N)/float64(r.Spoken), float64(r.Strays)/float64(r.Spoken)
	if share >= 1 {
		return 0
	}
	// None of k packets is in a usable cell with probability (1-share)^k.
	k := math.Log((1-confidence)/2) / math.Log1p(-share)
	return min(k/float64(r.Spoken)+strays, 1-share)
}

// DeviationInterval is the chi-square interval of the deviation of the delays
// of the packets that arrived, see [estimate.Cells.PopulationDegrees], with
// half the probability of a miss kept as a margin, because its degrees of
// freedom are estimated, too; and wider above by what [Result.Unseen] packets
// may add, as [Result.MeanInterval] is, and those that repeat: of them only the
// sum of their delays is known. Leave them out with [EstimateRest].
func (r *Result) DeviationInterval(confidence float64) estimate.Interval {
	if !(confidence > 0 && confidence < 1) {
		return estimate.DeviationInterval(r.StdDev, 0, confidence)
	}
	i := estimate.DeviationInterval(r.StdDev, r.DeviationDegrees, 1-(1-confidence)/2)
	if i.Confidence < 1 {
		i.Confidence = confidence
		reach := tailReach * max(math.Abs(r.Mean), r.StdDev)
		unseen := min(1, r.Unseen(confidence)+float64(r.Repeats.Packets)/float64(r.Spoken))
		i.High = math.Sqrt(i.High*i.High + unseen*reach*reach)
		rounding := r.rounding()
		i.Low, i.High = max(0, i.Low-rounding), i.High+rounding
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
// losses independent of one another. Outstanding packets may be lost or not.
func (r *Result) LossInterval(confidence float64) estimate.Interval {
	i := estimate.ProportionInterval(min(r.Lost, r.Sent), r.Sent, confidence)
	if r.Outstanding > 0 {
		i.High = estimate.ProportionInterval(min(r.Lost+r.Outstanding, r.Sent), r.Sent, confidence).High
	}
	return i
}
