package colate

import (
	"fmt"
	"math"
	"slices"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
)

// A Result is what two points say about the delays of one flow.
type Result struct {
	// Delay.Mean is the mean delay of the flow's packets. Delay.N is roughly
	// the number of packets behind it. Delay.StdDev is 0 unless
	// DeviationKnown.
	estimate.Delay

	// DeviationKnown is false if the counters' spread does not exceed what
	// other flows' packets explain.
	DeviationKnown bool

	// Packets is the number of packets of the flow: as recorded or, if that is
	// in doubt or unknown, with the help of the counters.
	Packets float64
	// Share is the fraction of them in epochs in which the flow has a usable
	// counter. The delays of all packets in the other epochs tell how long the
	// rest took, and the interval widens by what that leaves uncertain.
	Share float64
	// Groups is the number of groups of packets behind the answer. Each is of
	// one counter and mostly of one epoch.
	Groups int

	errors   [absentFlows]float64 // of the mean, from absent flows, in order
	own      float64              // standard deviation of the additional error
	bias     float64              // possible additional error, from packets that cross a cut and packets not seen
	variance float64              // of delays, below 0 too
	apart    float64              // subtracted from it because the flow's mean is not that of others
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

// Estimate returns the mean delay, and more, of a flow in an epoch at two
// points. The result is about all of the flow's packets; the record says how
// many passed both points. For more than one pair of epochs see [Accumulator],
// and for epochs in stores [Path.Estimate].
//
// It returns [estimate.ErrMismatch] if the Configs or times of the epochs
// differ, and [estimate.ErrNoSamples] as [Accumulator.Estimate] does.
func Estimate(up, down *Recorder, flow joint.FlowRecord) (Result, error) {
	answers, err := EstimateAll(up, down, []joint.FlowRecord{flow})
	if err != nil {
		return Result{}, err
	}
	return answers[0].Result, answers[0].Err
}

// EstimateAll is Estimate for many flows. Answers are in the order of the
// flows.
func EstimateAll(up, down *Recorder, flows []joint.FlowRecord) ([]Answer, error) {
	a, err := newAccumulator(up.config, flows, 1)
	if err != nil {
		return nil, err
	}
	if err := a.Add(up, down); err != nil {
		return nil, err
	}
	return a.answers(), nil
}

// answers returns the answers about all flows.
func (a *Accumulator) answers() []Answer {
	answers := make([]Answer, len(a.flows))
	for i := range answers {
		answers[i].Result, answers[i].Err = a.Estimate(i)
	}
	return answers
}

// Estimate returns what the epochs so far say about flow i. It returns
// [estimate.ErrNoSamples] if
//
//   - half of the flow's packets or more were in epochs in which each of its
//     counters lost a packet, or were on their way when the clock cut;
//   - a twentieth were, and nothing tells how long packets took then, because
//     the flow lost far more than others;
//   - the counters are too narrow for its delays or packets; or
//   - the record does not say how many packets the flow has, and the counters
//     cannot.
func (a *Accumulator) Estimate(i int) (Result, error) {
	if i < 0 || i >= len(a.flows) {
		return Result{}, estimate.Invalid("colate", "flow", i, fmt.Sprintf("0 to %d", len(a.flows)-1))
	}
	a.flush()
	none := func(why string, args ...any) (Result, error) {
		return Result{}, fmt.Errorf("colate: %w: %s", estimate.ErrNoSamples, fmt.Sprintf(why, args...))
	}
	own, record := &a.own[i], a.flows[i]
	switch {
	case a.epochs == 0:
		return none("no epoch of both points")
	case own.packets == 0 || own.count == 0:
		return none("none of the flow's %d counters holds the same packets at both points", a.config.PerFlow)
	case 2*own.large > own.groups:
		return none("the delays in the flow's counters come to a quarter of half their modulus, 2^%d ns, or have wrapped; raise Bits or Shift",
			int(a.config.sumBits()+a.config.Shift)-1)
	case record.Packets/float64(a.epochs*a.config.PerFlow) > math.Ldexp(1, int(a.config.CountBits)-1):
		return none("the flow's %g packets are too many to be counted by %d bits", record.Packets, a.config.CountBits)
	}
	absent := a.absent[i*absentFlows:][:absentFlows]
	noise, usable := newNoise(absent)
	if usable < absentFlows-absentFlows/100 {
		return none("too few counters hold the same packets at both points to tell what noise is")
	}
	e := estimator{own: own, noise: noise, absent: absent}
	e.read = a.read()
	e.share = own.told / (own.told + own.shade.untold) * e.read
	// A cell in which packets cross a cut has a group less often, so groups
	// have fewer packets than there are.
	e.stood = min(own.reached/own.told, 1)
	if e.share < 0.5 {
		return none("each of the flow's counters lost a packet in epochs with %.0f %% of its packets", 100*(1-e.share))
	}
	if e.stood < 0.5 {
		return none("of the flow's packets %.0f %% cross the cuts of the clock; a longer Period leaves fewer", 100*(1-e.stood))
	}
	if !e.countPackets(record) {
		return none("the counters do not tell the flow's packets from others'")
	}
	if found, missing := e.missing(); missing {
		const why = "the flow's counters hold some %.0f packets of its %.0f: the others repeat, so that they are in one counter, or are not there"
		return none(why, found, e.packets)
	}
	u := e.unseen()
	if u.dark > darkest {
		return none("with %.0f %% of the flow's packets each of its counters lost some, and nothing tells how long these took", 100*u.dark)
	}
	return e.result(&u, a.reference), nil
}

// noise is what absent flows say about the packets of others.
type noise struct {
	common   float64 // mean delay above the reference
	count    float64 // packets in a flow's cells
	spread   float64 // standard deviation of that
	variance float64 // of delays, between groups: for the median flow
}

// newNoise also returns how many of the absent flows have a usable counter.
func newNoise(absent []tally) (n noise, usable int) {
	sum := 0.0
	for i := range absent {
		if absent[i].seen {
			usable++
		}
		sum += absent[i].sum
	}
	count := typical(absent, func(t *tally) float64 { return t.count })
	n.count, n.spread = count.mean, count.deviation
	if n.count > 0 {
		n.common = sum / (n.count * absentFlows)
	}
	n.variance = typical(absent, func(t *tally) float64 { v, _ := t.variance(); return v }).median
	return n, usable
}

// moments describes a number's distribution among absent flows. The deviation
// is the one that a normal distribution would have, whatever the tails.
type moments struct{ mean, median, deviation float64 }

func typical(absent []tally, number func(*tally) float64) (m moments) {
	var all [absentFlows]float64
	for i := range absent {
		all[i] = number(&absent[i])
		m.mean += all[i] / absentFlows
	}
	slices.Sort(all[:])
	m.median, m.deviation = all[absentFlows/2], (all[absentFlows*84/100]-all[absentFlows*16/100])/2
	return m
}

// An estimator turns the tallies of a flow and of its absent flows into a
// Result.
type estimator struct {
	own    *ownTally
	absent []tally
	noise  noise
	read   float64 // fraction of the flow's packets in epochs that were read
	share  float64 // fraction of these in epochs for which its cells speak
	stood  float64 // fraction of these that do not cross a cut

	packets float64 // the flow's packets that the tallies stand for
	counted float64 // 0 to 1: the weight of the counted number, as against the recorded one
	doubt   float64 // standard deviation of the recorded number
}

// countPackets weighs the recorded number of the flow's packets against the
// counters, each by its precision.
func (e *estimator) countPackets(record joint.FlowRecord) bool {
	counted := e.own.count - e.noise.count
	if record.Packets == 0 {
		e.packets, e.counted = counted, 1
		return counted > 3*e.noise.spread && counted >= 1
	}
	e.packets = record.Packets * e.read
	// How many packets were in the epochs that were not read is unknown.
	e.doubt = math.Hypot(record.Doubt*e.read, record.Packets*(1-e.read)/2)
	if e.doubt > 0 {
		variance := e.noise.spread*e.noise.spread + 1
		e.counted = e.doubt * e.doubt / (e.doubt*e.doubt + variance)
		e.packets += e.counted * (counted - e.packets)
		return e.packets >= 1 && e.packets > 2*math.Sqrt(e.counted*variance)
	}
	return true
}

// missing reports whether the flow's counters hold much less of it than its
// record says, and how much they hold. Copies of one packet are all in one
// counter, which is left out as too full, and the rest does not speak for
// them.
func (e *estimator) missing() (found float64, missing bool) {
	found = e.own.count - e.noise.count
	stands := e.own.stands / e.own.count
	chance := math.Sqrt(e.noise.spread*e.noise.spread + e.packets*max(stands-1, 0) + e.doubt*e.doubt + 1)
	return max(found, 0), e.packets-found > e.packets/4+6*chance
}

func (e *estimator) result(u *unseen, reference float64) Result {
	own, noise := e.own, &e.noise
	// If all packets were delayed alike, the noise would be that of counts,
	// which are known. Only what sets flows apart is left.
	above := (own.sum - own.count*noise.common) / e.packets
	r := Result{
		Packets: e.packets / e.read,
		Share:   e.share,
		Groups:  int(own.groups),
	}
	r.Mean = reference + noise.common + above + u.shift
	stands := own.stands / own.count // number of packets that one in a group stands for
	r.N = uint64(max(e.packets/stands, 1) + 0.5)
	for i := range e.absent {
		t := &e.absent[i]
		r.errors[i] = (t.sum - t.count*noise.common - (t.count-noise.count)*e.counted*above + u.factor*t.over) / e.packets
	}
	slices.Sort(r.errors[:])
	e.deviation(&r, above)
	// The packets in groups are a sample of the flow's; and a record may be
	// wrong.
	sampled := (stands - 1) / e.packets * (max(r.variance, noise.variance) + above*above)
	recorded := above * (1 - e.counted) * e.doubt / e.packets
	r.own = math.Sqrt(max(sampled, own.thinError()/(e.packets*e.packets)) + recorded*recorded)
	// A packet crosses a cut with a probability proportional to its delay, so
	// the delays of those that do are larger by variance/mean. Take twice
	// that, because the variance is of packets that did not cross.
	deviation := math.Sqrt(max(r.variance, noise.variance))
	r.unseen, r.hidden = u.part, u.part*2*math.Pow(math.Abs(u.longer)+deviation, 2)
	r.bias = 2*(1-e.stood)*deviation*max(deviation/math.Max(math.Abs(r.Mean), 1), 1) + u.doubt
	return r
}

// An unseen is the effect on a flow's mean of epochs on which its cells are
// silent.
type unseen struct {
	part   float64 // fraction of the flow's packets in them
	dark   float64 // fraction of these on which everything else is silent too
	longer float64 // how much longer all packets took in them
	factor float64 // how much the flow's packets not seen take longer, relative to all packets
	shift  float64 // added to the mean
	doubt  float64 // standard error of that
}

const (
	// steepest limits how many times as much as all packets' delays a flow's
	// may grow from the epochs that are seen to the others.
	steepest = 3
	// darkest is the largest fraction of a flow's packets in epochs on which
	// everything is silent.
	darkest = 0.05
)

// unseen assumes that in those epochs the flow's packets fared as in the
// others, relative to all packets of the same epoch, on which some cells
// always speak: if these took longer, so did the flow. The proportion is as
// certain as the seen epochs make it. But a flow that lost far more than
// others is not like them.
func (e *estimator) unseen() unseen {
	own := e.own
	spread := own.apart()
	u := unseen{doubt: (1 - e.read) * 3 * spread}
	if own.shade.untold == 0 {
		return u
	}
	mean := own.shade.first / own.told
	untold := typical(e.absent, func(t *tally) float64 { return t.untold })
	u.part = min(max((own.tally.untold-untold.mean+untold.deviation)/e.packets, 0), 0.9)
	u.dark = u.part * own.dark / own.shade.untold
	if own.lost > 3*own.expected+0.02*own.shade.untold+10 {
		u.dark = u.part
	}
	u.factor = u.part / (1 - u.part)
	low, high := 0.0, float64(steepest)
	if all := e.packets * (1 - u.part) * spread * spread; all > 0 {
		slope := 1 + (own.slope-own.over*mean)/all
		margin := 2.6 * typical(e.absent, func(t *tally) float64 { return t.slope - t.over*mean }).deviation / all
		low, high = max(min(1, slope-margin), 0), min(max(1, slope+margin), steepest)
	}
	longer := own.untoldFirst/own.shade.untold - mean
	u.longer = steepest * longer
	u.shift = u.factor*own.over/e.packets + u.part*longer*((low+high)/2-1)
	u.doubt += u.part*math.Abs(longer)*((high-low)/2+0.25) + u.dark*2*max(own.high-mean, mean-own.low)
	return u
}

// deviation subtracts from the variance between groups what others' packets
// add, and what different numbers of them add.
func (e *estimator) deviation(r *Result, above float64) {
	own, noise := e.own, &e.noise
	part := min(float64(r.N)/own.packets, 1)
	// The distance of the flow's mean from others' has an error too, which
	// makes its square too large.
	off := (r.errors[absentFlows*84/100] - r.errors[absentFlows*16/100]) / 2
	r.apart = (1 - part) * max(above*above-off*off, 0)
	mixed, within := own.variance()
	r.variance = (mixed-(1-part)*noise.variance)/part - r.apart
	for i := range e.absent {
		v, _ := e.absent[i].variance()
		r.spreads[i] = (1 - part) / part * (v - noise.variance)
	}
	slices.Sort(r.spreads[:])
	// Half of them: if delays have heavy tails, the squares do not show it.
	if r.degrees = own.freedom() / 2; within > 0 {
		r.degrees *= mixed * mixed / (within * within)
	}
	if r.DeviationKnown = r.variance > 0 && r.degrees >= 1; r.DeviationKnown {
		r.StdDev = math.Sqrt(r.variance)
	}
}

// MeanInterval returns an interval that contains the mean delay of the flow's
// packets with at least the given probability, 0 to 1. It assumes that the
// packets of other flows fall in the flow's counters as they fall in those of
// absent flows, which hashing ensures; it assumes nothing about their number
// or delays. It assumes that the flow's own packets choose their counters at
// random. And it assumes that in epochs on which its counters are silent (see
// Share), the flow took at most three times as much longer as all packets did.
//
// For a small flow among big ones the interval is many times wider than the
// mean. Beyond a confidence of 98 %, for which there are too few absent flows,
// it extrapolates their errors with a Pareto tail of index 2.
func (r *Result) MeanInterval(confidence float64) estimate.Interval {
	i := estimate.Interval{Low: math.Inf(-1), High: math.Inf(1), Confidence: confidence}
	if !(confidence >= 0 && confidence < 1) {
		return i
	}
	low, high := tails(&r.errors, confidence)
	half := -estimate.NormalQuantile((1-confidence)/2) * r.own
	// With few groups, the number of packets that each stands for is
	// uncertain.
	few := 1 + 4*(1-r.Share)/max(float64(r.Groups), 1)
	i.Low, i.High = r.Mean-few*(high+half)-r.bias, r.Mean+few*(half-low)+r.bias
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
// finitely many groups tell: the fewer groups hold most of the sum, the less
// reliable it is. If the deviation is unknown the interval begins at 0. It
// widens for packets in epochs on which the flow's counters are silent (see
// Share).
func (r *Result) DeviationInterval(confidence float64) estimate.Interval {
	i := estimate.Interval{High: math.Inf(1), Confidence: confidence}
	if !(confidence >= 0 && confidence < 1) || r.degrees < 1 {
		return i
	}
	low, high := tails(&r.spreads, confidence)
	factor := estimate.DeviationInterval(1, uint64(r.degrees), confidence)
	i.Low = math.Sqrt(max(r.variance-high, 0)*(1-r.unseen)) * factor.Low
	i.High = math.Sqrt(max(r.variance+r.apart-low, 0)*factor.High*factor.High + r.hidden)
	return i
}
