package colate

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
)

// A Result is what two points say about the delays of one flow.
type Result struct {
	// Delay.Mean is the mean delay of the flow's packets. Delay.N is roughly
	// the number of packets behind it. Delay.StdDev is 0 if the counters'
	// spread does not exceed what other flows' packets, or a drift of the
	// clocks, explain.
	estimate.Delay

	// Packets is the number of packets of the flow: as recorded or, if that is
	// in doubt or unknown, with the help of the counters.
	Packets float64
	// Share is the fraction of them in epochs in which the flow has a usable
	// counter. In the others all flows lost much, and the delays of all tell
	// how long the flow's packets took. The interval widens by what that
	// leaves uncertain.
	Share float64

	// Sampled is the number of the flow's packets that were sampled at both
	// points, if Config.OneIn asked for that, and Lost the fraction of those
	// sampled at the first that the second has not seen.
	Sampled uint64
	Lost    float64

	samples      *flowSamples
	share        float64 // of the samples in Mean; the rest is countedMean's
	sampledError float64 // standard deviation
	skew         float64 // of the samples' mean
	countedMean  float64

	errors   [absentFlows]float64 // of the mean, from absent flows, in order
	own      float64              // standard deviation of the additional error
	few      float64              // by how much few cells widen the interval
	bias     float64              // possible additional error, from packets that cross a cut and packets not seen
	variance float64              // of delays, below 0 too
	apart    float64              // subtracted from it because the flow's mean is not that of others
	drift    float64              // possible part of it that is a drift of the clocks
	spreads  [absentFlows]float64 // errors of variance, from absent flows, in order
	degrees  float64              // of freedom of the variance besides
	hidden   float64              // possible further variance of packets not seen, and the fraction of these
	unseen   float64
}

// An Answer is what a query says about one of several flows: a Result, or why
// there is none.
type Answer struct {
	Result
	Err error // wraps [estimate.ErrNoSamples]
}

// accumulators are those of earlier calls of Estimate, for the next.
var accumulators sync.Pool

// Estimate returns the mean delay, and more, of a flow in an epoch at two
// points. The result is about all of the flow's packets; the record says how
// many passed both points. A record of 0 packets means that this is unknown;
// it is then read from the counters, if they show it. For epochs in stores,
// and many of them, see [Path.Estimate].
//
// It returns [estimate.ErrMismatch] if the Configs or times of the epochs
// differ, and [estimate.ErrNoSamples] if
//
//   - half of the flow's packets or more were in epochs in which each of its
//     counters lost a packet, or were on their way when the clock cut;
//   - some were, while other flows lost few: nothing tells how long they took;
//   - the counters contradict the record, or are too narrow for the flow's
//     delays or packets; or
//   - the record does not say how many packets the flow has, and the counters
//     cannot.
func Estimate(up, down *Recorder, flow joint.FlowRecord) (Result, error) {
	up, down = alike(up, down)
	a, _ := accumulators.Get().(*accumulator)
	flows := [1]joint.FlowRecord{flow}
	var err error
	if a == nil || a.config != up.config.comparable() {
		a, err = newAccumulator(up.config, slices.Clone(flows[:]))
	} else {
		err = a.aim(flows[:])
	}
	if err != nil {
		return Result{}, err
	}
	defer accumulators.Put(a)
	if err := a.add(up, down); err != nil {
		return Result{}, err
	}
	return a.estimate(0)
}

// alike returns two epochs with their counters folded alike.
func alike(up, down *Recorder) (*Recorder, *Recorder) {
	fold := max(up.config.fold, down.config.fold)
	return up.folded(fold), down.folded(fold)
}

// answers returns the answers about all flows.
func (a *accumulator) answers() []Answer {
	answers := make([]Answer, len(a.flows))
	for i := range answers {
		answers[i].Result, answers[i].Err = a.estimate(i)
	}
	return answers
}

// estimate returns what the epochs so far say about flow i.
func (a *accumulator) estimate(i int) (Result, error) {
	a.flush()
	none := func(why string, args ...any) (Result, error) {
		return Result{}, fmt.Errorf("colate: %w: %s", estimate.ErrNoSamples, fmt.Sprintf(why, args...))
	}
	own := &a.own[i]
	if why := a.nothing(own); why != "" {
		return none("%s", why)
	}
	e := estimator{own: own, absent: a.absent[i*absentFlows:][:absentFlows], spreads: &a.spreads, read: a.read(), drift: a.trend.variance()}
	e.noise()
	if own.dark > 0 {
		return none("in %d epochs from %d to %d ns each of the flow's counters lost some of its %.0f packets, unlike those of others: "+
			"nothing tells how long these took", own.darkEpochs, own.darkFrom, own.darkTo, own.dark)
	}
	if !e.countPackets(a.flows[i]) {
		return none("the counters do not tell the flow's packets from others'")
	}
	if low, high, ok := e.agrees(a.flows[i]); !ok {
		return none("the flow's record has %.0f packets, its counters have between %.0f and %.0f: the record is of other packets, or "+
			"some repeat and are in one counter", a.flows[i].Packets, low, high)
	}
	e.share = max(1-own.filled/e.packets, 0) * e.read
	e.stood = min(own.shown/own.told, 1)
	if e.share < 0.5 {
		return none("each of the flow's counters lost a packet in epochs with %.0f %% of its packets", 100*(1-e.share))
	}
	if e.stood < 0.5 {
		return none("of the flow's packets %.0f %% cross the cuts of the clock; a longer Period leaves fewer%s", 100*(1-e.stood), a.clocks())
	}
	return e.result(a.reference), nil
}

// nothing returns why a flow has no answer at all.
func (a *accumulator) nothing(own *tally) string {
	switch {
	case a.epochs == 0:
		return "no epoch of both points; if their clocks differ by a Period or more, say so in Path.Clock"
	case own.told == 0 && own.large > 0:
		return fmt.Sprintf("the delays in the flow's counters come to half of half their modulus, 2^%d ns, or its packets to half of "+
			"2^%d, or have wrapped; raise Bits, Shift or CountBits%s", a.config.sumBits()+a.config.Shift-1, a.config.CountBits, a.clocks())
	case own.told == 0:
		return fmt.Sprintf("none of the flow's %d counters holds the same packets at both points%s", a.config.PerFlow, a.clocks())
	}
	return ""
}

// clocks names the clocks, if the delays of all packets look like theirs.
func (a *accumulator) clocks() string {
	if period := a.table.ends[0] - a.table.starts[0]; a.reference < 0 || a.reference > float64(period)/20 {
		return fmt.Sprintf(" (all packets take %.3g s: if that is the points' clocks, say so in Path.Clock)", a.reference/1e9)
	}
	return ""
}

// An estimator turns the tallies of a flow and of its absent flows into a
// Result.
type estimator struct {
	own     *tally
	absent  []absentTally
	spreads *[absentFlows]spread
	read    float64 // fraction of the flow's packets in epochs that were read
	share   float64 // fraction of all in epochs for which its cells speak
	stood   float64 // fraction of these that do not cross a cut
	drift   float64 // variance of a drift of the clocks

	sum, count float64 // what absent flows have on average: noise that is always there
	spread     float64 // standard deviation of the number of packets
	variance   float64 // of delays, between cells: for the median flow

	packets float64 // the flow's packets that the tallies stand for
	counted float64 // 0 to 1: the weight of the counted number, as against the recorded one
	doubt   float64 // standard deviation of the recorded number
}

// noise learns from absent flows.
func (e *estimator) noise() {
	var counts, variances [absentFlows]float64
	for i := range e.absent {
		e.sum += e.absent[i].sum / absentFlows
		e.count += e.absent[i].counted / absentFlows
		counts[i] = e.absent[i].counted
		variances[i], _ = e.spreads[i].variance()
	}
	slices.Sort(counts[:])
	slices.Sort(variances[:])
	e.spread = deviationOf(&counts)
	e.variance = variances[absentFlows/2]
}

// deviationOf returns the deviation that a normal distribution of the same
// middle would have.
func deviationOf(sorted *[absentFlows]float64) float64 {
	return (sorted[absentFlows*84/100] - sorted[absentFlows*16/100]) / 2
}

// countPackets weighs the recorded number of the flow's packets against the
// counters, each by its precision.
func (e *estimator) countPackets(record joint.FlowRecord) bool {
	counted := e.own.counted - e.count
	if record.Packets == 0 {
		e.packets, e.counted = counted, 1
		return counted > 3*e.spread && counted >= 1
	}
	e.packets = record.Packets * e.read
	// How many packets were in the epochs that were not read is unknown.
	e.doubt = math.Hypot(record.Doubt*e.read, record.Packets*(1-e.read)/2)
	variance := e.spread*e.spread + 1
	if lost := min(e.packets-counted, e.own.passed-e.own.counted); lost > 2*math.Sqrt(variance) {
		e.doubt = math.Hypot(e.doubt, lost) // the record may be of what was sent
	}
	if e.doubt > 0 {
		e.counted = e.doubt * e.doubt / (e.doubt*e.doubt + variance)
		e.packets += e.counted * (counted - e.packets)
		return e.packets >= 1 && e.packets > 2*math.Sqrt(e.counted*variance)
	}
	return true
}

// chance returns how far counters are from the number of the flow's packets, as
// a standard deviation: the noise of others, and that not all are used.
func (e *estimator) chance() float64 {
	return math.Sqrt(e.spread*e.spread + max(e.own.counted, 0)*max(e.own.stands, 0.1) + 1)
}

// agrees reports whether the counters hold as many packets as the record says,
// sent or received, and between which numbers they do.
func (e *estimator) agrees(record joint.FlowRecord) (low, high float64, ok bool) {
	off := 6 * math.Hypot(e.chance(), record.Doubt)
	low, high = e.own.counted-e.count-off, max(e.own.passed, e.own.counted)-e.count+off
	missed := record.Packets * (1 - e.read)
	return max(low, 0), high, record.Packets == 0 || record.Packets >= low && record.Packets-missed <= high
}

func (e *estimator) result(reference float64) Result {
	own := e.own
	r := Result{Packets: e.packets / e.read, Share: e.share, unseen: min(own.filled/e.packets, 0.9)}
	sum := own.sum - e.sum
	// In epochs on which the flow's cells are silent it fared, compared with
	// all, as in the others.
	over := (sum - own.usual) / max(e.packets-own.filled+own.extra, 1)
	sum += own.filling + own.filled*over
	above := sum / (e.packets + own.extra)
	r.Mean = reference + above
	stands := 1 + own.sampled/e.packets // number of packets that each stands for
	r.N = uint64(max(e.packets*e.share/stands, 1) + 0.5)
	for i := range e.absent {
		t := &e.absent[i]
		r.errors[i] = (t.sum - e.sum - (t.counted-e.count)*e.counted*above) / e.packets / max(1-r.unseen, 0.1)
	}
	slices.Sort(r.errors[:])
	e.deviation(&r, above)
	// The packets in settled cells are a sample of the flow's; and a record
	// may be wrong.
	variance := max(r.variance, e.variance)
	if r.StdDev > 0 && r.degrees >= 10 {
		variance = min(variance, 2*r.variance)
	}
	sampled := (own.sampled*variance + own.chance*above*above) / (e.packets * e.packets)
	recorded := above * (1 - e.counted) * e.doubt / e.packets
	r.own = math.Sqrt(sampled + recorded*recorded)
	r.few = 1 + 4*(1-r.Share)/max(float64(own.cells), 1)
	apart := own.high - own.low
	longer := r.unseen * (math.Abs(over) + apart)
	r.hidden = r.unseen * 2 * math.Pow(math.Abs(over)+apart+math.Sqrt(variance), 2)
	// A packet crosses a cut with a probability proportional to its delay, so
	// the delays of those that do are larger by variance/mean. Take twice
	// that, because the variance is of packets that did not cross.
	deviation := math.Sqrt(variance)
	r.bias = 2*(1-e.stood)*deviation*max(deviation/math.Max(math.Abs(r.Mean), 1), 1) + longer + (1-e.read)*apart
	return r
}

// deviation subtracts from the variance between cells what others' packets
// add, and what different numbers of them add.
func (e *estimator) deviation(r *Result, above float64) {
	// A flow's packets are a part of those in its cells.
	own, part := e.own, min(e.packets*e.share/max(e.own.epochs, 1), 1)
	// The distance of the flow's mean from others' has an error too, which
	// makes its square too large.
	off := deviationOf(&r.errors)
	// Others' packets come in lumps, those of their flows.
	lumps := max(e.spread*e.spread/max(own.epochs-e.packets, 1), 1)
	r.apart = min(lumps*(1-part), 1) * max(above*above-off*off, 0)
	mixed, within := own.variance()
	r.variance = (mixed-(1-part)*e.variance)/part - r.apart
	for i := range e.spreads {
		v, _ := e.spreads[i].variance()
		r.spreads[i] = (1 - part) / part * (v - e.variance)
	}
	slices.Sort(r.spreads[:])
	// Half of them: if delays have heavy tails, the squares do not show it.
	if r.degrees = own.freedom() / 2; within > 0 {
		r.degrees *= mixed * mixed / (within * within)
	}
	if r.drift = e.drift; r.variance > 4*r.drift && r.degrees >= 1 {
		r.StdDev = math.Sqrt(r.variance)
	}
}

// MeanInterval returns an interval that contains the mean delay of the flow's
// packets with at least the given probability, 0 to 1. It assumes that the
// packets of other flows fall in the flow's counters as they fall in those of
// absent flows, which hashing ensures; it assumes nothing about their number
// or delays. It assumes that the flow's own packets choose their counters at
// random. And it assumes that in epochs on which its counters are silent (see
// Share), the flow fared, compared with all, as in the others, within as much
// as epochs differ.
//
// For a small flow among big ones the interval is many times wider than the
// mean. Beyond a confidence of 98 %, for which there are too few absent flows,
// it extrapolates their errors with a Pareto tail of index 2.
func (r *Result) MeanInterval(confidence float64) estimate.Interval {
	i := estimate.Interval{Low: math.Inf(-1), High: math.Inf(1), Confidence: confidence}
	if !(confidence >= 0 && confidence < 1) {
		return i
	}
	if r.Sampled > 0 {
		return r.combined(confidence)
	}
	return r.counted(r.Mean, confidence)
}

// combined returns the interval of a mean of which samples have a share.
func (r *Result) combined(confidence float64) estimate.Interval {
	counted, part := estimate.Interval{}, 1-r.share
	if part > 0 {
		counted = r.counted(r.countedMean, confidence)
	}
	// Where delays are skewed the largest are missing from small samples.
	sampled := r.share * r.sampledError * estimate.StudentQuantile((1+confidence)/2, r.degrees)
	low, high := sampled*(1+2*max(-r.skew, 0)), sampled*(1+2*max(r.skew, 0))
	return estimate.Interval{
		Low:        r.Mean - math.Hypot(part*(r.countedMean-counted.Low), low),
		High:       r.Mean + math.Hypot(part*(counted.High-r.countedMean), high),
		Confidence: confidence,
	}
}

// counted returns the interval of the counters' mean.
func (r *Result) counted(mean, confidence float64) estimate.Interval {
	i := estimate.Interval{Confidence: confidence}
	low, high := tails(&r.errors, confidence)
	half := -estimate.NormalQuantile((1-confidence)/2) * r.own
	i.Low, i.High = mean-r.few*(high+half)-r.bias, mean+r.few*(half-low)+r.bias
	return i
}

// tails returns the errors between which one more error of the same kind lies.
func tails(errors *[absentFlows]float64, confidence float64) (low, high float64) {
	// It is among the rank first or last with probability
	// 2·rank/(absentFlows+1), which is six tenths of the allowed probability.
	// The rest is room for the effects of the flow's own packets, which are
	// only modelled.
	rank := 0.6 * (1 - confidence) / 2 * (absentFlows + 1)
	beyond := 1.0
	if rank < 1 {
		beyond = math.Sqrt(1 / rank)
	}
	whole := max(int(rank), 1)
	return min(errors[whole-1], 0) * beyond, max(errors[absentFlows-whole], 0) * beyond
}

// DeviationInterval returns an interval that contains the standard deviation
// of the flow's delays with the given probability, as far as the squares of
// finitely many cells tell: the fewer cells hold most of the sum, the less
// reliable it is. If the deviation is unknown the interval begins at 0. It
// widens for packets in epochs on which the flow's counters are silent (see
// Share), and for a drift of the clocks where all delays look like one.
func (r *Result) DeviationInterval(confidence float64) estimate.Interval {
	i := estimate.Interval{High: math.Inf(1), Confidence: confidence}
	if !(confidence >= 0 && confidence < 1) || r.degrees < 1 {
		return i
	}
	low, high := tails(&r.spreads, confidence)
	factor := estimate.DeviationInterval(1, uint64(r.degrees), confidence)
	i.Low = math.Sqrt(max((r.variance-high)*(1-r.unseen)-r.drift, 0)) * factor.Low
	i.High = math.Sqrt(max(r.variance+r.apart-low, 0)*factor.High*factor.High + r.hidden)
	return i
}
