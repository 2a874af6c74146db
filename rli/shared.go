package rli

import (
	"fmt"
	"math"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// shared holds histograms that flows share, chosen by their hash, in two
// halves: each flow has one histogram in each half. A flow's record says how
// many packets in a histogram, n, are the flow's own. With o packets of
// others, the fraction of its packets up to a delay is between (c−o)/n and
// c/n, where c counts all packets up to there. That is certain, for both
// halves. In between, the others are assumed to be distributed like all
// packets together.
//
// This is the count-min sketch (Cormode, Muthukrishnan, 2005) of a flow's
// distribution instead of its packets, as in sketches of quantiles for each
// flow (He et al., HistSketch, ICDE 2023).
//
// Counters have 16 bits. When one is full, all counters of its histogram are
// halved, and from then on one packet in two counts, and so on. The fractions
// stay, within what chance does to 2^15 packets.
type shared struct {
	counters []uint16
	scales   []uint8 // of each histogram: one in 2^scale packets counts
	buckets  int
	half     uint64 // histograms in each half
}

// maxScale lets 2^48 packets fit one bucket.
const maxScale = 32

func newShared(c *Config) shared {
	return shared{
		counters: make([]uint16, c.Histograms*c.Buckets),
		scales:   make([]uint8, c.Histograms),
		buckets:  c.Buckets,
		half:     uint64(c.Histograms / 2),
	}
}

// of returns the places of a flow's two histograms.
func (s *shared) of(f hashing.Flow) [2]int {
	mixed := hashing.Mix(uint64(f), 0x68697374)
	return [2]int{int(mixed % s.half), int(s.half + mixed>>32%s.half)}
}

func (s *shared) histogram(at int) []uint16 { return s.counters[at*s.buckets : (at+1)*s.buckets] }

// add counts a packet of a flow; random is 64 random bits.
func (s *shared) add(f hashing.Flow, bucket int, random uint64) {
	for _, at := range s.of(f) {
		if random&(1<<s.scales[at]-1) != 0 {
			continue
		}
		n := &s.histogram(at)[bucket]
		if *n == math.MaxUint16 && s.scales[at] < maxScale {
			s.halve(at)
		}
		*n += uint16((uint32(*n)+1)>>16 ^ 1)
	}
}

func (s *shared) halve(at int) {
	s.scales[at]++
	histogram := s.histogram(at)
	for i := range histogram {
		histogram[i] = histogram[i]/2 + histogram[i]&1
	}
}

// merge adds the packets of b.
func (s *shared) merge(b *shared) {
	for at := range s.scales {
		for s.scales[at] < b.scales[at] {
			s.halve(at)
		}
		mine, theirs := s.histogram(at), b.histogram(at)
		for i, n := range theirs {
			more := uint32(n) >> (s.scales[at] - b.scales[at])
			for uint32(mine[i])+more > math.MaxUint16 && s.scales[at] < maxScale {
				s.halve(at)
				more /= 2
			}
			mine[i] = uint16(min(uint32(mine[i])+more, math.MaxUint16))
		}
	}
}

func (s *shared) reset() {
	clear(s.counters)
	clear(s.scales)
}

// A cut holds bounds on the fraction of a flow's packets up to the end of a
// bucket, and the likely fraction.
type cut struct{ low, likely, high float64 }

// cuts calls yield for each bucket, in order, with what is known about a flow
// of n packets if all packets together are distributed as in total.
func (s *shared) cuts(f hashing.Flow, n uint64, total []uint64, yield func(bucket int, c cut) bool) {
	var sums, others [2]float64
	places := s.of(f)
	own := float64(n)
	for k, at := range places {
		for _, count := range s.histogram(at) {
			others[k] += math.Ldexp(float64(count), int(s.scales[at]))
		}
		others[k] = max(others[k]-own, 0)
	}
	best := 0
	if others[1] < others[0] {
		best = 1
	}
	all, sofar := 0.0, 0.0
	for _, count := range total {
		all += float64(count)
	}
	likely := 0.0
	for bucket := range s.buckets {
		c := cut{0, 0, 1}
		for k, at := range places {
			count := float64(s.histogram(at)[bucket])
			sums[k] += math.Ldexp(count, int(s.scales[at]))
			slack := 0.0
			if s.scales[at] > 0 { // five deviations of what was drawn and rounded
				slack = 5*math.Sqrt(math.Ldexp(sums[k], int(s.scales[at]))) + math.Ldexp(float64(s.buckets), int(s.scales[at]))
			}
			c.low = max(c.low, (sums[k]-others[k]-slack)/own)
			c.high = min(c.high, (sums[k]+slack)/own)
		}
		sofar += float64(total[bucket])
		likely = max(likely, (sums[best]-others[best]*sofar/all)/own)
		c.likely = min(max(likely, c.low), c.high)
		if bucket == s.buckets-1 {
			c = cut{1, 1, 1}
		}
		if !yield(bucket, c) {
			return
		}
	}
}

// quantile returns the likely delay that a fraction p of a flow's packets do
// not exceed, and its bounds.
func (s *shared) quantile(f hashing.Flow, n uint64, total []uint64, floor int64, p float64) (likely float64, in estimate.Interval) {
	// The rank of the packet, without rounding up by one too many.
	share := max(math.Ceil(p*float64(n)*(1-4e-16)), 1) / float64(n) * (1 - 1e-12)
	in = estimate.Interval{Low: -1, Confidence: 1}
	likely = -1
	s.cuts(f, n, total, func(bucket int, c cut) bool {
		if in.Low < 0 && c.high >= share {
			in.Low = lowEdge(bucket, floor)
		}
		if likely < 0 && c.likely >= share {
			likely = middle(bucket, s.buckets, floor)
		}
		in.High = math.Inf(1)
		if bucket < s.buckets-1 {
			in.High = edge(bucket+1, floor)
		}
		return c.low < share
	})
	return likely, in
}

// lowEdge returns the smallest delay of a bucket. For the first bucket it is
// zero, unless clocks disagree.
func lowEdge(bucket int, floor int64) float64 {
	if bucket == 0 {
		return 0
	}
	return edge(bucket, floor)
}

// middle returns the delay that stands for a bucket.
func middle(bucket, buckets int, floor int64) float64 {
	switch bucket {
	case 0:
		return float64(floor) / 2
	case buckets - 1:
		return edge(bucket, floor)
	}
	return (edge(bucket, floor) + edge(bucket+1, floor)) / 2
}

// QuantileInterval returns bounds on the delay in nanoseconds that a fraction
// p of flow f's packets do not exceed: the edges of its bucket or, if flows
// share histograms, what is certain despite the others. The bounds are on the
// estimated delays, whose errors are those of [Result.MeanInterval]. The error
// is that of [Receiver.Quantile].
func (r *Receiver) QuantileInterval(f hashing.Flow, p float64) (estimate.Interval, error) {
	at := r.flows.find(f)
	if err := r.checkQuantile(r.flows.records[at].count(), p); err != nil {
		return estimate.Interval{}, err
	}
	if r.config.Histograms > 0 {
		_, in := r.shared.quantile(f, r.flows.records[at].count(), r.histogram, r.config.Floor, p)
		return in, nil
	}
	x, err := r.Quantile(f, p)
	if err != nil {
		return estimate.Interval{}, err
	}
	bucket := bucketOf(int64(x), r.config.Floor, r.config.Buckets)
	in := estimate.Interval{Low: lowEdge(bucket, r.config.Floor), High: math.Inf(1), Confidence: 1}
	if bucket < r.config.Buckets-1 {
		in.High = edge(bucket+1, r.config.Floor)
	}
	return in, nil
}

// checkHistograms reports an invalid number of shared histograms.
func (c *Config) checkHistograms() error {
	switch {
	case c.Histograms < 0 || c.Histograms%2 != 0 || c.Histograms > maxHistograms:
		return estimate.Invalid("rli", "Histograms", c.Histograms, fmt.Sprintf("0 or an even number up to %d", maxHistograms))
	case c.Histograms > 0 && c.Buckets == 0:
		return estimate.Invalid("rli", "Histograms", c.Histograms, "0 without Buckets")
	}
	return nil
}
