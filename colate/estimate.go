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
	// Delay.Mean is the mean delay of the flow's packets. Delay.N is roughly the number of packets behind it.
	// Delay.StdDev is 0 if too few packets were sampled, or if an unknown drift of the clocks would explain it.
	estimate.Delay

	// Packets is the number of the flow's packets: as recorded or, if that is in doubt, with the help of the counters.
	Packets float64
	// Sampled is the number of the flow's packets that were sampled at both points, if Config.OneIn asked for
	// that. Lost is the fraction of those sampled at the first point that the second did not see within eight
	// Periods, or StoreOptions.Delay if that is longer; at the end of what is stored, within one.
	Sampled uint64
	Lost    float64

	// Err says, in what EstimateAll returns, why there is no answer. It wraps [estimate.ErrNoSamples].
	Err error

	samples sampled
	share   float64 // of the samples in Mean; the rest is the counters'

	errors  [absentFlows]float64 // of the counters' mean, from absent flows, in order
	own     float64              // standard deviation of the additional error
	freedom float64              // and its degrees of freedom
	bias    float64              // possible additional error, from epochs that were not read
	hidden  float64              // by how much it may be too low, because losses hide slow packets
}

// accumulators are those of earlier calls of Estimate, for the next.
var accumulators sync.Pool

// Estimate returns the mean delay, and more, of a flow's packets in an epoch at two points. The record says how many passed both. A record
// of 0 packets means that this is unknown; it is then estimated from the counters if they show it. For stored epochs see [Path.Estimate].
//
// It returns [estimate.ErrMismatch] if the Configs or times of the epochs differ, and [estimate.ErrNoSamples]
// if samples and counters contradict each other, or fewer than ten of the flow's packets were sampled and
//
//   - some of the flow's packets were in epochs in which each of its counters lost a packet, so that nothing
//     tells how long they took;
//   - the counters contradict the record, or are too narrow for the flow's delays or packets; or
//   - the record does not say how many packets the flow has, and the counters cannot.
func Estimate(up, down *Recorder, flow joint.FlowRecord) (Result, error) {
	up, down, s, err := pair(up, down)
	if err != nil {
		return Result{}, err
	}
	a, _ := accumulators.Get().(*accumulator)
	if a == nil || a.config != up.config.comparable() {
		a = newAccumulator(up.config, 1)
	}
	if err := a.aim([]joint.FlowRecord{flow}); err != nil {
		return Result{}, err
	}
	defer accumulators.Put(a)
	a.add(up, down, s)
	r := a.answer(0, false)
	r.samples.matched = nil // the accumulator's
	return r, r.Err
}

// answer returns what the epochs so far say about flow i, whose samples may be corrected by clocks.
func (a *accumulator) answer(i int, clocks bool) (r Result) {
	a.flush()
	if why := a.estimate(i, &r); why != nil {
		r = Result{Err: why}
	}
	own := &a.tallies[i]
	if f, ok := a.samples.of(a.flows[i], clocks, &a.common, own, own.late.farther(&a.common.late)); ok {
		r.combine(f)
	}
	if r.Mean < 0 && a.common.reference > 0 && 2*r.Mean > r.MeanInterval(sure).Low {
		r.Mean = 0 // noise: the second clock is not behind
	}
	return r
}

// An estimator turns the tallies of a flow and of its absent flows into a Result.
type estimator struct {
	own    *tally
	absent []tally
	read   float64 // fraction of the flow's packets in epochs that were read

	sum, count float64 // what absent flows have on average: noise that is always there
	ends       [2]float64
	spread     float64 // standard deviation of the number of packets
	least      float64 // number of packets of an absent flow, and largest, except for two of each
	most       float64
	alike      float64 // packets that the emptiest counters of all but two absent flows show
	alone      float64 // the flow's packets, if the emptiest of its counters is its alone
	excess     float64 // packets in its counters that neither its record nor chance explains

	packets float64 // the flow's packets that the tallies stand for
	counted float64 // 0 to 1: the weight of the counted number, as against the recorded one
	doubt   float64 // standard deviation of the recorded number
}

// estimate fills in what the counters say about flow i, or returns why they say nothing.
func (a *accumulator) estimate(i int, r *Result) error {
	none := func(why string, args ...any) error {
		return fmt.Errorf("colate: %w: %s", estimate.ErrNoSamples, fmt.Sprintf(why, args...))
	}
	own, m := &a.tallies[i], a.config.PerFlow
	e := estimator{own: own, absent: a.tallies[len(a.flows):], alone: float64(m) * slices.Min(a.filled[i*m:][:m])}
	e.read = a.read() * (1 - own.unread/max(own.passed, own.unread, 1))
	switch {
	case a.epochs == 0:
		return none("no epoch of both points; if their clocks differ by a Period or more, say so in Path.Clock")
	case a.config.forSamples():
		return none("%d counters are for samples alone", a.config.Counters)
	case own.large:
		return none("the delays in the flow's counters come to a quarter of their modulus, 2^%d ns, or its packets to half of "+
			"2^%d, or have wrapped; raise Bits, Shift or CountBits%s", a.config.sumBits()+a.config.Shift, a.config.CountBits, a.clocks())
	case own.shown == 0:
		return none("none of the flow's %d counters holds the same packets at both points%s", a.config.PerFlow, a.clocks())
	case own.dark > 0:
		return none("in epochs from %d to %d ns each of the flow's counters lost some of its %.0f packets: nothing tells "+
			"how long these took", own.darkSpan.start, own.darkSpan.end, own.dark)
	case !a.common.settles():
		return none("too many packets are on their way in each counter: more Counters or a longer Period settle them%s", a.clocks())
	}
	e.learn()
	all := &a.common.late
	r.hidden = max(all.missed(all), own.late.missed(all))
	// Without a record a flow looks like one that has the same counters, as each large one may.
	alike := math.Pow(float64(m)/float64(a.config.counters()), float64(m)-1)
	if !e.countPackets(a.flows[i]) || a.flows[i].Packets == 0 && alike > 1-sure {
		return none("the counters do not tell the flow's packets from others'")
	}
	if low, high, ok := e.agrees(a.flows[i]); !ok {
		return none("the flow's record has %.0f packets, its counters look like %.0f to %.0f: the record is of other packets, some "+
			"repeat and are in one counter, or larger flows share its counters", a.flows[i].Packets, low, high)
	}
	if e.read < 0.5 {
		return none("%.0f %% of the packets are in epochs that could not be read", 100*(1-e.read))
	}
	e.fill(r, &a.common, a.config.unit())
	if i := r.MeanInterval(0.95); i.High-i.Low > 2*a.common.lasted { // which tells nothing
		return none("the mean is in an interval of %.3g ns, of epochs of %.3g: too many packets are in each counter, or take too long%s",
			i.High-i.Low, a.common.lasted, a.clocks())
	}
	return nil
}

// clocks names the clocks, if the delays of all packets look like theirs.
func (a *accumulator) clocks() string {
	period := float64(a.table.spans[0].end - a.table.spans[0].start)
	if a.table.apart {
		return " (the points' epochs begin at different times, as their clocks differ by a part of a Period)"
	}
	if a.common.reference < 0 || a.common.reference > period/20 {
		return fmt.Sprintf(" (all packets take %.3g s: if that is the points' clocks, say so in Path.Clock)", a.common.reference/1e9)
	}
	return ""
}

func (e *estimator) learn() {
	var counts, leasts [absentFlows]float64
	for i := range e.absent {
		t := &e.absent[i]
		e.sum += t.sum / absentFlows
		e.count += t.counted / absentFlows
		for end, n := range t.ends {
			e.ends[end] += n / absentFlows
		}
		counts[i] = t.counted
		leasts[i] = t.least
	}
	slices.Sort(counts[:])
	slices.Sort(leasts[:])
	e.alike = leasts[absentFlows-3]
	// The deviation that a normal distribution of the same middle would have.
	e.spread = (counts[absentFlows*84/100] - counts[absentFlows*16/100]) / 2
	e.least, e.most = min(counts[2], e.count), max(counts[absentFlows-3], e.count)
}

// countPackets weighs the recorded number of the flow's packets against the counters, each by its precision.
func (e *estimator) countPackets(record joint.FlowRecord) bool {
	counted := e.own.counted - e.count
	if record.Packets == 0 {
		e.packets, e.counted = counted, 1
		// Or chance alone may tell which flows have an answer, or others that share most of its counters.
		return counted > 3*e.spread && counted >= 1 && e.own.least > 3*e.alike
	}
	e.packets = record.Packets * e.read
	// How many packets were in the epochs that were not read is unknown.
	e.doubt = math.Hypot(record.Doubt*e.read, record.Packets*(1-e.read)/2)
	variance := e.spread*e.spread + e.own.sampled + 1
	apart := e.packets - counted
	e.excess = math.Sqrt(max(apart*apart-4*(variance+e.doubt*e.doubt), 0)) // beyond two standard deviations
	if apart > e.count-e.least+2 || -apart > e.most-e.count+2 {
		e.doubt = math.Hypot(e.doubt, apart) // no absent flow is as far: the record may be of what was sent, or wrong
	}
	if e.doubt > 0 {
		e.counted = e.doubt * e.doubt / (e.doubt*e.doubt + variance)
		e.packets += e.counted * (counted - e.packets)
		return e.packets >= 1 && e.packets > 2*math.Sqrt(e.counted*variance)
	}
	return true
}

// agrees reports whether the counters hold as many packets as the record says, sent or received, and between
// which numbers they do. A flow whose counters are all shared but the emptiest has no more than that one says.
func (e *estimator) agrees(record joint.FlowRecord) (low, high float64, ok bool) {
	off := 5 * math.Sqrt(max(e.own.counted/10, e.own.sampled, 0)+1+record.Doubt*record.Doubt)
	low = min(e.own.counted-e.count-1.5*(e.most-e.count), e.alone) - off
	high = max(e.own.passed, e.own.counted) - e.count + off + 1.5*(e.count-e.least)
	missed := record.Packets * (1 - e.read)
	return max(low, 0), high, record.Packets == 0 || record.Packets >= low && record.Packets-missed <= high
}

// fill fills in the result from tallies that tell of the flow.
func (e *estimator) fill(r *Result, all *common, unit float64) {
	own := e.own
	above := (own.sum - e.sum) / e.packets
	r.Packets = e.packets / e.read
	r.Mean, r.N = all.reference+above, uint64(max(e.packets*e.read/(1+own.sampled/e.packets), 1)+0.5)
	for i := range e.absent {
		t := &e.absent[i]
		more := (t.counted - e.count) * e.counted // if others put so many there, the flow has fewer
		r.errors[i] = (t.sum - e.sum - more*above) / max(e.packets-more, 1)
	}
	slices.Sort(r.errors[:])
	// Where too few cells tell, delays may vary as if they were exponential.
	variance := own.variance()
	if r.freedom = max(own.degrees(), 1); own.degrees() < 3 {
		variance, r.freedom = max(variance, r.Mean*r.Mean), max(all.scatter.degrees(), 1)
	}
	// The packets in settled cells are a sample of the flow's, and those in others may be rare and as slow as any
	// are; times are in units, and a record may be wrong.
	sampled := (own.sampled*max(variance, all.beside(own)) + own.between + e.packets*rounding(unit)) / (e.packets * e.packets)
	recorded := above * (1 - e.counted) * e.doubt / e.packets
	// Packets of large flows that share a counter take as long as any.
	shared := e.excess / e.packets * math.Sqrt(all.scatter.variance())
	owed := e.owed(math.Hypot(r.Mean, math.Sqrt(own.variance())), all.lasted) / e.packets
	unseen := e.counted * own.unseen / (e.packets * e.packets) * all.scatter.variance()
	r.own = math.Sqrt(sampled + recorded*recorded + shared*shared + owed*owed + unseen)
	r.bias = (1 - e.read) * (own.high - own.low)
}

// owed returns by how much the times of all packets may be off because of those on their way at the window's
// ends: what they waited before it is not in the areas, what those waited by its end that came after it is.
// They may have waited together, as packets do in general, or for as long as it takes so many to be sent.
func (e *estimator) owed(waits, lasted float64) float64 {
	at := func(end int) float64 {
		n := max(e.own.ends[end]-e.ends[end], 0)
		return n * max(waits, math.Sqrt2*n/e.packets*lasted)
	}
	return math.Hypot(at(0), at(1))
}

// MeanInterval returns an interval that contains the mean delay of the flow's packets with at least the given
// probability, 0 to 1. It assumes that hashing puts the packets of other flows into the flow's counters as it
// does into those of absent flows, and the flow's own packets into any of its counters, and assumes nothing
// about their number or delays. For a small flow among large ones it is many times wider than the mean.
func (r *Result) MeanInterval(confidence float64) estimate.Interval {
	i := estimate.Interval{Low: math.Inf(-1), High: math.Inf(1), Confidence: confidence}
	if r.Err != nil || r.Packets == 0 || !(confidence >= 0 && confidence < 1) {
		return i
	}
	low, high := 0.0, 0.0 // by how much the counters' mean may be too low and too high
	if r.share < 1 {
		// One more error of the same kind is among the rank first or last with probability 2·rank/(absentFlows+1). Beyond
		// 99 %, take a Pareto tail of index 2.
		rank := (1 - confidence) / 2 * (absentFlows + 1)
		whole, beyond := max(int(rank), 1), math.Sqrt(max(1/rank, 1))
		least, most := min(r.errors[whole-1], 0)*beyond, max(r.errors[absentFlows-whole], 0)*beyond
		half := estimate.StudentQuantile((1+confidence)/2, r.freedom) * r.own
		low, high = half-least+r.bias+r.hidden, half+most+r.bias
	}
	i.Low, i.High = r.Mean-high, r.Mean+low
	if r.share > 0 {
		down, up := r.samples.off(confidence)
		i.Low, i.High = r.Mean-math.Hypot((1-r.share)*high, r.share*down), r.Mean+math.Hypot((1-r.share)*low, r.share*up)
	}
	return i
}

// Quantile returns the delay that a fraction p of the flow's packets did not exceed, from 0 to 1, and an interval that contains it with
// the given confidence. ok is false without a sample, or if it is from [Estimate]. The interval is unbounded where the sample ends.
func (r *Result) Quantile(p, confidence float64) (delay float64, within estimate.Interval, ok bool) {
	if len(r.samples.matched) == 0 || !(p >= 0 && p <= 1) {
		return 0, within, false
	}
	all := r.samples.matched
	n := float64(len(all))
	at := func(rank float64) float64 { return all[min(max(int(rank), 0), len(all)-1)].delay }
	off := -estimate.NormalQuantile((1-confidence)/2)*math.Sqrt(n*p*(1-p)) + 1
	within = estimate.Interval{Low: math.Inf(-1), High: math.Inf(1), Confidence: confidence}
	if low := n*p - off; low >= 0 {
		within.Low = at(low) - r.samples.unit + 1
	}
	if high := n*p + off; high <= n-1 {
		within.High = at(math.Ceil(high)) + r.samples.unit - 1
	}
	return at(n * p), within, true
}
