package colate

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
)

// flowSamples are those of a flow. Σ are over packets that both points have,
// weighed by how many each stands for.
type flowSamples struct {
	sampled
	key     uint32
	lost    float64  // packets that those lost stand for
	unseen  float64  // those that should have come, and may yet
	late    float64  // and those that took more than half the time after which they would be lost
	far     crossing // those that came, and were not sent within that time
	latest  float64  // of these: how long after the first epoch began
	early   float64  // those that came, of packets sent after due, and this is when they were counted
	due     int64
	weights float64    // Σ weight²
	sums    [5]float64 // Σ (delay - first)^k: the first is the number of packets that those matched stand for
	times   [3]float64 // Σ (time - start), its square, and its product with the delay
	first   float64    // delay, and
	start   int64      // time of a packet
}

// A sampled is what samples say of a flow.
type sampled struct {
	packets, unit      float64
	mean, error, skew  float64 // standard error and skew of the mean
	deviation, freedom float64
	drift              float64  // variance that a drift would explain
	slow               float64  // by how much the mean may be too low, because those lost may have come late
	hidden, rare       float64  // variance that the flow may have without its samples showing it, and how many packets make it
	beyond             float64  // the same, because packets take longer than samples wait for their other half
	part               float64  // of the flow's packets that are sampled
	matched            []passed // up to twice mostMatched, and the tag
	lowest             uint32   // from which on others are forgotten
}

// A passed packet is one that both points sampled.
type passed struct {
	delay float64
	tag   uint32
}

const (
	// mostMatched is the number of delays of a flow that are kept for quantiles: of
	// more, those with the lowest tags, which are a fair sample.
	mostMatched = 4096
	// fewest is the smallest number of sampled packets of which their spread is believed.
	fewest = 10
	// sure is the confidence at which counters and samples contradict each other.
	sure = 0.999
)

// add adds a packet that both points have.
func (f *flowSamples) add(p passing, delay, weight float64, late bool, due int64) {
	if f.packets == 0 {
		f.first, f.start = delay, p.at
	}
	if late {
		f.late += weight
	}
	if f.due != due {
		f.due, f.early = due, 0
	}
	if p.at >= due {
		f.early += weight
	}
	f.packets++
	f.weights += weight * weight
	x, power := delay-f.first, weight
	for k := range f.sums {
		f.sums[k] += power
		power *= x
	}
	later := float64(p.at - f.start)
	f.times[0] += weight * later
	f.times[1] += weight * later * later
	f.times[2] += weight * later * x
	if p.tag < f.lowest {
		f.matched = append(f.matched, passed{delay, p.tag})
	}
	if len(f.matched) == 2*mostMatched {
		slices.SortFunc(f.matched, func(a, b passed) int { return cmp.Compare(a.tag, b.tag) })
		f.lowest = f.matched[mostMatched].tag
		f.matched = f.matched[:mostMatched]
	}
}

// of returns the samples of a flow: nil if they are too few, or those lost may have taken
// long, because others did.
func (s *sampling) of(r joint.FlowRecord) *flowSamples {
	const most = 0.05
	f := s.find(s.config.key(r.Flow))
	if f == nil || f.packets < fewest || r.Packets < s.least || f.lost > 0 && f.late+f.far.n > most*f.sums[0] {
		return nil
	}
	f.matched = slices.DeleteFunc(f.matched, func(p passed) bool { return p.tag >= s.lowest })
	f.unseen, f.slow = 0, 0
	if f.due != s.due {
		f.early = 0
	}
	if f.late > 0 {
		// Packets grow no more frequent the later they come: so many of those lost may be late ones, and that late.
		const most = 4
		lost := min(f.lost/f.late, most)
		f.slow = float64(s.waited) * f.late / f.sums[0] * lost * (1 + lost/2)
	}
	at, _ := slices.BinarySearchFunc(s.open, f.key, func(p passing, key uint32) int { return cmp.Compare(p.flow, key) })
	for ; at < len(s.open) && s.open[at].flow == f.key; at++ {
		if p := &s.open[at]; !p.down && p.live && p.at < s.due {
			f.unseen += s.weight
		}
	}
	return f
}

// finish computes what the samples say of a flow of so many packets, or of an
// unknown number if that is 0, whose mean packets that take longer than any sample waits may raise.
func (f *flowSamples) finish(packets float64, clocks bool, s *sampling, all *common, beyond float64) {
	n, came := f.packets, f.sums[0]
	m, second, third, fourth := f.sums[1]/came, f.sums[2]/came, f.sums[3]/came, f.sums[4]/came
	variance := max(second-m*m, 0)
	f.mean = f.first + m
	beyond = max(beyond, all.late.farther(&all.late), f.far.most(came))
	f.slow, f.beyond = f.slow+beyond, beyond*2*max(all.late.latest, f.latest)
	number := cmp.Or(packets, came)
	// A packet more or less, and times in units.
	kurtosis := all.scatter.kurtosis()
	f.hidden, f.rare, f.part = s.hidden(all, n), number/kurtosis, min(n/number, 1)
	f.error = math.Sqrt(max(max(variance*n/(n-1), f.hidden)*f.weights/(came*came)*max(1-n/number, 0), variance/(n*n)) + rounding(f.unit)/n)
	if variance > 0 {
		f.skew = (third - 3*m*second + 2*m*m*m) / math.Pow(variance, 1.5) / math.Sqrt(n)
		// The tails of small samples lack the largest: take those of an exponential law at least.
		kurtosis = max((fourth-4*m*third+6*m*m*second-3*m*m*m*m)/(variance*variance), 9)
		f.freedom = max(min(2*n/(kurtosis-1), n-1), 1)
	}
	if t := f.times[1] - f.times[0]*f.times[0]/came; t > 0 && !clocks {
		slope := f.times[2] - f.times[0]*m
		f.drift = min(slope*slope/(t*came), variance)
	}
	if f.drift < 9*variance/n {
		f.drift = 0 // chance
	}
	f.deviation = math.Sqrt(variance * n / (n - 1))
	slices.SortFunc(f.matched, func(a, b passed) int { return cmp.Compare(a.delay, b.delay) })
}

// rounding returns the variance of a delay because times are in units, at most.
func rounding(unit float64) float64 { return (unit*unit - 1) / 4 }

// off returns by how much the mean may be too high, and too low. Where delays are
// skewed the largest are missing from small samples.
func (f *sampled) off(confidence float64) (high, low float64) {
	off := f.error * estimate.StudentQuantile((1+confidence)/2, f.packets-1)
	return off * (1 + 2*max(-f.skew, 0)), off*(1+2*max(f.skew, 0)) + f.slow
}

// deviations returns an interval of the deviation. Packets that are rare and far off make most of
// it. One that was sampled may be the only one: samples stand for as few as a Poisson number may,
// but for themselves. One that was not may be in the flow more often than in all others.
func (f *sampled) deviations(confidence float64) estimate.Interval {
	i := estimate.DeviationInterval(f.deviation, uint64(f.freedom), confidence)
	few := max(f.deviation/i.High, math.Sqrt(f.part*(1-1/f.packets))) // the quantile on the other side
	i.Low = max(f.deviation*few-f.unit, 0)
	often := 1 / estimate.DeviationInterval(1, uint64(2*f.rare)+2, confidence).Low
	i.High = math.Hypot(i.High, math.Sqrt(f.hidden*(1+1/max(f.rare, 0.01)))*often)
	i.High = math.Hypot(i.High, math.Sqrt(f.beyond))
	if f.drift > 0 {
		i.Low *= math.Sqrt(max(1-f.drift/(f.deviation*f.deviation*(1-1/f.packets)), 0))
	}
	return i
}

// share returns the weight of the samples' mean beside another by their standard errors. It reports false if
// they are farther apart than both may be off: the other too high, or too low, by so much.
func (f *sampled) share(own, other, mean, high, low float64) (weight float64, ok bool) {
	down, up := f.off(sure)
	ok = mean-f.mean <= math.Hypot(high, up) && f.mean-mean <= math.Hypot(low, down)
	return other * other / max(own*own+other*other, math.SmallestNonzeroFloat64), ok
}

// combine adds what the samples say to an answer of the counters.
func (r *Result) combine(f *flowSamples) {
	share, ok := 1.0, true
	if r.Err == nil {
		one, all := r.MeanInterval(0.68), r.MeanInterval(sure)
		share, ok = f.share(f.error, (one.High-one.Low)/2, r.Mean, r.Mean-all.Low, all.High-r.Mean)
	} else {
		*r = Result{Packets: f.sums[0]}
	}
	if !ok {
		*r = Result{Err: fmt.Errorf("colate: %w: the flow's counters have a mean of %.3g ns, its %.0f samples one of %.3g",
			estimate.ErrNoSamples, r.Mean, f.packets, f.mean)}
		return
	}
	r.share, r.samples = share, f.sampled
	lost := f.lost + f.unseen
	r.Sampled, r.Lost = uint64(f.packets), lost/max(f.sums[0]-f.early+lost, 1)
	r.Mean = share*f.mean + (1-share)*r.Mean
	r.N = max(r.N, uint64(f.packets))
	if share > 0 && f.drift < f.deviation*f.deviation/4 {
		r.StdDev = f.deviation
	}
}
