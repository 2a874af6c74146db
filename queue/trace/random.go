package trace

import (
	"math"
	"math/rand/v2"

	"github.com/hoplag/hoplag/internal/heap"
)

// generator returns the generator for one purpose of a source.
func generator(seed, purpose uint64) *rand.PCG {
	return rand.NewPCG(seed, purpose)
}

// uniform returns a number in (0, 1), never 0 and never 1.
func uniform(r *rand.PCG) float64 {
	return (float64(r.Uint64()>>11) + 0.5) / (1 << 53)
}

// exponential returns a number from the exponential distribution of mean 1.
func exponential(r *rand.PCG) float64 {
	return -math.Log(uniform(r))
}

// A pareto is the distribution P(X > x) = (x/scale)^-shape from scale up.
type pareto struct {
	scale, shape float64
}

// paretoOf returns the distribution with this mean; shape is above 1.
func paretoOf(mean, shape float64) pareto {
	return pareto{scale: mean * (shape - 1) / shape, shape: shape}
}

func (p pareto) mean() float64 { return p.scale * p.shape / (p.shape - 1) }

// exceeded returns the x that X exceeds with probability tail.
func (p pareto) exceeded(tail float64) float64 {
	return p.scale * math.Pow(tail, -1/p.shape)
}

func (p pareto) draw(r *rand.PCG) float64 { return p.exceeded(uniform(r)) }

// residual draws the rest of a period of this kind, observed at a random moment: its density is P(X > x)/mean.
func (p pareto) residual(r *rand.PCG) float64 {
	area := uniform(r) * p.mean()
	if area <= p.scale {
		return area
	}
	// The tail's area up to x is scale/(shape-1)·(1-(x/scale)^(1-shape)).
	rest := 1 - (area-p.scale)*(p.shape-1)/p.scale
	return p.scale * math.Pow(rest, 1/(1-p.shape))
}

// An event is the time at which something happens next that an agenda knows by number.
type event struct {
	at  float64 // ns since the source's start
	who int32
}

// Before orders events by time, and events of one time by number.
func (e event) Before(f event) bool {
	return e.at < f.at || e.at == f.at && e.who < f.who
}

// An agenda holds the events to come, the earliest first.
type agenda = heap.Heap[event]
