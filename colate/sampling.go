package colate

import (
	"cmp"
	"math"
	"slices"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
)

// A sampling follows the sampled packets of some flows through epochs.
type sampling struct {
	config *Config
	least  float64       // packets of a flow that is followed
	flows  []flowSamples // by key
	limit  uint32        // of the last pair of epochs
	delay  int64         // within which packets come, if that is longer than a period
	buffer []sample
	pool   pool
}

// flowSamples are those of a flow. Σ are over packets that both points have,
// weighed by how many each stands for.
type flowSamples struct {
	sampled
	key     uint32
	open    []passing  // not matched yet
	lost    float64    // packets that those lost stand for
	late    float64    // and those that took more than half the time after which they would be lost
	weights float64    // Σ weight²
	sums    [5]float64 // Σ (delay - first)^k: the first is the number of packets that those matched stand for
	times   [3]float64 // Σ (time - start), its square, and its product with the delay
	first   float64    // delay, and
	start   int64      // time of a packet
}

// A sampled is what samples say of a flow.
type sampled struct {
	packets            float64
	mean, error, skew  float64 // standard error and skew of the mean
	deviation, freedom float64
	drift              float64  // variance that a drift would explain
	steady             float64  // the deviation without
	hidden             float64  // variance that the flow may have without its samples showing it
	matched            []passed // up to mostMatched
}

// A passing is a sampled packet at one of the points.
type passing struct {
	tag  uint32
	down bool
	live bool // in an epoch that counts
	at   int64
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
	// fewest is the smallest number of sampled packets of which their spread is
	// believed.
	fewest = 10
)

// aim forgets the samples, and follows other flows.
func (s *sampling) aim(records []joint.FlowRecord) {
	n := 0
	for _, r := range records {
		if r.Packets < s.least {
			continue
		}
		if n == len(s.flows) {
			s.flows = append(s.flows, flowSamples{})
		}
		f := &s.flows[n]
		*f = flowSamples{key: s.config.key(r.Flow), open: f.open[:0], sampled: sampled{matched: f.matched[:0]}}
		n++
	}
	s.flows = s.flows[:n]
	slices.SortFunc(s.flows, func(a, b flowSamples) int { return cmp.Compare(a.key, b.key) })
	s.limit, s.pool = math.MaxUint32, pool{open: s.pool.open[:0], flow: s.pool.flow[:0]}
}

func (s *sampling) find(key uint32) *flowSamples {
	at, ok := slices.BinarySearchFunc(s.flows, key, func(f flowSamples, key uint32) int { return cmp.Compare(f.key, key) })
	if !ok {
		return nil
	}
	return &s.flows[at]
}

// of returns the samples of a flow, nil if there are too few, or if those lost may
// be those that took longest.
func (s *sampling) of(r joint.FlowRecord) *flowSamples {
	const most = 0.05
	f := s.find(s.config.key(r.Flow))
	if f == nil || f.packets < fewest || r.Packets < s.least || f.lost > 0 && f.late > most*f.sums[0] {
		return nil
	}
	return f
}

// whole adds the samples of an epoch in memory.
func (s *sampling) whole(r *Recorder, down bool) {
	blocks := sampleBlocks(len(r.samples))
	for _, x := range r.samples {
		if s.pools(sampleBlock(x.flow, blocks), blocks) {
			s.pool.open = append(s.pool.open, pooled{x, down})
		}
		if f := s.find(x.flow); f != nil {
			f.open = append(f.open, passing{x.tag, down, true, x.at})
		}
	}
}

// read adds the samples of an epoch in a store. Of the second point, the times
// are corrected.
func (s *sampling) read(r *epochReader, e *foundEntry, h *epochHead, down, live, corrected bool) (err error) {
	last := -1
	for i := range s.flows {
		f := &s.flows[i]
		if h.samples.blocks == 0 {
			return nil
		}
		if block := sampleBlock(f.key, h.samples.blocks); block != last {
			at := h.config.blocks() + block
			data, err := r.read(&e.entry, h.offsets[at], h.offsets[at+1])
			if err != nil {
				return err
			}
			if s.buffer, err = h.samples.read(s.buffer[:0], data, block); err != nil {
				return err
			}
			last = block
			if s.pools(block, h.samples.blocks) {
				for _, x := range s.buffer {
					if corrected {
						x.at = e.reading.NearTime(x.at)
					}
					s.pool.open = append(s.pool.open, pooled{x, down})
				}
			}
		}
		at, _ := slices.BinarySearchFunc(s.buffer, f.key, func(x sample, key uint32) int { return cmp.Compare(x.flow, key) })
		for ; at < len(s.buffer) && s.buffer[at].flow == f.key; at++ {
			x := s.buffer[at]
			if corrected {
				x.at = e.reading.NearTime(x.at)
			}
			f.open = append(f.open, passing{x.tag, down, live, x.at})
		}
	}
	return nil
}

// match pairs what both points have after an epoch, whose samples have tags below
// a limit. A packet that the second point has not seen within a period,
// or the delay that it may take, is lost.
func (s *sampling) match(epoch span, limit uint32) {
	period := max(epoch.end-epoch.start, s.delay)
	least := min(s.limit, limit)
	weight := math.Ldexp(1, 32) / float64(max(least, 1))
	s.pool.match(least, period)
	for i := range s.flows {
		f := &s.flows[i]
		slices.SortFunc(f.open, func(a, b passing) int { return cmp.Or(cmp.Compare(a.tag, b.tag), cmp.Compare(a.at, b.at)) })
		kept := f.open[:0]
		for k, next := 0, 0; k < len(f.open); k = next {
			a := f.open[k]
			for next = k + 1; next < len(f.open) && f.open[next].tag == a.tag; next++ {
			}
			same := f.open[k:next]
			switch {
			case a.tag >= least:
			case len(same) == 2 && a.down != same[1].down && same[1].at-a.at < period:
				b := same[1]
				if a.down {
					a, b = b, a // clocks apart
				}
				if b.live {
					f.add(a.at, float64(b.at-a.at), weight, a.tag)
					if b.at-a.at > period/2 {
						f.late += weight
					}
				}
			case len(same) > 1: // copies, of which nobody knows which is which
			case a.at >= later64(epoch.end, -period):
				kept = append(kept, a)
			case !a.down && a.live:
				f.lost += weight
			}
		}
		f.open = kept
	}
	s.limit = limit
}

// add adds a packet that both points have.
func (f *flowSamples) add(at int64, delay, weight float64, tag uint32) {
	if f.packets == 0 {
		f.first, f.start = delay, at
	}
	f.packets++
	f.weights += weight * weight
	x, power := delay-f.first, weight
	for k := range f.sums {
		f.sums[k] += power
		power *= x
	}
	later := float64(at - f.start)
	f.times[0] += weight * later
	f.times[1] += weight * later * later
	f.times[2] += weight * later * x
	f.matched = append(f.matched, passed{delay, tag})
	if len(f.matched) == 2*mostMatched {
		slices.SortFunc(f.matched, func(a, b passed) int { return cmp.Compare(a.tag, b.tag) })
		f.matched = f.matched[:mostMatched]
	}
}

// finish computes what the samples say of a flow of so many packets, or of an
// unknown number if that is 0, beside what they may not show.
func (f *flowSamples) finish(packets float64, clocks bool, rest hidden) {
	n, came := f.packets, f.sums[0]
	m, second, third, fourth := f.sums[1]/came, f.sums[2]/came, f.sums[3]/came, f.sums[4]/came
	variance := max(second-m*m, 0)
	f.mean = f.first + m
	all := cmp.Or(packets, came)
	// Half a unit of time, and a packet more or less.
	f.hidden = rest.from(n)
	f.error = math.Sqrt(max(max(variance*n/(n-1), f.hidden)*f.weights/(came*came)*max(1-n/all, 0), variance/(n*n)))
	if variance > 0 {
		f.skew = (third - 3*m*second + 2*m*m*m) / math.Pow(variance, 1.5) / math.Sqrt(n)
		// The tails of small samples lack the largest: take those of an exponential law at least.
		kurtosis := max((fourth-4*m*third+6*m*m*second-3*m*m*m*m)/(variance*variance), 9)
		f.freedom = max(min(2*n/(kurtosis-1), n-1), 1)
	}
	if t := f.times[1] - f.times[0]*f.times[0]/came; t > 0 && !clocks {
		slope := f.times[2] - f.times[0]*m
		f.drift = min(slope*slope/(t*came), variance)
	}
	if f.drift < 9*variance/n {
		f.drift = 0 // chance
	}
	f.deviation, f.steady = math.Sqrt(variance*n/(n-1)), math.Sqrt((variance-f.drift)*n/(n-2))
	slices.SortFunc(f.matched, func(a, b passed) int { return cmp.Compare(a.delay, b.delay) })
}

// off returns by how much the mean may be too high, and too low. Where delays are
// skewed the largest are missing from small samples.
func (f *sampled) off(confidence float64) (high, low float64) {
	off := f.error * estimate.StudentQuantile((1+confidence)/2, f.packets-1)
	return off * (1 + 2*max(-f.skew, 0)), off * (1 + 2*max(f.skew, 0))
}

func (f *sampled) deviations(confidence float64) estimate.Interval {
	i := estimate.DeviationInterval(f.deviation, uint64(f.freedom), confidence)
	i.High *= max(1, math.Sqrt(f.hidden)/max(f.deviation, 1))
	if f.drift > 0 {
		i.Low = estimate.DeviationInterval(f.steady, uint64(f.freedom), confidence).Low
	}
	return i
}

// combine adds what the samples say to an answer of the counters. Each is
// weighed by its variance. Where they contradict each other the counters are right,
// which know all packets.
func (r *Result) combine(f *flowSamples, record joint.FlowRecord, clocks bool, rest hidden) {
	if f == nil {
		return
	}
	f.finish(record.Packets, clocks, rest)
	share := 1.0
	if r.Err == nil {
		i := r.MeanInterval(0.68)
		other := math.Pow((i.High-i.Low)/2, 2)
		if f.error*f.error+other > 0 {
			share = other / (f.error*f.error + other)
		}
		i = r.MeanInterval(sure)
		if f.contradicts(r.Mean, r.Mean-i.Low, i.High-r.Mean) {
			share = 0
		}
	} else {
		*r = Result{Packets: f.sums[0]}
	}
	r.share, r.samples = share, f.sampled
	r.Sampled, r.Lost = uint64(f.packets), f.lost/(f.sums[0]+f.lost)
	r.Mean = share*f.mean + (1-share)*r.Mean
	r.N = max(r.N, uint64(f.packets))
	if share > 0 && f.drift < f.deviation*f.deviation/4 {
		r.StdDev = f.deviation
	}
}
