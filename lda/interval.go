package lda

import (
	"math"

	"github.com/hoplag/hoplag/estimate"
)

// mostScales is the assumed limit of a delay where few were seen: this many times the mean, or the deviation if
// that is greater. copyReach is that of copies of which others were seen.
const mostScales, copyReach = 1000, 10

// MeanInterval returns the interval of the mean delay of the packets that arrived: of one interval, the bound of eq. (1)
// for those that were not seen, as in [estimate.HoeffdingInterval], and what they, copies and packets that cross its
// ends may add. Hashes spread packets over cells whatever their delay, so it does no harm if delays depend on one
// another in time, or if losses come in bursts or with the longest delays. From an [Accumulator] it allows for packets
// that cross the report's ends, and losses leave its upper end far above until 45 intervals have shown how long the
// slowest packets take. An offset between the clocks shifts it.
func (r *Result) MeanInterval(confidence float64) estimate.Interval {
	i := r.studentInterval(confidence)
	if math.IsInf(i.High, 1) {
		return i
	}
	if !r.fromAreas {
		i = r.withUnseen(i, confidence)
	}
	return r.withCopies(i)
}

// withUnseen makes an interval of the mean of one interval that of eq. (1), and widens it by what the sample lacks.
func (r *Result) withUnseen(i estimate.Interval, confidence float64) estimate.Interval {
	if normal := -estimate.NormalQuantile((1 - confidence) / 2); normal > 0 {
		half := (i.High - r.Mean) * math.Sqrt(2*math.Log(2/(1-confidence))) / normal
		i.Low, i.High = r.Mean-half, r.Mean+half
	}
	// Where most packets were seen, others take no longer than one of them may have. If a share s was seen, the
	// probability that there is a rare kind of packets and none of it was seen is at most (1-s)·s^(s/(1-s)): 0.19 for 0.6.
	reach, strays := r.tailReach(), min(r.share(r.strays), 1)
	if r.share(r.N) >= 0.6 {
		reach = max(r.greatest-r.Mean, r.StdDev)
	}
	i.Low -= strays * max(0, r.Mean-r.least)
	i.High += r.unseen(confidence)*reach + strays*r.straysReach()
	return i
}

// tailReach returns by how much longer than the mean a packet may take where few were seen: it was sent and came within
// the interval.
func (r *Result) tailReach() float64 {
	if r.length == 0 {
		return mostScales * r.scale()
	}
	return min(mostScales*r.scale(), max(r.length, r.scale()))
}

// straysReach returns by how much longer strays may take than the mean: METHODS.md, section 2, under joiners. Copies in
// an overfull cell have no such limit.
func (r *Result) straysReach() float64 {
	if r.unknown > 0 || r.length == 0 {
		return r.tailReach()
	}
	return max(r.share(r.strays)*r.length, r.crossing-r.Mean, r.twice-r.Mean, r.greatest-r.Mean, r.StdDev)
}

// OfReceived returns the mean delay of the packets received in an [Accumulator]'s report, and its interval. Mean,
// in contrast, is the time that packets spent on their way within the report, also of those that come later. As
// far as it is not known what became of those on their way at its end, the interval reaches towards Mean.
func (r *Result) OfReceived(confidence float64) (mean float64, i estimate.Interval) {
	of := *r
	of.Mean, of.owed, of.late = r.Mean+r.owed, -r.owed*r.pending, r.late-r.coming
	if r.fromAreas && r.delaysError < math.Inf(1) { // whatever becomes of those on their way
		of.sampling, of.owed, of.late = r.delaysError, 0, 0
	}
	return of.Mean, of.MeanInterval(confidence)
}

func (r *Result) studentInterval(confidence float64) estimate.Interval {
	i := estimate.StudentInterval(estimate.Delay{Mean: r.Mean, StdDev: r.sampling, N: min(r.N, 1)}, r.meanDegrees, confidence)
	i.Low += min(r.owed, 0) - r.stray - r.rounding()
	i.High += max(r.owed, 0) + r.late + r.stray + r.rounding()
	return i
}

// withCopies widens an interval of the mean by the copies of which no delay is known: they may have taken no time at all, or as
// long as one packet may have, or copyReach where areas do not say how long that is. Those that are unknown are strays, too.
func (r *Result) withCopies(i estimate.Interval) estimate.Interval {
	missing, reach := r.lacking(i.Confidence), max(0, r.greatest-r.Mean)
	if !r.fromAreas {
		reach = max(reach, copyReach*r.scale())
	}
	i.Low -= (r.share(r.unknown) + missing) * r.scale()
	i.High += missing * reach
	return i
}

// lacking returns the greatest share of the packets received, with the given confidence, that is not in the sample
// because copies of them were lost.
func (r *Result) lacking(confidence float64) float64 {
	return min(1, r.behind.most(-estimate.NormalQuantile((1-confidence)/2)))
}

// share returns a number of packets as a share of those that mean and deviation describe.
func (r *Result) share(packets uint64) float64 { return float64(packets) / float64(max(r.spoken, 1)) }

// scale is what the limits of delays are multiples of.
func (r *Result) scale() float64 { return max(math.Abs(r.Mean), r.StdDev) }

// rounding returns the possible error of floating-point arithmetic.
func (r *Result) rounding() float64 { return math.Abs(r.Mean)*0x1p-50 + r.StdDev*0x1p-30 }

// unseen returns the greatest share of the received packets that may all have been
// outside usable cells by chance, with the given confidence: delays rarer than that may be
// unknown. It is 0 if all packets were in usable cells, and 1 for bad arguments.
func (r *Result) unseen(confidence float64) float64 {
	share := r.share(r.N)
	switch {
	case !(confidence > 0 && confidence < 1) || r.spoken == 0:
		return 1
	case share >= 1:
		return 0
	}
	// None of k packets is in a usable cell with probability (1-share)^k.
	k := math.Floor(math.Log((1-confidence)/2) / math.Log1p(-share))
	return min(k/float64(r.spoken), 1-share)
}

// DeviationInterval returns the chi-square interval of the deviation of the delays of the n packets that arrived, by n − 1,
// at half the probability of a miss, because degrees of freedom are estimated, too. It allows for packets that were not seen
// and for copies, but does not hold where identical packets travel in groups of two or three that are too few to show: such
// cells scatter as those of slower packets do.
func (r *Result) DeviationInterval(confidence float64) estimate.Interval {
	i := estimate.DeviationInterval(r.StdDev, r.deviationDegrees, 1-(1-confidence)/2)
	if !(confidence > 0 && confidence < 1) || i.Confidence == 1 {
		return estimate.DeviationInterval(r.StdDev, 0, confidence)
	}
	i.Confidence = confidence
	copies := min(1, r.lacking(confidence)+r.share(r.Repeats))
	i.High = math.Sqrt(sq(i.High)+copies*sq(copyReach*r.scale())+r.missing(confidence)) + r.rounding()
	if r.calmDegrees > 0 {
		i.Low = min(i.Low, estimate.DeviationInterval(r.calm, r.calmDegrees, confidence).Low)
	}
	i.Low = max(0, i.Low*math.Sqrt(1-max(r.copied, copies))-r.rounding())
	return i
}

// missing returns the greatest mean square of delays that the sample may lack. As far as areas say that
// the mean of those received is greater, beyond chance, slow ones were not alone. Within what chance allows, slow ones
// may be so rare that none was alone. They take up to half as long again as any known. If one came after it
// had counted as lost, one may have taken all of that. Those of which copies came may all be the slowest.
func (r *Result) missing(confidence float64) float64 {
	if !r.fromAreas {
		return r.unseen(confidence)*sq(r.tailReach()) + min(1, r.share(r.strays))*sq(r.straysReach())
	}
	n := float64(r.alone.N)
	_, received := r.OfReceived(confidence)
	slower, most := received.High-r.alone.Mean, max(0, 1.5*r.greatest-r.alone.Mean)
	if more := max(0, slower); r.Extra > 0 {
		return more*max(most, more*float64(r.spoken)) + r.copied*sq(most)
	}
	chance := estimate.NormalQuantile(confidence) * r.alone.StdDev * math.Sqrt(r.byChance()/n)
	rare := min(-math.Log(1-confidence)/n, 1-r.aloneShare()) // none of n packets is of a share as rare as that
	return min(max(0, slower+chance)*most, max(0, slower-chance)*most+rare*sq(r.greatest-r.alone.Mean)) + r.copied*sq(most)
}

// aloneShare returns which share of the packets received was alone and is in the sample.
func (r *Result) aloneShare() float64 { return min(1, float64(r.alone.N)/float64(max(r.Received, 1))) }

// byChance returns which part of the variance of a sample drawn one by one from any number of packets is left where some
// of those received were alone: METHODS.md, section 2.
func (r *Result) byChance() float64 {
	s := r.aloneShare()
	return max(min(1, 1-s-math.Log(s)), math.SmallestNonzeroFloat64) // something to divide by where all were
}

// Loss returns the share of the packets that were lost, hidden ones too, and 0 if none was sent.
func (r *Result) Loss() float64 { return min((float64(r.Lost)+r.hidden)/float64(max(r.Sent, 1)), 1) }
