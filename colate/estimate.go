package colate

import (
	"fmt"
	"math"
	"slices"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// Confidence is the confidence of the intervals in a [Result].
const Confidence = 0.95

// outside is how many of the estimates for absent flows are left out at
// either end of an interval. If a flow's noise is one more draw of the same
// kind, it falls among those with probability 2·outside/(Absent+1), 3 %. Five
// would be enough for 95 %; the rest is room for what the flow's own packets
// do, which is only modelled.
const outside = 3

// fewest is how many packets a flow must have for each of its counters, on
// average, for a trimmed mean to be tried. With fewer, most of its counters hold
// none: those that do are what is trimmed, and how much that takes away depends
// on how the flow's delays compare with those of others, which is the question.
const fewest = 0.5

// A Result is what two points say about the delays of one flow.
type Result struct {
	// Delay's Mean is the best estimate that the counters allow: with packet
	// counts, that conditioned on them; else a trimmed mean or Linear,
	// whichever has the narrower interval, or Linear for a flow of fewer
	// packets than half its counters. N is about how many of the flow's
	// packets are in the counters used. StdDev means nothing unless
	// DeviationKnown.
	estimate.Delay

	// Interval holds the mean delay of those packets with probability
	// Confidence or more. It supposes that the packets of other flows fall in
	// the flow's counters as they do in those of absent flows, which hashing
	// sees to, and nothing of their number or delays; of the flow itself, that
	// its packets choose their counters at random, and of a trimmed mean, that
	// the mean square of its delays is between 1 and 8 times the squared mean.
	// For a small flow among big ones it is many times wider than its mean.
	Interval estimate.Interval

	// DeviationKnown is false if the counters' spread does not exceed what
	// other flows' packets explain.
	DeviationKnown bool

	// Linear is Theorem 2 applied to differences of counters, with the
	// counters of absent flows for the noise: the same as [Theorem2] but for
	// rounding where that is defined, and defined for sums that wrap.
	Linear         float64
	LinearInterval estimate.Interval

	Counters int     // of the flow's counters, how many could be used
	Share    float64 // the part of the flow's packets in the vectors used
}

// Estimate returns the delays from up to down of the flow that both
// subvectors were gathered for, which had the given number of packets, known
// from flow records. It allocates nothing.
//
// It returns [estimate.ErrMismatch] for subvectors of different Configs or
// flows, and [estimate.ErrNoSamples] if no counter can be believed (see §1.4), if
// the sums of delays are too large for the counters' width, and for a flow
// without packets. Points of different sizes are compared by
// [Theorem2], by sums of whole time stamps.
//
// The counters are of use only if the epochs added at both points cover the
// flow's lifetime and hold the same packets but for a few at the ends.
// Anything else shows as vectors that disagree.
func Estimate(up, down *Subvector, packets uint64) (Result, error) {
	c, err := compare(up, down)
	if err != nil {
		return Result{}, err
	}
	if packets == 0 {
		return Result{}, fmt.Errorf("colate: %w: a flow of no packets", estimate.ErrNoSamples)
	}
	var own [MaxPerFlow]float64
	var counts [MaxPerFlow]float64
	usable := c.delays(0, own[:], counts[:])
	noise, err := c.background()
	if err != nil {
		return Result{}, err
	}
	if usable == 0 {
		return Result{}, fmt.Errorf("colate: %w: none of the flow's %d counters holds the same packets at both points",
			estimate.ErrNoSamples, c.config.PerFlow)
	}
	if c.wrapped(own[:usable]) {
		return Result{}, fmt.Errorf("colate: %w: the delays in the flow's counters come to a quarter of half their modulus, 2^%d ns, or have wrapped; raise Bits or TimeBits",
			estimate.ErrNoSamples, c.config.modulus()+int(c.config.Shift)-1)
	}
	// Not all counters of a flow are usable: those that are hold their part
	// of its packets, in expectation.
	e := estimator{
		comparison: &c,
		perCounter: float64(packets) * c.share / float64(c.config.PerFlow),
		noise:      noise,
	}
	res := Result{Counters: usable, Share: c.share}
	res.N = max(uint64(e.perCounter*float64(usable)+0.5), 1)
	res.Linear, res.LinearInterval = e.linear(own[:usable])
	if up.counts != nil {
		mean, interval, kept, held := e.counted(own[:usable], counts[:usable])
		if kept > 0 {
			res.Mean, res.Interval = mean, interval
			res.N, res.Counters = uint64(max(held, 1)+0.5), kept
			var variance float64
			variance, res.DeviationKnown = e.countedVariance(own[:kept], counts[:kept])
			res.StdDev = math.Sqrt(variance)
			return res, nil
		}
	}
	variance := (squares(own[:usable])-noise.squares)/e.perCounter - res.Linear*res.Linear
	if res.DeviationKnown = variance > 0; res.DeviationKnown {
		res.StdDev = math.Sqrt(variance)
	}
	res.Mean, res.Interval = res.Linear, res.LinearInterval
	if e.perCounter >= fewest {
		if mean, interval := e.trimmed(own[:usable]); width(interval) <= width(res.Interval) {
			res.Mean, res.Interval = mean, interval
		}
	}
	return res, nil
}

// wrapped reports whether most of the sums of delays are too large to be told
// from sums that have wrapped. Those are as likely to be anything from minus to
// plus half the modulus, so that of twenty 99 % of the time more than ten are
// beyond a quarter of that.
func (c *comparison) wrapped(sums []float64) bool {
	limit := math.Ldexp(c.config.Unit(), c.config.modulus()-3)
	large := 0
	for _, x := range sums {
		if math.Abs(x) > limit {
			large++
		}
	}
	return 2*large > len(sums)
}

// background is what the counters of absent flows say about the packets of
// others.
type background struct {
	sum     float64 // mean over counters of the sum of delays, ns
	squares float64 // mean over flows of squares
	count   float64 // mean over counters of the number of packets
	median  float64 // median of the same
	common  float64 // mean delay of all packets
}

func (c *comparison) background() (background, error) {
	var sums, counts [MaxPerFlow]float64
	var medians [Absent]float64
	var sum, spread, count, n float64
	flows := 0
	for i := range Absent {
		usable := c.delays(1+i, sums[:], counts[:])
		for j := range usable {
			sum += sums[j]
			count += counts[j]
			n++
		}
		spread += squares(sums[:usable])
		if usable > 0 {
			medians[flows] = counts[0]
			flows++
		}
	}
	// An interval needs most of the absent flows.
	if flows < Absent-outside+1 {
		return background{}, fmt.Errorf("colate: %w: %d of %d absent flows have a counter that holds the same packets at both points",
			estimate.ErrNoSamples, flows, Absent)
	}
	slices.Sort(medians[:flows])
	return background{
		sum: sum / n, squares: spread / float64(flows),
		count: count / n, median: medians[flows/2],
		common: sum / n / c.packetsPerCounter(count/n),
	}, nil
}

// packetsPerCounter is how many packets a counter holds on average: as
// counted, or as the vectors in use say.
func (c *comparison) packetsPerCounter(counted float64) float64 {
	if c.up.counts != nil {
		return max(counted, 1e-9)
	}
	var packets uint64
	for k := range c.config.Vectors {
		if c.used[k] {
			packets += c.up.vectors[k].Packets
		}
	}
	return float64(packets) / float64(c.config.Counters)
}

// An estimator has what the estimates below share.
type estimator struct {
	*comparison
	perCounter float64 // packets of the flow expected in each counter
	noise      background
}

// ownScale is n/(n−m) of Theorem 2: a flow's packets are part of the mean
// counter too, which is taken off as noise.
func (e *estimator) ownScale() float64 {
	n, m := float64(e.config.Counters), float64(e.config.PerFlow)
	return n / (n - m)
}

// linear is Theorem 2, eq. (4), on differences of counters.
func (e *estimator) linear(own []float64) (float64, estimate.Interval) {
	scale := e.ownScale() / e.perCounter
	estimated := (mean(own) - e.noise.sum) * scale
	var errors [Absent]float64
	var sums, counts [MaxPerFlow]float64
	for i := range errors {
		usable := e.delays(1+i, sums[:], counts[:])
		errors[i] = (mean(sums[:usable]) - e.noise.sum) * scale
	}
	return estimated, calibrated(estimated, &errors)
}

// trimmed is the mean of the middle half of the flow's counters: an elephant
// of another flow in one of them does no harm. What trimming does to the
// flow's own packets, and to the noise, is learned from absent flows that are
// given as many packets as the flow has. Their mean delay is that of all
// packets or, where that can be ruled out for the flow, the nearest that
// cannot. How scattered the delays are is not known, so the absent flows take
// turns: a mean square of 1, 2, 4 and 8 times the squared mean.
func (e *estimator) trimmed(own []float64) (float64, estimate.Interval) {
	middle := middleHalf(own) / e.perCounter
	var errors [Absent]float64
	var sums, counts, shares [MaxPerFlow]float64
	with := e.noise.common
	var bias float64
	var i estimate.Interval
	for range 2 {
		bias = 0
		for a := range errors {
			usable := e.delays(1+a, sums[:], counts[:])
			// Gamma draws of a shape below 1/2 are too few to stand for anything.
			shape := max(e.perCounter/float64(int(1)<<(a%4)), 0.5)
			for j := range usable {
				shares[j] = gammaDraw(e.up.flow, uint64(a*MaxPerFlow+j), shape)
			}
			// The flow's sum of delays is what it is, however it is spread.
			scale := e.perCounter * with / max(mean(shares[:usable]), 1e-9)
			for j := range usable {
				sums[j] += shares[j] * scale
			}
			errors[a] = middleHalf(sums[:usable])/e.perCounter - with
			bias += errors[a] / Absent
		}
		i = calibrated(middle, &errors)
		with = min(max(with, i.Low), i.High)
	}
	return middle - bias, i
}

// counted uses the packet counts three times: to take off what each counter's
// packets would have been delayed if all were delayed alike, so that only
// what sets flows apart is noise; to leave out counters that an elephant
// shares, which gives itself away by its count and so without regard to its
// delay; and, where counters are left out, to tell how many of the flow's
// packets are in the others. It moves the counters that it kept to the front
// of own and counts, and returns how many they are and how many packets of the
// flow they hold. If it keeps none, it changes nothing, and the other results
// mean nothing.
func (e *estimator) counted(own, counts []float64) (estimated float64, i estimate.Interval, kept int, packets float64) {
	limit, common := e.countLimit(), e.noise.common
	excess, held := 0.0, 0.0
	for j := range own {
		if counts[j] <= limit {
			own[kept], counts[kept] = own[j], counts[j]
			excess += own[j] - counts[j]*common
			held += counts[j]
			kept++
		}
	}
	if kept == 0 {
		return 0, estimate.Interval{}, 0, 0
	}
	// How many of the flow's packets are in the counters kept is known from
	// the number of counters, but for chance in how the flow spread, or from the
	// counts, but for chance in those of others: whichever is less.
	calm := e.calm(limit - e.perCounter)
	part := float64(kept) / float64(e.config.PerFlow)
	packets = e.perCounter * float64(kept)
	byCount := calm.variance*float64(kept) < packets*(1-part)
	if byCount {
		packets = held - calm.count*float64(kept)
	}
	if packets < 1 { // there is nothing of the flow to be seen
		byCount, packets = false, e.perCounter*float64(kept)
	}
	estimated = common + excess/packets

	// Noise is what others deviate by and, by counts, that their number is not
	// known.
	deviation, unknown := estimated-common, 0.0
	if byCount {
		deviation, unknown = 0, deviation
	}
	var errors [Absent]float64
	var sums, other [MaxPerFlow]float64
	for a := range errors {
		n, sum := 0, 0.0
		for j := range e.delays(1+a, sums[:], other[:]) {
			if other[j] <= limit-e.perCounter {
				sum += sums[j] - other[j]*common - (other[j]-calm.count)*unknown
				n++
			}
		}
		errors[a] = sum / float64(max(n, 1)) * float64(kept) / packets
	}
	i = calibrated(estimated, &errors)
	// The packets in the counters kept are a sample of the flow's.
	normal := -estimate.NormalQuantile((1 - Confidence) / 2)
	half := normal * math.Sqrt((calm.dispersion+deviation*deviation)*(1-part)/packets)
	i.Low -= half
	i.High += half
	return estimated, i, kept, packets
}

// calm is what the counters of absent flows hold that have no more packets
// than the limit.
type calm struct {
	count      float64 // mean number of packets
	variance   float64 // of the same
	dispersion float64 // variance of delays about the mean of all packets, ns²
}

func (e *estimator) calm(limit float64) calm {
	var sums, other [MaxPerFlow]float64
	n, packets, spread, squares := 0.0, 0.0, 0.0, 0.0
	for a := range Absent {
		for j := range e.delays(1+a, sums[:], other[:]) {
			if other[j] <= limit {
				x := sums[j] - other[j]*e.noise.common
				n++
				packets += other[j]
				spread += other[j] * other[j]
				squares += x * x
			}
		}
	}
	average := packets / max(n, 1)
	return calm{
		count:      average,
		variance:   spread/max(n, 1) - average*average,
		dispersion: squares / max(packets, 1),
	}
}

// countLimit is the number of packets above which a counter of the flow must
// hold more of others than most do: its own, those of others, and three
// deviations, of a Poisson number.
func (e *estimator) countLimit() float64 {
	expected := e.perCounter + e.noise.median
	return expected + 3*math.Sqrt(expected) + 2
}

// calibrated is the interval of an estimate whose errors are distributed as
// those given, which it sorts.
func calibrated(estimated float64, errors *[Absent]float64) estimate.Interval {
	slices.Sort(errors[:])
	return estimate.Interval{
		Low:        estimated - errors[Absent-outside],
		High:       estimated - errors[outside-1],
		Confidence: Confidence,
	}
}

func width(i estimate.Interval) float64 { return i.High - i.Low }

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(max(len(x), 1))
}

// middleHalf is the mean of the middle half of x. It sorts x.
func middleHalf(x []float64) float64 {
	slices.Sort(x)
	cut := len(x) / 4
	return mean(x[cut : len(x)-cut])
}

// gammaDraw is draw number i of a flow from nearly the gamma distribution of
// the given shape and mean 1, which is how the sum of a random number of
// delays is distributed: Wilson and Hilferty's cube of a normal, and for that
// the sum of four even draws.
func gammaDraw(f hashing.Flow, i uint64, shape float64) float64 {
	h := hashing.Mix(uint64(f), ^i)
	sum := h&0xffff + h>>16&0xffff + h>>32&0xffff + h>>48
	normal := (float64(sum)/65535 - 2) * math.Sqrt(3)
	root := max(1-1/(9*shape)+normal/(3*math.Sqrt(shape)), 0)
	return root * root * root
}
