package lds

import (
	"fmt"
	"math"

	"github.com/hoplag/hoplag/estimate"
)

// Pareto is a distribution of flow sizes in packets: Pr[size > x] is
// (Scale/x)^Shape for x of at least Scale. The paper's traffic has Shape 0.8
// and Scale 1.
type Pareto struct {
	Shape float64 // above 0; below 1 the mean is infinite
	Scale float64 // the smallest size, above 0
}

// FitPareto returns the maximum-likelihood Pareto distribution of the given
// sizes, for flows of at least scale packets; it ignores smaller ones. It
// returns [estimate.ErrNoSamples] if no size exceeds scale.
//
// Packet counts are not continuous: with a scale below ten or so the shape
// comes out too large. Fit the tail.
func FitPareto(sizes []uint64, scale uint64) (Pareto, error) {
	var n, logs float64
	for _, size := range sizes {
		if size >= scale && scale > 0 {
			n++
			logs += math.Log(float64(size) / float64(scale))
		}
	}
	if !(logs > 0) {
		return Pareto{}, fmt.Errorf("lds: %w: no flow has more than %d packets", estimate.ErrNoSamples, scale)
	}
	return Pareto{Shape: n / logs, Scale: float64(scale)}, nil
}

// Tail returns Pr[size > x] (P in section 3).
func (p Pareto) Tail(x float64) float64 {
	if x <= p.Scale {
		return 1
	}
	return math.Pow(p.Scale/x, p.Shape)
}

// SmallSums returns the probability that in at least one of a flow's Rows ×
// Spread cells, other flows bring at most large/Spread packets together.
// flowsPerCell is the number of flows per cell of the sketch (n/C). It assumes
// that cells are independent and that a flow has the same share of its packets
// in each of its cells of a row. So does the paper's model, which blames one
// large flow for every large collision.
func SmallSums(flowsPerCell float64, sizes Pareto, large float64, rows, spread int) float64 {
	places := float64(rows) * float64(spread)
	return 1 - math.Pow(1-smallSum(flowsPerCell*places, sizes, large), places)
}

// latticeSteps is the number of steps into which smallSum divides the packets
// up to large.
const latticeSteps = 400

// smallSum returns the probability that a Poisson number of flows, of the
// given mean, have at most large packets together. It follows Panjer's
// recursion,
//
//	g(0) = e^−λ,  g(s) = λ/s · Σ j·p(j)·g(s−j),
//
// over whole packets, or over larger steps if large is beyond latticeSteps;
// sizes are rounded up to steps.
func smallSum(mean float64, sizes Pareto, large float64) float64 {
	step := max(1, large/latticeSteps)
	steps := int(min(large, latticeSteps))
	exactly := make([]float64, steps+1) // p(j), times j
	for j := 1; j <= steps; j++ {
		exactly[j] = float64(j) * (sizes.Tail(float64(j-1)*step) - sizes.Tail(float64(j)*step))
	}
	sums := make([]float64, steps+1)
	sums[0] = math.Exp(-mean)
	total := sums[0]
	for s := 1; s <= steps; s++ {
		for j := 1; j <= s; j++ {
			sums[s] += exactly[j] * sums[s-j]
		}
		sums[s] *= mean / float64(s)
		total += sums[s]
	}
	return min(total, 1)
}
