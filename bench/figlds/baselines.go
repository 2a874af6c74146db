package figlds

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"github.com/hoplag/hoplag/bench/flowsim"
	"github.com/hoplag/hoplag/hashing"
)

// interpolated is RLI's linear interpolation: each packet has the delay on the
// straight line between the references before and behind it, of which there
// are so many a second. A reference has the delay of a packet drawn at random,
// for it cannot be of every flow, and takes one of the paths.
func (iv *interval) interpolated(perSecond float64) answer {
	n := int(iv.Config.Seconds*perSecond) + 2
	random := rand.New(rand.NewPCG(iv.seed, 1))
	references := make([]float64, 0, n)
	seen := 0
	for i := range iv.Flows {
		for p := range iv.Flows[i].Packets() {
			if seen++; len(references) < n {
				references = append(references, float64(p.Delay))
			} else if k := random.IntN(seen); k < n {
				references[k] = float64(p.Delay)
			}
		}
	}
	// With fewer packets than references, some are taken again.
	for i := 0; len(references) < n; i++ {
		references = append(references, references[i])
	}
	random.Shuffle(n, func(i, j int) { references[i], references[j] = references[j], references[i] })
	return func(i int) float64 {
		f := &iv.Flows[i]
		var sum float64
		for p := range f.Packets() {
			x := float64(p.Sent) / 1e9 * perSecond
			k := int(x)
			sum += references[k] + (references[k+1]-references[k])*(x-float64(k))
		}
		return sum / float64(f.Size)
	}
}

// A record is what NetFlow keeps of a flow of which packets were sampled: the
// first and the last of them, one and the same where there is only one.
type record struct{ first, last flowsim.Packet }

// records are NetFlow's with consistent sampling at a rate, by flow; nil for
// flows without a sample. kept is how many flows have one.
func (iv *interval) records(rate float64) (by []*record, kept int) {
	threshold := hashing.Threshold(rate)
	by = make([]*record, len(iv.Flows))
	for i := range iv.Flows {
		for p := range iv.Flows[i].Packets() {
			switch {
			case hashing.Sampled(uint64(p.ID), threshold) == 0:
			case by[i] == nil:
				by[i] = &record{p, p}
				kept++
			default:
				by[i].last = p
			}
		}
	}
	return by, kept
}

// multiPoint is the multi-point estimator: the mean of the samples of all flows
// from the first to the last of this one. As in the paper, flows without a
// sample have the mean of all packets.
func (iv *interval) multiPoint(records []*record) answer {
	var samples []flowsim.Packet
	for _, r := range records {
		if r == nil {
			continue
		}
		samples = append(samples, r.first)
		if r.last != r.first {
			samples = append(samples, r.last)
		}
	}
	slices.SortStableFunc(samples, func(a, b flowsim.Packet) int { return cmp.Compare(a.Sent, b.Sent) })
	sums := []float64{0}
	for i, p := range samples {
		sums = append(sums, sums[i]+float64(p.Delay))
	}
	before := func(t int64) int {
		n, _ := slices.BinarySearchFunc(samples, t, func(p flowsim.Packet, t int64) int { return cmp.Compare(p.Sent, t) })
		return n
	}
	return func(i int) float64 {
		r := records[i]
		if r == nil {
			return iv.Mean
		}
		a, b := before(r.first.Sent), before(r.last.Sent+1)
		return (sums[b] - sums[a]) / float64(b-a)
	}
}

// twoSamples is the mean of the flow's own first and last sample: the better
// estimate where neighbours in time have nothing to do with each other.
func (iv *interval) twoSamples(records []*record) answer {
	return func(i int) float64 {
		if r := records[i]; r != nil {
			return float64(r.first.Delay+r.last.Delay) / 2
		}
		return iv.Mean
	}
}
