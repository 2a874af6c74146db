package colate

import (
	"cmp"
	"math"
	"slices"
)

// A pool is what the samples of all flows in some blocks say. Thirty packets of a
// flow hold none of those that one in a thousand is, so that they cannot tell
// how far their mean may be off; those of all flows may, and the counters do.
type pool struct {
	open    []pooled // of the epoch
	flow    []float64
	squares float64 // Σ (delay - the flow's mean in the epoch)²
	degrees float64
	all     float64 // Σ (delay - the mean of all in the epoch)²
	others  float64 // its degrees of freedom
}

type pooled struct {
	sample
	down bool
}

// pools reports whether a block is pooled: the first of the flows' blocks, so
// that a query of one flow reads no other.
func (s *sampling) pools(block, blocks int) bool {
	const most = 16
	if len(s.flows) == 0 {
		return false
	}
	from := sampleBlock(s.flows[0].key, blocks)
	return block >= from && block < from+min(len(s.flows), most)
}

// match adds the packets that both points have in an epoch.
func (p *pool) match(limit uint32, period int64) {
	slices.SortFunc(p.open, func(a, b pooled) int { return compareSamples(a.sample, b.sample) })
	n, sum, squares := 0.0, 0.0, 0.0
	for k, next := 0, 0; k < len(p.open); k = next {
		a := p.open[k]
		if k > 0 && a.flow != p.open[k-1].flow {
			p.endFlow()
		}
		for next = k + 1; next < len(p.open) && p.open[next].flow == a.flow && p.open[next].tag == a.tag; next++ {
		}
		if next != k+2 || a.tag >= limit || a.down == p.open[k+1].down || p.open[k+1].at-a.at >= period {
			continue
		}
		x := float64(p.open[k+1].at - a.at)
		if a.down {
			x = -x // clocks apart
		}
		p.flow = append(p.flow, x)
		n, sum, squares = n+1, sum+x, squares+x*x
	}
	p.endFlow()
	if n > 1 {
		p.all += max(squares-sum*sum/n, 0)
		p.others += n - 1
	}
	p.open = p.open[:0]
}

// endFlow adds the packets of one flow.
func (p *pool) endFlow() {
	mean := 0.0
	for _, x := range p.flow {
		mean += x / float64(len(p.flow))
	}
	for _, x := range p.flow {
		p.squares += (x - mean) * (x - mean)
	}
	p.degrees += max(float64(len(p.flow)-1), 0)
	p.flow = p.flow[:0]
}

// A hidden is the variance within flows, and the kurtosis that tells how many
// packets show it.
type hidden struct{ variance, kurtosis float64 }

// hidden returns what the samples of one flow may not show: the variance of all
// packets that the counters hold, less that between flows, or what samples of
// all flows have.
func (s *sampling) hidden(all *scatter) hidden {
	p := &s.pool
	within := p.squares / max(p.degrees, 1)
	between := max(p.all/max(p.others, 1)-within, 0)
	return hidden{max(all.variance()-between, within), all.kurtosis()}
}

// from returns the variance that a flow may have of which so many samples show
// nothing: all, where they hold three or fewer of the packets that make it.
func (h hidden) from(samples float64) float64 {
	return h.variance * min(1, 3*h.kurtosis/cmp.Or(samples, 1))
}

// sure is the confidence at which counters and samples contradict each other.
const sure = 0.99

// contradicts reports whether the samples' mean is farther from another than both
// may be off: the other too high, or too low, by so much.
func (f *sampled) contradicts(mean, high, low float64) bool {
	down, up := f.off(sure)
	if f.mean < mean {
		return mean-f.mean > math.Hypot(high, up)
	}
	return f.mean-mean > math.Hypot(low, down)
}
