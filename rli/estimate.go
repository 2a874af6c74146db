package rli

import (
	"fmt"
	"iter"
	"math"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// Counts says what became of the packets and references.
type Counts struct {
	Packets uint64 // passed to Update
	// How packets were estimated, except for those still in the buffer.
	Idle        uint64 // found the link idle: exact
	Busy        uint64 // within a busy period
	Linear      uint64 // from one reference or two, eq. (1)
	Unestimated uint64 // not estimated: there was no reference
	Shed        uint64 // packets without a record: all were in use
	Evicted     uint64 // packets whose record gave way to another flow's
	// According to the numbers of packets in references.
	Missing    uint64 // packets that never departed, or were not passed to Update
	Overtaken  uint64 // packets that departed after a reference sent after them, or did not pass the injector
	References uint64 // passed to Reference or Accept
	Lost       uint64 // numbers missing between references
	Refused    uint64 // references that came twice or late, were forged or another injector's, or contradict earlier ones
	Steps      uint64 // times that a clock was stepped, or the injector restarted with its clock behind
	Conflicts  uint64 // times that the link was not as Auto assumes
}

// list is in the order of the encoding.
func (c *Counts) list() [countFields]*uint64 {
	return [...]*uint64{
		&c.Packets, &c.Idle, &c.Busy, &c.Linear, &c.Unestimated, &c.Shed, &c.Evicted,
		&c.Missing, &c.Overtaken, &c.References, &c.Lost, &c.Refused, &c.Steps, &c.Conflicts,
	}
}

const countFields = 14

// add adds theirs to mine, field by field.
func add[T uint64 | float64](mine, theirs []*T) {
	for i, x := range mine {
		*x += *theirs[i]
	}
}

// Counts returns what became of the packets and references so far.
func (r *Receiver) Counts() Counts { return r.counts }

// Estimate returns the delay of flow f, without packets that wait. The error wraps [estimate.ErrNoSamples] or [ErrUntrusted].
func (r *Receiver) Estimate(f hashing.Flow) (Result, error) {
	made(r.tracker != nil, "Receiver")
	flow := &r.flows.records[r.flows.find(f)]
	if flow.count() == 0 {
		return Result{}, fmt.Errorf("rli: %w: no packet of flow %#016x was estimated", estimate.ErrNoSamples, uint64(f))
	}
	return r.result(flow, 0)
}

// Total returns the delay of all packets, also without a record. The error wraps [estimate.ErrNoSamples] or [ErrUntrusted].
func (r *Receiver) Total() (Result, error) {
	made(r.tracker != nil, "Receiver")
	if r.total.count() == 0 {
		return Result{}, fmt.Errorf("rli: %w: no packet was estimated", estimate.ErrNoSamples)
	}
	res, err := r.result(&r.total, r.counts.Unestimated)
	if q := &r.quality; err == nil && res.error < math.Inf(1) { // references are a sample of all packets
		all := max(q.packets, 1)
		res.bias += (math.Abs(q.lean) + 2*q.behind/math.Sqrt(r.total.atMost())) / all // all held up
		res.error, res.hidden = math.Sqrt(q.squares/all/all+q.stamps()/float64(res.N)), 0
	}
	return res, err
}

// unseen returns how much more often references are lost than packets: a full queue has no room behind the packet that
// filled it. Those sent later may find room where packets did not; others seem to where other receivers measure packets.
func (r *Receiver) unseen() float64 {
	k := &r.counts
	arrived := 1 - float64(k.Lost)/max(float64(k.References)+float64(k.Lost), 1)
	packets := 1 - float64(k.Missing)/max(float64(k.Packets)+float64(k.Missing), 1)
	if r.quality.held > 0 { // references are sent later
		arrived, packets = min(arrived, packets), max(arrived, packets)
	}
	return max(packets-arrived, 0) / max(packets, math.SmallestNonzeroFloat64)
}

// All iterates over the flows that Estimate answers, in any order. Do not change the receiver meanwhile.
func (r *Receiver) All() iter.Seq2[hashing.Flow, Result] {
	return func(yield func(hashing.Flow, Result) bool) {
		for i := range r.flows.records {
			if flow := &r.flows.records[i]; flow.count() > 0 {
				if res, err := r.result(flow, 0); err == nil && !yield(flow.flow, res) {
					return
				}
			}
		}
	}
}

// A Result is what is known about the packets of one flow, or of all flows.
type Result struct {
	// Delay describes the estimated delays of the packets, eq. (5) and (6). N is their number, and the divisor
	// of the deviation. A delay includes the time to send the packet itself.
	estimate.Delay
	error               float64 // deviation of the mean's error
	spread              float64 // of that of the packets' deviation
	single              float64 // of one packet's
	bias                float64 // at most, beside
	apart               float64 // what the deviation is off by at most, beside
	degrees             float64 // of freedom
	rare                float64 // deviations that errors are if few are not 0
	hidden, share, most float64 // see METHODS.md, section 4: what pairs do not show
}

const (
	least          = 128  // references from which intervals are made, as a burst goes on for several
	enough         = 64   // pairs that tell whether errors are alike
	fewestDegrees  = 3    // and one for each stretch, of Student's distribution: predictions are off themselves
	twoDeviations  = 1.96 // hold at 95 %, as what is likely is hidden
	untestedErrors = 3    // typical ones that packets may be off by which no reference tested
)

// result returns the estimate of a record, together with packets that were not estimated.
func (r *Receiver) result(f *record, others uint64) (Result, error) {
	doubtful, err := r.doubtful(f, others)
	if err != nil {
		return Result{}, err
	}
	q, n, stretches := &r.quality, float64(f.count()), f.atMost()
	res, sum := Result{Delay: f.delay()}, *f
	sum.begin(sum.last, 0)
	variance := sum.variance() / (n * n) // of the mean
	single := variance * stretches
	if doubts(f.doubtful&allDoubts) == untested { // they are as far off as lines proved to be since
		typical := max(r.lineError.mean, q.seen/max(q.packets, 1))
		single += max(doubtful*(doubtful*typical-single), 0)
		variance, doubtful = variance+max(doubtful*(min(doubtful, 1/stretches)*typical-variance), 0), 0
	}
	// The same errors corrected predictions: their ratio is drawn to one, more if few large ones decide it.
	many := q.seen * q.seen / max(q.fourths, math.SmallestNonzeroFloat64)
	ratio := (many*q.seen/q.told + least) / (many + least)
	shared, hidden := q.alike()
	// Fourth powers of errors are so many times those of errors as predicted, for the same squares: for a sum of k, a kth of that.
	kurtosis, part := q.told*q.told/max(q.foretold, math.SmallestNonzeroFloat64)/many, 1/sum.alike()+shared
	// All estimates, which learn from references, may be off by two standard errors of these.
	common := single * 4 * q.squares / max(q.packets*q.told, math.SmallestNonzeroFloat64)
	late := q.late / max(q.packets, 1) // on average, if each is off by q.held or not
	res.error = math.Sqrt(ratio*(variance+shared*(single-variance)) + q.stamps()/n + common + late*q.held/stretches)
	res.single = math.Sqrt(ratio * single)
	if q.references < least || !(res.error+res.single+kurtosis >= 0) { // or an encoding says what no references show
		res.error, res.single, kurtosis = math.Inf(1), math.Inf(1), math.Inf(1)
	}
	degrees := fewestDegrees + 1/part
	unsure := math.Sqrt(1 - 1/degrees)
	res.hidden, res.share, res.most = hidden, n/float64(max(r.total.count(), 1)), math.Sqrt(3*max(kurtosis, 1))
	if kurtosis > 3 {
		res.rare = math.Sqrt(3+(kurtosis-3)*part) / unsure
	}
	res.error *= unsure
	// The packets that are far from the mean may be those with errors. These weigh as many times more as they are rarer.
	res.spread = max(math.Sqrt2*res.error, unsure*res.single*math.Sqrt(min(part*max(kurtosis/3, 1), 1)))
	// A mean square x̄ whose variance is v has 2x̄²/v degrees.
	res.degrees = max(1/(1/degrees+q.fourths/max(2*q.seen*q.seen, math.SmallestNonzeroFloat64)), 1)
	far, off := q.span, min(untestedErrors*res.single, q.span)
	// Stamps may all be off alike, by half of their grain, or each by itself, and so may packets behind references. Alike
	// errors of k stretches are k times one, of which 2√k, two deviations, are in the interval: all, if they are few.
	alike := (q.slack-tolerance)/2 + late + q.behind/max(float64(r.total.count()), 1)*max(1-2/math.Sqrt(stretches), 0)
	// Packets on both sides of a lost reference, and those that none shows, may be further off than what is known.
	missed := q.gone / max(q.gone+q.references, 1) // while no packet was
	thin := missed + max(missed, r.unseen())
	res.bias = doubtful*far + thin*off + alike + 0x1p-51*math.Abs(res.Mean)
	res.apart = math.Sqrt(doubtful)*far + math.Sqrt(thin)*off + alike
	return res, nil
}

// MeanInterval returns the mean's interval at a confidence above 0 and below 1: unbounded with fewer than 128 references.
func (r *Result) MeanInterval(confidence float64) estimate.Interval {
	half := r.half(r.error, confidence) + r.bias
	// Fewer flows than may be outside, or this one, may have all that is hidden.
	if beyond := estimate.NormalQuantile((1+confidence)/2) - twoDeviations; beyond > 0 && r.hidden > 0 {
		half = max(half, min(math.Sqrt(beyond*r.hidden/max(r.share, 1-confidence)), r.most)*r.single+r.bias)
	}
	return estimate.Interval{Low: r.Mean - half, High: r.Mean + half, Confidence: confidence}
}

// half returns how far off something may be, given the deviation of its error.
func (r *Result) half(error, confidence float64) float64 {
	if r.degrees == 0 || math.IsInf(error, 1) {
		return math.Inf(1)
	}
	return max(-estimate.StudentQuantile((1-confidence)/2, r.degrees), min(r.rare, 1/math.Sqrt(1-confidence))) * error
}

// DeviationInterval returns the interval of the deviation of the flow's delays: see MeanInterval. StdDev lacks
// the errors of estimates that are smoother than delays, and includes those of references.
func (r *Result) DeviationInterval(confidence float64) estimate.Interval {
	half := r.half(r.spread, confidence) + r.apart
	low, high := math.Sqrt(max(r.StdDev*r.StdDev-r.single*r.single, 0)), math.Hypot(r.StdDev, r.single)
	return estimate.Interval{Low: max(low-half, 0), High: high + half, Confidence: confidence}
}
