package colate

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
)

// flowSamples are those of a flow: a fair sample of its packets, some of which the second point has not seen (a
// delay of +Inf), and others the first (-Inf).
type flowSamples struct {
	key    uint32
	lowest uint32   // tag from which on others are forgotten
	kept   []passed // up to twice mostKept
}

// A sampled is what samples say of a flow.
type sampled struct {
	matched            []passed // at both points, by delay
	packets, all, unit float64  // how many these are, for how many they stand, and the unit of time
	lost               float64  // part of the packets
	mean, error        float64  // and its standard error
	likely, plain      float64  // the error if packets of other flows vary alike, and if none is slow; 0: some are
	deviation, freedom float64
	drift              float64 // variance that a drift would explain
	slow               float64 // by how much the mean may be too low, because packets take longer than samples wait
	hidden             float64 // variance that the flow may have without its samples showing it
	rare, others       float64 // how many packets make it, and made it in all samples
	beyond, counted    float64 // by how much the variance may be too low likewise, and what counters show of it and samples do not
	part               float64 // of the flow's packets that are sampled
}

// A passed packet is one that was sampled, where it was first seen.
type passed struct {
	delay     float64
	at        int64
	tag, flow uint32
}

const (
	// mostKept is the number of a flow's samples that are kept: of more, those with the lowest tags, which are as fair.
	mostKept = 1 << 15
	// fewest is the smallest number of sampled packets that tell of a flow.
	fewest = 3
	// sure is the confidence at which counters and samples contradict each other.
	sure = 0.999
)

func (f *flowSamples) add(p passing, delay float64) {
	if n := len(f.kept); n == cap(f.kept) { // append would allocate five times what it needs in the end
		f.kept = slices.Grow(f.kept, n+1)
	}
	if p.tag < f.lowest {
		f.kept = append(f.kept, passed{delay, p.at, p.tag, p.flow})
	}
	if len(f.kept) == 2*mostKept {
		slices.SortFunc(f.kept, func(a, b passed) int { return cmp.Compare(a.tag, b.tag) })
		f.lowest = f.kept[mostKept].tag
		f.kept = f.kept[:mostKept]
	}
}

// matched returns the packets of a flow that both points sampled, by delay, how many packets these stand for, and
// those that only the second point sampled. It reports false if there are none, or those lost may have taken long, because others did.
func (s *sampling) matched(r joint.FlowRecord) (both, strange []passed, all float64, ok bool) {
	const most = 0.05
	if r.Packets < s.least {
		return nil, nil, 0, false
	}
	f := s.find(s.config.key(r.Flow))
	if f == &s.others {
		return nil, nil, 0, false
	}
	f.lowest = min(f.lowest, s.lowest)
	f.kept = slices.DeleteFunc(f.kept, func(p passed) bool { return p.tag >= f.lowest })
	slices.SortFunc(f.kept, func(a, b passed) int { return cmp.Compare(a.delay, b.delay) })
	longer := func(than float64) int {
		at, _ := slices.BinarySearchFunc(f.kept, than, func(p passed, d float64) int { return cmp.Compare(p.delay, d) })
		return at
	}
	from, to := longer(-math.MaxFloat64), longer(math.Inf(1))
	n, late := float64(to-from), float64(from+to-longer(float64(s.waited)/2))
	all = n * math.Ldexp(1, 32) / float64(max(f.lowest, 1))
	return f.kept[from:to], f.kept[:from], all, n > 0 && (to == len(f.kept) || late <= most*n)
}

// means returns the samples' means of flows, except those of which the second point has seen packets that the first has not. Packets vary
// as parts of their flow's mean: all alike, whether fast or slow, and more where those of all counters vary more than all samples do.
func (s *sampling) means(flows []joint.FlowRecord, variance float64) []joint.Sample {
	if s.config.OneIn == 0 {
		return nil
	}
	means, likely := make([]joint.Sample, len(flows)), s.pool()
	part := likely.part * max(1+(variance-likely.all.Variance())/max(likely.variance, rounding(s.config.unit()), 1), 1)
	for i, r := range flows {
		if both, strange, _, ok := s.matched(r); ok && len(strange) == 0 {
			x := &means[i]
			x.Packets, x.Part = float64(len(both)), part
			for _, p := range both {
				x.Mean += p.delay / x.Packets
			}
		}
	}
	return means
}

// of returns what samples say of a flow, whose mean may be higher by packets that take longer than any sample
// waits. It reports false if they are too few, or do not tell. Its counters tell, too, unless they are empty.
func (s *sampling) of(r joint.FlowRecord, clocks bool, all *common, own *tally, beyond float64) (o sampled, ok bool) {
	both, only, packets, ok := s.matched(r)
	n, strange := float64(len(both)), float64(len(only))
	if !ok || n < fewest {
		return o, false
	}
	if !all.tells(&s.config) {
		own = nil // what counters count is of many flows, or sums of times have wrapped
	}
	o = sampled{matched: both, packets: n, unit: s.config.unit(), all: packets}
	if o.learn(cmp.Or(r.Packets, o.all), clocks, s.pool(), own, all); o.counted > 0 && !all.settles() {
		return o, false
	}
	latest := 0.0
	for _, p := range only {
		latest = max(latest, float64(p.at-s.begun))
	}
	beyond = max(beyond, all.late.farther(&all.late), (strange+2*math.Sqrt(strange))/max(strange, n)*2*latest)
	o.slow, o.beyond = beyond, beyond*2*max(all.late.latest, latest)
	seen := 0.0 // of those that should have come by now
	for _, p := range o.matched {
		if p.at < s.due {
			seen++
		}
	}
	f := s.find(s.config.key(r.Flow))
	lost := float64(len(f.kept)) - n - strange
	at, _ := slices.BinarySearchFunc(s.open, f.key, func(p passing, key uint32) int { return cmp.Compare(p.flow, key) })
	for ; at < len(s.open) && s.open[at].flow == f.key; at++ {
		if p := &s.open[at]; !p.down && p.live && p.at < s.due && p.tag < f.lowest {
			lost++
		}
	}
	o.lost = lost / max(seen+lost, 1)
	return o, true
}

// A pool says how sampled packets vary within all flows: their variance, that as a part of the squares of these flows'
// means, the kurtosis, and how many packets make most of it, if these are rare.
type pool struct {
	variance, part, kurtosis, rare float64
	all                            estimate.Moments // of all of them
}

func (s *sampling) pool() *pool {
	squares, fourths, means, all, p := 0.0, 0.0, math.SmallestNonzeroFloat64, 0.0, &s.pooled
	if p.all.N() > 0 {
		return p
	}
	one := func(kept []passed) {
		var m estimate.Moments
		for _, x := range kept {
			if !math.IsInf(x.delay, 0) {
				m.Add(x.delay)
			}
		}
		p.all.Merge(m)
		n := float64(m.N())
		for _, x := range kept {
			if !math.IsInf(x.delay, 0) && n > 1 {
				fourths += math.Pow(x.delay-m.Mean(), 4)
			}
		}
		squares += max(n-1, 0) * m.Variance()
		means += max(n-1, 0) * max(m.Mean()*m.Mean()-m.Variance()/max(n, 1), 0)
		all += max(n-1, 0)
	}
	for i := range s.flows {
		one(s.flows[i].kept)
	}
	slices.SortFunc(s.others.kept, func(a, b passed) int { return cmp.Compare(a.flow, b.flow) })
	for of, n := s.others.kept, 0; len(of) > 0; of = of[n:] {
		for n = 1; n < len(of) && of[n].flow == of[0].flow; n++ {
		}
		one(of[:n])
	}
	p.part, p.variance = squares/means, squares/max(all, 1)
	p.kurtosis = fourths * all / max(squares*squares, math.SmallestNonzeroFloat64)
	p.rare = all / max(p.kurtosis, 1)
	return p
}

// learn learns from the matched samples of a flow of so many packets, from the pool of all, and from the flow's counters.
func (f *sampled) learn(number float64, clocks bool, likely *pool, counters *tally, all *common) {
	n, first := f.packets, f.matched[0]
	var middle, second, fourth, times, slope float64
	for _, p := range f.matched {
		f.mean += p.delay / n
		middle += float64(p.at-first.at) / n
	}
	for _, p := range f.matched {
		x, later := p.delay-f.mean, float64(p.at-first.at)-middle
		second += x * x / n
		fourth += x * x * x * x / n
		times += later * later
		slope += later * x
	}
	variance := second * n / (n - 1)
	f.deviation = math.Sqrt(variance)
	if counters != nil {
		f.counted = counters.beyond(variance, number, &likely.all, all)
	}
	// Slow packets are as slow as in other flows, or as many times slower than the flow's. All of their variance is
	// hidden where few or none of those that make it show.
	f.hidden = max(likely.part*f.mean*f.mean, likely.variance) * min(1, 3*likely.kurtosis/n)
	f.rare, f.others, f.part = number/max(likely.kurtosis, 1), likely.rare, min(n/number, 1)
	off := func(variance float64) float64 { // a packet more or less, and times in units
		return math.Sqrt(max(variance/n*(1-f.part), second/(n*n)) + rounding(f.unit)/n)
	}
	pooled := max(variance+f.counted, likely.part*f.mean*f.mean)
	f.error, f.likely = off(max(pooled, f.hidden)), off(pooled)
	if f.matched[len(f.matched)-1].delay-f.mean < math.Sqrt(f.hidden*likely.kurtosis)/2 {
		f.plain = off(max(variance+f.counted, min(likely.part, 1)*f.mean*f.mean))
	}
	if second > 0 {
		// The tails of small samples lack the largest: take those of an exponential law at least.
		f.freedom = max(min(2*n/(max(fourth/(second*second), 9)-1), n-1), 1)
	}
	if times > 0 && !clocks {
		f.drift = min(slope*slope/(times*n), second)
	}
}

// beyond returns the variance of a flow's packets that its counters show and samples do not: what exceeds that of the flow's and of
// others' samples, if it does by three standard errors, which are those of exponential delays. Two of its own are added, for a slow
// packet is in a cell with others: two deviations of twice the products. All of it may be the flow's. Twice as many of the packets that
// the counters do not tell of may be as slow, or as those of others are, and two deviations of a Poisson number of slow ones more.
func (t *tally) beyond(variance, packets float64, samples *estimate.Moments, all *common) float64 {
	others, cells := samples.Variance(), max(t.came/packets, 1)
	more := func(counted, usual, degrees float64) float64 {
		n := max(degrees, 1)
		if more := counted - usual; more > 3*usual*math.Sqrt(8/n+8/float64(max(samples.N(), 1))) {
			return more + 4*math.Sqrt(more*usual/n)
		}
		return 0
	}
	own := more(t.variance()*cells, variance+(cells-1)*others, t.degrees())
	told := t.shown / max(t.came, t.shown, 1) // a part of the packets
	rest := 2 * (1 - told) * max(own, more(all.beside(t), others, all.scatter.degrees()))
	return told*own + rest + 2*math.Sqrt(rest*max(all.scatter.slow(), t.slow())/max(packets, 1))
}

// rounding returns the variance of a delay because times are in units, at most.
func rounding(unit float64) float64 { return (unit*unit - 1) / 4 }

// off returns by how much the mean may be too high, and too low: rare slow packets that samples do not show make
// it too low, as many as other flows have, and the skew of a Poisson number of them.
func (f *sampled) off(confidence float64) (high, low float64) {
	t := estimate.StudentQuantile((1+confidence)/2, f.packets-1)
	high, low = t*f.likely, t*f.error+f.slow
	if f.hidden > f.deviation*f.deviation {
		z := estimate.NormalQuantile((1 + confidence) / 2)
		low += (1 - f.part) * math.Sqrt(f.hidden*f.rare*f.part/f.packets) * (1 + (z*z-1)/6/f.rare)
	}
	if f.plain > 0 { // of slow packets there are only those that were not sampled
		slow := (1 - f.part) * f.often(confidence) * math.Sqrt(f.hidden*f.rare*f.part/f.packets)
		high, low = min(high, t*f.plain), min(low, t*f.plain+slow+f.slow)
	}
	return high, low
}

// often returns how many times as often packets that were not sampled may be slow as all flows' samples are: they may be in the flow more
// often than in all others, and in these than in their samples. The parts by which two Poisson numbers are off add up as squares.
func (f *sampled) often(confidence float64) float64 {
	few := estimate.DeviationInterval(1, uint64(2*f.rare*f.others/(f.rare+f.others))+2, confidence).Low
	return (1 + 1/max(f.rare, 0.01)) / (few * few)
}

// DeviationInterval returns an interval that contains the standard deviation of the flow's delays with the given probability. It is
// unbounded without a sample. If unknown clocks may have drifted, it begins at what no drift explains.
func (r *Result) DeviationInterval(confidence float64) estimate.Interval {
	if r.Sampled == 0 || !(confidence >= 0 && confidence < 1) {
		return estimate.Interval{High: math.Inf(1), Confidence: confidence}
	}
	// Packets that are rare and far off make most of it. One that was sampled may be the only one: samples stand for as
	// few others as a Poisson number may be.
	f := &r.samples
	i := estimate.DeviationInterval(f.deviation, uint64(f.freedom), confidence)
	few := max(f.deviation/i.High, math.Sqrt(f.part*(1-1/f.packets))) // the quantile on the other side
	i.Low = max(f.deviation*few-f.unit, 0)
	i.High = math.Sqrt(i.High*i.High + f.hidden*f.often(confidence) + f.beyond + f.counted)
	if f.drift > 0 {
		i.Low *= math.Sqrt(max(1-f.drift/(f.deviation*f.deviation*(1-1/f.packets)), 0))
	}
	return i
}

// share returns the weight of the samples' mean beside another by their standard errors. It reports false if
// they are farther apart than both may be off: the other too high, or too low, by so much.
func (f *sampled) share(other, mean, high, low float64) (weight float64, ok bool) {
	down, up := f.off(sure)
	ok = mean-f.mean <= math.Hypot(high, up) && f.mean-mean <= math.Hypot(low, down)
	return other * other / max(f.likely*f.likely+other*other, math.SmallestNonzeroFloat64), ok
}

// combine adds what the samples say to an answer of the counters.
func (r *Result) combine(f sampled) {
	share, ok := 1.0, true
	if r.Err == nil {
		one, all := r.MeanInterval(0.68), r.MeanInterval(sure)
		share, ok = f.share((one.High-one.Low)/2, r.Mean, r.Mean-all.Low, all.High-r.Mean)
	} else {
		*r = Result{Packets: f.all}
	}
	if !ok {
		*r = Result{Err: fmt.Errorf("colate: %w: the flow's counters have a mean of %.3g ns, its %.0f samples one of %.3g",
			estimate.ErrNoSamples, r.Mean, f.packets, f.mean)}
		return
	}
	r.share, r.Mean, r.N = share, share*f.mean+(1-share)*r.Mean, max(r.N, uint64(f.packets))
	r.samples, r.Sampled, r.Lost = f, uint64(f.packets), f.lost
	// A line explains some by chance: up to three standard errors of its slope.
	if all := f.deviation * f.deviation * (1 - 1/f.packets); f.drift < all/4 || f.drift*(f.packets-2) < 9*(all-f.drift) {
		r.StdDev = f.deviation
	}
}
