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
	// Delay's Mean is that of the flow's packets. N is about how many of them
	// it rests on. StdDev is 0 unless DeviationKnown.
	estimate.Delay

	// DeviationKnown is false if the counters' spread does not exceed what
	// other flows' packets explain.
	DeviationKnown bool

	// Packets is how many the flow had, as recorded or, where that is in
	// doubt or unknown, as the counters show too.
	Packets float64
	// Share is the part of them in epochs of which the flow has a usable
	// counter. How long the others took is told by how long all packets took
	// in their epochs, and the interval is wider by what that leaves open.
	Share float64
	// Groups is how many groups of packets, each of one counter and mostly of
	// one epoch, the answer rests on.
	Groups int

	errors   [absentFlows]float64 // of the mean, as of absent flows, in order
	own      float64              // standard deviation of the error that comes on top
	bias     float64              // and what may, of packets that cross a cut, and of those not seen
	variance float64              // of delays, below 0 too
	apart    float64              // what was taken off it as the flow's mean is not that of others
	spreads  [absentFlows]float64 // errors of variance, as of absent flows, in order
	degrees  float64              // of freedom that the variance has beside
	hidden   float64              // what it may be more, of packets not seen, and the part that these are
	unseen   float64
}

// An Answer is what a query says about one of several flows: a Result, or why
// there is none.
type Answer struct {
	Result
	Err error // wraps [estimate.ErrNoSamples]
}

// Estimate returns the mean delay, and more, of a flow in an epoch at two
// points: of all its packets, of which the record says how many passed both.
// For more than one pair of epochs see [Accumulator], and for those of stores
// [Path.Estimate].
//
// It returns [estimate.ErrMismatch] for epochs of different Configs or times,
// and [estimate.ErrNoSamples] as [Accumulator.Estimate] does.
func Estimate(up, down *Recorder, flow joint.FlowRecord) (Result, error) {
	answers, err := EstimateAll(up, down, []joint.FlowRecord{flow})
	if err != nil {
		return Result{}, err
	}
	return answers[0].Result, answers[0].Err
}

// EstimateAll is Estimate for many flows, with answers in their order.
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

// answers are those about all flows.
func (a *Accumulator) answers() []Answer {
	answers := make([]Answer, len(a.flows))
	for i := range answers {
		answers[i].Result, answers[i].Err = a.Estimate(i)
	}
	return answers
}

// Estimate returns what the epochs so far say about flow i. It returns
// [estimate.ErrNoSamples] where half of the flow's packets or more were in
// epochs in which each of its counters lost a packet, or on their way where the
// clock cut; where a twentieth were, and nothing tells how long packets took
// then, as the flow lost far more than others; where counters are too narrow for
// its delays or packets; and where the record does not say how many packets it
// has and the counters cannot.
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
	// A cell in which packets cross a cut has a group less often: groups have
	// fewer packets than there are.
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
	variance float64 // of delays, between groups: that of the median flow
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

// moments are what a number comes to among absent flows. The deviation is what it
// is of a normal one, whatever the tails.
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
	read   float64 // part of the flow's packets in epochs that were read
	share  float64 // part of them in epochs that its cells tell of
	stood  float64 // part of these that do not cross a cut

	packets float64 // of the flow, that the tallies stand for
	counted float64 // 0 to 1: the part of that which is as counted, not as recorded
	doubt   float64 // standard deviation of what is as recorded
}

// countPackets weighs the record of how many packets the flow had against the
// counters, each by how well it is known.
func (e *estimator) countPackets(record joint.FlowRecord) bool {
	counted := e.own.count - e.noise.count
	if record.Packets == 0 {
		e.packets, e.counted = counted, 1
		return counted > 3*e.noise.spread && counted >= 1
	}
	e.packets = record.Packets * e.read
	// How many were in the epochs that were not read is not known.
	e.doubt = math.Hypot(record.Doubt*e.read, record.Packets*(1-e.read)/2)
	if e.doubt > 0 {
		variance := e.noise.spread*e.noise.spread + 1
		e.counted = e.doubt * e.doubt / (e.doubt*e.doubt + variance)
		e.packets += e.counted * (counted - e.packets)
		return e.packets >= 1 && e.packets > 2*math.Sqrt(e.counted*variance)
	}
	return true
}

// missing reports whether much less of the flow is in its counters than its
// record has, and how much is: copies of one packet are in one counter, which is
// left out as too full, and the rest does not speak for them.
func (e *estimator) missing() (found float64, missing bool) {
	found = e.own.count - e.noise.count
	stands := e.own.stands / e.own.count
	chance := math.Sqrt(e.noise.spread*e.noise.spread + e.packets*max(stands-1, 0) + e.doubt*e.doubt + 1)
	return max(found, 0), e.packets-found > e.packets/4+6*chance
}

func (e *estimator) result(u *unseen, reference float64) Result {
	own, noise := e.own, &e.noise
	// Were all packets delayed alike, the noise would be that of counts, which
	// are known: only what sets flows apart is left.
	above := (own.sum - own.count*noise.common) / e.packets
	r := Result{
		Packets: e.packets / e.read,
		Share:   e.share,
		Groups:  int(own.groups),
	}
	r.Mean = reference + noise.common + above + u.shift
	stands := own.stands / own.count // for how many packets one in a group stands
	r.N = uint64(max(e.packets/stands, 1) + 0.5)
	for i := range e.absent {
		t := &e.absent[i]
		r.errors[i] = (t.sum - t.count*noise.common - (t.count-noise.count)*e.counted*above + u.factor*t.over) / e.packets
	}
	slices.Sort(r.errors[:])
	e.deviation(&r, above)
	// The packets in groups are a sample of the flow's; and a record may be wrong.
	sampled := (stands - 1) / e.packets * (max(r.variance, noise.variance) + above*above)
	recorded := above * (1 - e.counted) * e.doubt / e.packets
	r.own = math.Sqrt(max(sampled, own.thinError()/(e.packets*e.packets)) + recorded*recorded)
	// A packet crosses a cut with a probability in proportion to its delay, so
	// that the delays of those that do are larger by variance/mean: twice that, as
	// the variance is of those that did not.
	deviation := math.Sqrt(max(r.variance, noise.variance))
	r.unseen, r.hidden = u.part, u.part*2*math.Pow(math.Abs(u.longer)+deviation, 2)
	r.bias = 2*(1-e.stood)*deviation*max(deviation/math.Max(math.Abs(r.Mean), 1), 1) + u.doubt
	return r
}

// An unseen is what the epochs that a flow's cells do not tell of do to its mean.
type unseen struct {
	part   float64 // of the flow's packets, that is in them
	dark   float64 // of these, the part of which nothing else tells either
	longer float64 // by how much all packets took longer in them
	factor float64 // of what the flow's packets take longer than all: for those that are not seen
	shift  float64 // of the mean
	doubt  float64 // by how much that may be wrong
}

const (
	// steepest is how many times as much as all packets' delays a flow's are
	// taken to grow at most, from the epochs that are seen to the others.
	steepest = 3
	// darkest is up to which part of a flow's packets may be in epochs that nothing
	// tells of.
	darkest = 0.05
)

// unseen takes the flow's packets in those epochs to have fared as in the others,
// compared with all packets of the same epoch, of which some cells always tell:
// where these took longer, it did. In which proportion is as sure as the epochs
// that are seen make it. But a flow that lost far more than others is not like
// them.
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

// deviation takes off the variance between groups what others' packets add,
// and that groups hold more or less of them.
func (e *estimator) deviation(r *Result, above float64) {
	own, noise := e.own, &e.noise
	part := min(float64(r.N)/own.packets, 1)
	// How far the flow's mean is from others' is itself off, and its square too large.
	off := (r.errors[absentFlows*84/100] - r.errors[absentFlows*16/100]) / 2
	r.apart = (1 - part) * max(above*above-off*off, 0)
	mixed, within := own.variance()
	r.variance = (mixed-(1-part)*noise.variance)/part - r.apart
	for i := range e.absent {
		v, _ := e.absent[i].variance()
		r.spreads[i] = (1 - part) / part * (v - noise.variance)
	}
	slices.Sort(r.spreads[:])
	// Half of them: where delays have heavy tails, the squares do not show it.
	if r.degrees = own.freedom() / 2; within > 0 {
		r.degrees *= mixed * mixed / (within * within)
	}
	if r.DeviationKnown = r.variance > 0 && r.degrees >= 1; r.DeviationKnown {
		r.StdDev = math.Sqrt(r.variance)
	}
}

// MeanInterval holds the mean delay of the flow's packets with the
// given probability, 0 to 1, or more. It supposes that the packets of other
// flows fall in the flow's counters as they do in those of absent flows, which
// hashing sees to, and nothing of their number or delays; of the flow itself,
// that its packets choose their counters at random, and that it took no more
// than three times as much longer as all packets did in epochs that its counters
// do not tell of (see Share). For a small flow among big
// ones it is many times wider than its mean. Beyond a confidence of 98 %, for
// which absent flows are too few, their errors are taken to go on as those of a
// Pareto tail of index 2 do.
func (r *Result) MeanInterval(confidence float64) estimate.Interval {
	i := estimate.Interval{Low: math.Inf(-1), High: math.Inf(1), Confidence: confidence}
	if !(confidence >= 0 && confidence < 1) {
		return i
	}
	low, high := tails(&r.errors, confidence)
	half := -estimate.NormalQuantile((1-confidence)/2) * r.own
	// Of few groups, it is little known for how much each stands.
	few := 1 + 4*(1-r.Share)/max(float64(r.Groups), 1)
	i.Low, i.High = r.Mean-few*(high+half)-r.bias, r.Mean+few*(half-low)+r.bias
	return i
}

// tails are the errors between which one more of the same kind is.
func tails(errors *[absentFlows]float64, confidence float64) (low, high float64) {
	// It is among the rank first or last with probability 2·rank/(absentFlows+1),
	// which is six tenths of what may be: the rest is room for what the
	// flow's own packets do, which is only modelled.
	rank := 0.6 * (1 - confidence) / 2 * (absentFlows + 1)
	beyond := 1.0
	if rank < 1 {
		beyond = math.Sqrt(1 / rank)
	}
	whole := max(int(rank), 1)
	return min(errors[whole-1], 0) * beyond, max(errors[absentFlows-whole], 0) * beyond
}

// DeviationInterval holds the standard deviation of the flow's delays with the
// given probability, as far as the squares of finitely many groups tell: the
// fewer of them hold most of the sum, the less it can be relied on. Where the
// deviation is not known it begins at 0; for packets in epochs that the flow's
// counters do not tell of (see Share) it is wider.
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
