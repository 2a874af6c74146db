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
	flows  []flowSamples
	order  []int  // flows by the bits that samples have
	limit  uint32 // of the last pair of epochs
	buffer []sample
}

// flowSamples are those of a flow.
type flowSamples struct {
	flow    uint32
	open    []passing // not matched yet
	matched []passed  // up to mostMatched
	packets float64
	sent    float64 // packets that those matched or lost stand for
	lost    float64 // and those lost
	sum     float64 // delays, weighted
	squares float64
	cubes   float64
	weights float64 // Σ weight², of those matched
}

// A passing is a sampled packet at one of the points.
type passing struct {
	tag  uint32
	down bool
	at   int64
	live bool // sent in an epoch that counts
}

// A passed packet is one that both points sampled.
type passed struct {
	delay float64
	tag   uint32
}

// mostMatched is the number of delays of a flow that are kept for quantiles: of
// more, those with the lowest tags, which are a fair sample.
const mostMatched = 4096

func newSampling(c Config, records []joint.FlowRecord) *sampling {
	if c.OneIn == 0 {
		return nil
	}
	s := &sampling{flows: make([]flowSamples, len(records)), order: make([]int, len(records)), limit: c.limit()}
	for i, r := range records {
		s.flows[i].flow, s.order[i] = uint32(r.Flow>>32), i
	}
	slices.SortStableFunc(s.order, func(a, b int) int { return cmp.Compare(s.flows[a].flow, s.flows[b].flow) })
	return s
}

// read adds the samples of an epoch at one of the points, whose clock was ahead
// by so much.
func (s *sampling) read(r *epochReader, e *foundEntry, h *epochHead, down, live, corrected bool) (err error) {
	last := -1
	for _, i := range s.order {
		f := &s.flows[i]
		if h.samples.blocks == 0 {
			break
		}
		if block := sampleBlock(f.flow, h.samples.blocks); block != last {
			at := h.config.blocks() + block
			data, err := r.read(&e.entry, h.offsets[at], h.offsets[at+1])
			if err != nil {
				return err
			}
			if s.buffer, err = h.samples.read(s.buffer[:0], data, block); err != nil {
				return err
			}
			last = block
		}
		at, _ := slices.BinarySearchFunc(s.buffer, f.flow, func(x sample, flow uint32) int { return cmp.Compare(x.flow, flow) })
		for ; at < len(s.buffer) && s.buffer[at].flow == f.flow; at++ {
			x := s.buffer[at]
			if corrected {
				x.at = e.reading.NearTime(x.at)
			}
			f.open = append(f.open, passing{x.tag, down, x.at, live})
		}
	}
	s.limit = min(s.limit, h.limit)
	return nil
}

// match pairs what both points have. A packet that the second point has not seen
// within a period is lost.
func (s *sampling) match(end, period int64, limit uint32) {
	weight := math.Ldexp(1, 32) / float64(max(s.limit, 1))
	for i := range s.flows {
		f := &s.flows[i]
		slices.SortFunc(f.open, func(a, b passing) int { return cmp.Or(cmp.Compare(a.tag, b.tag), cmp.Compare(a.at, b.at)) })
		kept := f.open[:0]
		for k := 0; k < len(f.open); k++ {
			a := f.open[k]
			if k+1 < len(f.open) {
				if b := f.open[k+1]; b.tag == a.tag && b.down != a.down && b.at-a.at < period {
					if a.down {
						a, b = b, a // clocks apart
					}
					if k++; a.tag < s.limit && b.live {
						f.add(float64(b.at-a.at), weight, a.tag)
					}
					continue
				}
			}
			switch {
			case a.at >= end-period && a.tag < s.limit:
				kept = append(kept, a)
			case !a.down && a.live && a.tag < s.limit:
				f.sent += weight
				f.lost += weight
			}
		}
		f.open = kept
	}
	s.limit = limit
}

// add adds a packet that both points have.
func (f *flowSamples) add(delay, weight float64, tag uint32) {
	f.packets++
	f.sent += weight
	f.sum += weight * delay
	f.squares += weight * delay * delay
	f.cubes += weight * delay * delay * delay
	f.weights += weight * weight
	f.matched = append(f.matched, passed{delay, tag})
	if len(f.matched) == 2*mostMatched {
		slices.SortFunc(f.matched, func(a, b passed) int { return cmp.Compare(a.tag, b.tag) })
		f.matched = f.matched[:mostMatched]
	}
}

// fewest is the smallest number of sampled packets of which their spread is
// believed.
const fewest = 10

// combine adds what the samples say to an answer of the counters. Each is
// weighed by its variance.
func (f *flowSamples) combine(a *Answer, record joint.FlowRecord) {
	r, n := &a.Result, f.packets
	if n < fewest {
		return
	}
	came := f.sent - f.lost
	mean := f.sum / came
	variance := max(f.squares/came-mean*mean, 0) * n / (n - 1)
	all := cmp.Or(record.Packets, came)
	error := variance * f.weights / (came * came) * max(1-n/all, 0)
	// Half a unit of time, and a packet more or less.
	error = max(error, variance/(n*n))
	if a.Err != nil {
		*a = Answer{Result: Result{Packets: all, Share: 1}}
		r.share = 1
	} else {
		i := r.MeanInterval(0.68)
		other := math.Pow((i.High-i.Low)/2, 2)
		r.share = 1
		if error+other > 0 {
			r.share = other / (error + other)
		}
	}
	if variance > 0 {
		third := f.cubes/came - 3*mean*f.squares/came + 2*mean*mean*mean
		r.skew = third / math.Pow(variance, 1.5) / math.Sqrt(n)
	}
	r.sampledError, r.Sampled, r.Lost = math.Sqrt(error), uint64(n), f.lost/f.sent
	r.countedMean = r.Mean
	r.Mean = r.share*mean + (1-r.share)*r.Mean
	r.StdDev, r.degrees, r.spreads, r.variance, r.apart, r.drift = math.Sqrt(variance), n-1, [absentFlows]float64{}, variance, 0, 0
	r.N = max(r.N, uint64(n))
	slices.SortFunc(f.matched, func(a, b passed) int { return cmp.Compare(a.delay, b.delay) })
	r.samples = f
}

// Quantile returns the delay that a fraction p of the flow's packets did not
// exceed, from 0 to 1, and an interval that contains it with the given
// confidence. ok is false without a sample. The interval is unbounded where
// the sample ends.
func (r *Result) Quantile(p, confidence float64) (delay float64, within estimate.Interval, ok bool) {
	if r.samples == nil || !(p >= 0 && p <= 1) {
		return 0, within, false
	}
	all := r.samples.matched
	n := float64(len(all))
	at := func(rank float64) float64 { return all[min(max(int(rank), 0), len(all)-1)].delay }
	off := -estimate.NormalQuantile((1-confidence)/2)*math.Sqrt(n*p*(1-p)) + 1
	within = estimate.Interval{Low: math.Inf(-1), High: math.Inf(1), Confidence: confidence}
	if low := n*p - off; low >= 0 {
		within.Low = at(low)
	}
	if high := n*p + off; high <= n-1 {
		within.High = at(math.Ceil(high))
	}
	return at(n * p), within, true
}
